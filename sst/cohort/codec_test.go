package cohort

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

var diffable = cmp.AllowUnexported(key{}, goneBody{}, contact{}, frame{})

var frames = []frame{
	{kind: frameStart},
	{kind: frameJoin, id: 7, body: appendJoin(nil, key{"stream", 2})},
	{kind: frameMessage, id: 7, body: []byte("hello")},
	{kind: frameMessage, id: math.MaxUint32, body: []byte{}},
	{kind: frameLeave, id: 7},
	{kind: frameGone, id: 3, body: (&goneBody{"it died", []key{{"a", 1}, {"", 2}}}).append(nil)},
	{kind: frameBye, body: []byte("gave up")},
	{kind: frameFlush},
	{kind: frameFlushed},
}

func TestFrames(t *testing.T) {
	for _, f := range frames {
		wire := append(f.appendHeader(nil), f.body...)
		got, err := readFrame(iotest.OneByteReader(bytes.NewReader(wire)), 1<<20)
		if err != nil || got.kind != f.kind || got.id != f.id || !bytes.Equal(got.body, f.body) {
			t.Errorf("kind %d: got %+v, %v", f.kind, got, err)
		}
		for n := range wire {
			_, err := readFrame(bytes.NewReader(wire[:n]), 1<<20)
			want := io.ErrUnexpectedEOF
			if n == 0 {
				want = io.EOF
			}
			if err != want {
				t.Errorf("kind %d, %d of %d bytes: %v, want %v", f.kind, n, len(wire), err, want)
			}
		}
	}
}

// The bytes themselves: two releases of Weft may meet.
func TestFrameBytes(t *testing.T) {
	f := frame{kind: frameJoin, id: 0x01020304, body: appendJoin(nil, key{"ab", 5})}
	got := append(f.appendHeader(nil), f.body...)
	want := []byte("\x02\x00\x00\x00\x04\x03\x02\x01\x06\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00ab")
	if !bytes.Equal(got, want) {
		t.Errorf("% x, want % x", got, want)
	}
}

// What a header promises costs no memory before it comes.
func TestFrameThatPromises(t *testing.T) {
	wire := (&frame{kind: frameMessage, id: 1}).appendHeader(nil)
	binary.LittleEndian.PutUint64(wire[8:], 1<<40)
	wire = append(wire, make([]byte, 100)...)
	allocs := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := readFrame(bytes.NewReader(wire), 1<<41); err != io.ErrUnexpectedEOF {
				b.Fatal(err)
			}
		}
	})
	if n := allocs.AllocedBytesPerOp(); n > 2*firstChunk {
		t.Errorf("%d bytes allocated for 100", n)
	}
}

func TestBadFrames(t *testing.T) {
	for _, c := range []struct {
		name   string
		kind   uint32
		length uint64
		want   error
	}{
		{"no kind", 0, 0, ErrProtocol},
		{"unknown", frameFlushed + 1, 0, ErrProtocol},
		{"start with a body", frameStart, 1, ErrLimit},
		{"leave with a body", frameLeave, 1, ErrLimit},
		{"flush with a body", frameFlush, 1, ErrLimit},
		{"long name", frameJoin, 4 + maxName + 1, ErrLimit},
		{"long message", frameMessage, 1001, ErrLimit},
		{"endless message", frameMessage, math.MaxUint64, ErrLimit},
		{"long end", frameBye, maxText + 1, ErrLimit},
		{"long loss", frameGone, maxGone + 1, ErrLimit},
	} {
		wire := binary.LittleEndian.AppendUint32(nil, c.kind)
		wire = binary.LittleEndian.AppendUint32(wire, 1)
		wire = binary.LittleEndian.AppendUint64(wire, c.length)
		_, err := readFrame(bytes.NewReader(append(wire, make([]byte, 5000)...)), 1000)
		wants(t, c.name, err, c.want)
	}
}

func TestJoinBody(t *testing.T) {
	for _, k := range []key{{"", 1}, {"stream", 2}, {strings.Repeat("x", maxName), math.MaxUint32}} {
		got, err := parseJoin(appendJoin(nil, k))
		if err != nil || got != k {
			t.Errorf("%+v, %v, want %+v", got, err, k)
		}
	}
	for _, b := range []string{"", "\x01", "\x01\x00\x00", "\x00\x00\x00\x00name", "\x01\x00\x00\x00" + strings.Repeat("x", maxName+1)} {
		_, err := parseJoin([]byte(b))
		wants(t, "a bad join", err, ErrProtocol)
	}
}

func TestGoneBody(t *testing.T) {
	g := goneBody{"why", []key{{"a", 1}, {"", 9}, {"longer name", 2}}}
	wire := g.append(nil)
	whole := map[int]int{7: 0, 16: 1, 24: 2, len(wire): 3} // lengths at which it could end
	for n := range len(wire) + 1 {
		got, err := parseGone(wire[:n])
		if count, ok := whole[n]; ok {
			if err != nil || got.text != g.text || !cmp.Equal(got.left, g.left[:count:count], diffable) && count > 0 {
				t.Errorf("%d bytes: %+v, %v", n, got, err)
			}
			continue
		}
		if !errors.Is(err, ErrProtocol) || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	_, err := parseGone([]byte("\x00\x00\x00\x00" + "\x00\x00\x00\x00\x00\x00\x00\x00"))
	wants(t, "number 0", err, ErrProtocol)
	_, err = parseGone([]byte("\xff\xff\xff\xff"))
	wants(t, "long text", err, ErrProtocol)
}

func FuzzFrames(f *testing.F) {
	var all []byte
	for _, x := range frames {
		one := append(x.appendHeader(nil), x.body...)
		f.Add(one)
		all = append(all, one...)
	}
	f.Add(all)
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		for {
			x, err := readFrame(r, 1<<16)
			if err != nil {
				return
			}
			switch x.kind {
			case frameJoin:
				if k, err := parseJoin(x.body); err == nil && !bytes.Equal(appendJoin(nil, k), x.body) {
					t.Errorf("join %+v of % x", k, x.body)
				}
			case frameGone:
				if g, err := parseGone(x.body); err == nil && !bytes.Equal(g.append(nil), x.body) {
					t.Errorf("gone %+v of % x", g, x.body)
				}
			}
		}
	})
}

func TestHandshakeMessages(t *testing.T) {
	g := greeting{id: newCohortID(), nonce: newNonce()}
	c := claim{rank: 3, size: 1 << 30, nonce: newNonce(), mac: [macLen]byte{1, 2, 31: 9}}
	v := verdict{code: verdictSize, text: "why not", mac: [macLen]byte{7}}
	for _, m := range []struct {
		name  string
		wire  []byte
		parse func([]byte) (any, error)
		want  any
	}{
		{"greeting", g.append(nil), func(b []byte) (any, error) { return parseGreeting(b) }, g},
		{"claim", c.append(nil), func(b []byte) (any, error) { return parseClaim(b) }, c},
		{"verdict", v.append(nil), func(b []byte) (any, error) { return readVerdict(bytes.NewReader(b)) }, v},
	} {
		got, err := m.parse(m.wire)
		if err != nil || got != m.want {
			t.Errorf("%s: %+v, %v", m.name, got, err)
		}
		for n := range m.wire {
			if _, err := m.parse(m.wire[:n]); !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
				t.Errorf("%s, %d of %d bytes: %v", m.name, n, len(m.wire), err)
			}
		}
		bad := bytes.Clone(m.wire)
		bad[0] = 'W'
		if _, err := m.parse(bad); !errors.Is(err, ErrProtocol) {
			t.Errorf("%s with another beginning: %v", m.name, err)
		}
	}
	if len(g.append(nil)) != greetingLen || len(c.append(nil)) != claimLen {
		t.Error("other lengths")
	}
	_, err := readVerdict(bytes.NewReader((&verdict{text: strings.Repeat("x", maxVerdictText+1)}).append(nil)))
	wants(t, "a long verdict", err, ErrProtocol)
}

// A proof holds for its token, direction, cohort, nonces, rank, size and words,
// and for nothing else.
func TestProofs(t *testing.T) {
	base := exchange{
		token:    testToken,
		greeting: greeting{id: newCohortID(), nonce: newNonce()},
		claim:    claim{rank: 1, size: 3, nonce: newNonce()},
	}
	welcome := &verdict{code: verdictWelcome}
	seen := map[[macLen]byte]string{}
	add := func(name string, mac [macLen]byte) {
		if other, ok := seen[mac]; ok {
			t.Errorf("the proofs of %s and of %s are the same", name, other)
		}
		seen[mac] = name
	}
	for name, change := range map[string]func(*exchange){
		"base":   func(*exchange) {},
		"token":  func(e *exchange) { e.token += "x" },
		"id":     func(e *exchange) { e.id[3] ^= 1 },
		"root":   func(e *exchange) { e.nonce[0] ^= 1 },
		"nonce":  func(e *exchange) { e.claim.nonce[31] ^= 1 },
		"rank":   func(e *exchange) { e.claim.rank = 2 },
		"size":   func(e *exchange) { e.claim.size = 4 },
		"exchg.": func(e *exchange) { e.claim.rank, e.claim.size = 3, 1 },
	} {
		e := base
		change(&e)
		add(name+", claim", e.claimProof())
		add(name+", verdict", e.verdictProof(welcome))
		add(name+", refusal", e.verdictProof(&verdict{code: verdictRank}))
		add(name+", words", e.verdictProof(&verdict{code: verdictRank, text: "x"}))
	}
	if !same(base.claimProof(), base.claimProof()) {
		t.Error("a proof differs from itself")
	}
}

func FuzzHandshake(f *testing.F) {
	f.Add((&greeting{}).append(nil))
	f.Add((&claim{rank: 1, size: 2}).append(nil))
	f.Add((&verdict{text: "x"}).append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if g, err := parseGreeting(b); err == nil && !bytes.HasPrefix(b, g.append(nil)) {
			t.Errorf("greeting of % x", b)
		}
		if c, err := parseClaim(b); err == nil && !bytes.HasPrefix(b, c.append(nil)) {
			t.Errorf("claim of % x", b)
		}
		if v, err := readVerdict(bytes.NewReader(b)); err == nil && !bytes.HasPrefix(b, v.append(nil)) {
			t.Errorf("verdict of % x", b)
		}
	})
}

func sampleContact() contact {
	return contact{id: newCohortID(), size: 4, token: newToken(), addrs: []string{"10.0.0.1:77", "[fe80::1]:77", "node:1"}}
}

func TestContact(t *testing.T) {
	c := sampleContact()
	wire := c.append(nil)
	got, err := parseContact(wire)
	if d := cmp.Diff(c, got, diffable); d != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, d)
	}
	for n := range wire {
		if got, err := parseContact(wire[:n]); err == nil {
			t.Errorf("%d of %d bytes: %+v", n, len(wire), got)
		}
	}
	for name, change := range map[string]func(string) string{
		"magic":    func(s string) string { return strings.Replace(s, "weft-cohort 1", "weft-cohort 2", 1) },
		"id":       func(s string) string { return strings.Replace(s, "id ", "id x", 1) },
		"size":     func(s string) string { return strings.Replace(s, "size 4", "size four", 1) },
		"negative": func(s string) string { return strings.Replace(s, "size 4", "size -4", 1) },
		"token":    func(s string) string { return strings.Replace(s, "token ", "tokens ", 1) },
		"address":  func(s string) string { return strings.Replace(s, "addr node:1", "addr node", 1) },
		"no name":  func(s string) string { return strings.Replace(s, "addr node:1", "node:1", 1) },
		"addresses": func(s string) string {
			return strings.Replace(s, "addr node:1", strings.Repeat("addr n:1\n", 40)+"addr n:1", 1)
		},
		"long": func(s string) string {
			return strings.Replace(s, "addr node", "addr "+strings.Repeat("x", maxContact), 1)
		},
	} {
		if _, err := parseContact([]byte(change(string(wire)))); !errors.Is(err, ErrProtocol) && !errors.Is(err, ErrLimit) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPMIValue(t *testing.T) {
	c := sampleContact()
	v, err := c.pmiValue(1023)
	if err != nil {
		t.Fatal(err)
	}
	got, err := parsePMIValue(v)
	got.size = c.size
	if d := cmp.Diff(c, got, diffable); d != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, d)
	}
	if strings.ContainsAny(v, " \n=") {
		t.Errorf("PMI cannot carry %q", v)
	}
	small, err := c.pmiValue(2*idLen + 1 + len(c.token) + 8)
	if got, err2 := parsePMIValue(small); err != nil || err2 != nil || len(got.addrs) != 1 {
		t.Errorf("little room: %q, %v, %v", small, err, err2)
	}
	_, err = c.pmiValue(20)
	wants(t, "no room", err, ErrLimit)
	for _, v := range []string{"", "a,b,c:1", c.id.String() + ",,h:1", c.id.String() + ",t", c.id.String() + ",t,h", strings.Repeat("a,", 100)} {
		_, err := parsePMIValue(v)
		wants(t, v, err, ErrProtocol)
	}
}

func FuzzContact(f *testing.F) {
	c := sampleContact()
	f.Add(c.append(nil))
	v, _ := c.pmiValue(1023)
	f.Add([]byte(v))
	f.Add([]byte("cmd=get_result rc=0 msg=success value=x\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := parseContact(b); err == nil {
			again, err := parseContact(c.append(nil))
			if d := cmp.Diff(c, again, diffable); d != "" || err != nil {
				t.Errorf("%v %s", err, d)
			}
		}
		if c, err := parsePMIValue(string(b)); err == nil && len(c.addrs) == 0 {
			t.Errorf("no addresses in %q", b)
		}
		if m, err := parsePMI(string(b)); err == nil && m["cmd"] == "" {
			t.Errorf("no command in %q", b)
		}
	})
}

// TestClip: what is cut off ends between two characters, and nonsense is cut all
// the same.
func TestClip(t *testing.T) {
	long := strings.Repeat("x", maxText-1)
	for name, c := range map[string]struct{ text, want string }{
		"empty":            {"", ""},
		"fits":             {long + "y", long + "y"},
		"too long":         {long + "yz", long + "y"},
		"half a rune":      {long + "ä", long},
		"half of four":     {long[:maxText-3] + "\U0001F600", long[:maxText-3]},
		"whole rune":       {long[:maxText-2] + "äz", long[:maxText-2] + "ä"},
		"no rune anywhere": {strings.Repeat("\x80", maxText+9), strings.Repeat("\x80", maxText-4)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := clip(c.text); got != c.want {
				t.Errorf("%d bytes, want %d: ...%q", len(got), len(c.want), got[max(0, len(got)-6):])
			}
		})
	}
}
