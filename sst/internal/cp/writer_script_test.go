package cp

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

// A script is one event a line, and after "->" what the leader must do, in order.
// What goes to every member stands as "all:", to a reader as "[1]:". The stream
// is open, with the members of the configuration, one rank each.
//
//	reader 1, weft 1, observer 1   a reader registers, and the members admit it;
//	                               "preload" after it asks for that, "insist" for more
//	native 1, nativeobserver 1     the same of the native plane
//	register 1, admit 1 0          the same in two parts; admit is by one member; a plane
//	                               after register is what it registers for
//	says 1 mixed                   a reader says which plane it has
//	activate 1, release 1 7        what readers say; also ask, leave, lock
//	lose 1                         its link is gone
//	step, step 40 +f @a            every member ends a step: of 40 bytes in all, with a
//	                               new format f and a new attribute a of rank 0; &x: the
//	                               data of rank 0 lie at x;
//	                               "metadata 9" at the end: with so many bytes of that
//	share 1, share 1 40 +f @a      one member does
//	withdraw 1, regret 1           one member gives up a step that it has begun, or ended
//	finish, finish 1, die 1        the last word of all members, or of one
//	breaks 1                       a push to the reader fails
//	end, fail                      EndStream with ErrClosed, with another error
type writerScript struct {
	t      *testing.T
	leader *WriterLeader
	cfg    WriterConfig
	tries  []int64 // by member
}

func newWriterScript(t *testing.T, change func(*WriterConfig)) *writerScript {
	t.Helper()
	cfg := WriterConfig{Members: 1, Contact: "here", Planes: []string{PlaneEvpath}, Wire: sstmsg.Params{MarshalMethod: sstmsg.MarshalBP5}}
	if change != nil {
		change(&cfg)
	}
	s := &writerScript{t: t, cfg: cfg, leader: NewWriterLeader(cfg), tries: make([]int64, cfg.Members)}
	for k := range cfg.Members {
		s.leader.Handle(FromMember{k, &WriterHello{Ranks: 1, Contact: fmt.Sprint("rank ", k), Native: fmt.Sprint("n", k), Params: cfg.Params}})
	}
	s.leader.Handle(ContactPublished{})
	return s
}

// play plays a script and compares what happens.
func (s *writerScript) play(script string) {
	s.t.Helper()
	var want, got []string
	for line := range strings.Lines(script) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		event, actions, _ := strings.Cut(line, "->")
		event, actions = strings.TrimSpace(event), strings.TrimSpace(actions)
		want = append(want, event+" -> "+actions)
		got = append(got, event+" -> "+strings.Join(s.do(strings.Fields(event)), "; "))
	}
	if d := cmp.Diff(want, got); d != "" {
		s.t.Errorf("want -, got +:\n%s", d)
	}
}

// do carries out one event.
func (s *writerScript) do(words []string) []string {
	arg := func(i int) int {
		if i >= len(words) {
			return 0
		}
		n, err := strconv.Atoi(words[i])
		if err != nil {
			s.t.Fatalf("%q: %v", words, err)
		}
		return n
	}
	key := ReaderKey(0)
	if len(words) > 1 {
		n, _ := strconv.Atoi(words[1])
		key = ReaderKey(n)
	}
	says := func(m sstmsg.Message) []string { return s.handle(FromReader{key, m}) }
	switch words[0] {
	case "reader", "weft", "observer", "native", "nativeobserver":
		out := s.handle(writerScriptRegister(key, words))
		for k := range s.cfg.Members {
			out = append(out, s.admit(k, key)...)
		}
		return out
	case "register":
		return s.handle(writerScriptRegister(key, words))
	case "admit":
		return s.admit(arg(2), key)
	case "says":
		return says(&sstmsg.ReaderPlane{Plane: words[2]})
	case "activate":
		return says(&sstmsg.ReaderActivate{})
	case "release":
		return says(&sstmsg.ReleaseTimestep{Step: int64(arg(2))})
	case "ask":
		return says(&sstmsg.ReaderRequestStep{})
	case "lock":
		return says(&sstmsg.LockReaderDefinitions{})
	case "leave":
		return says(&sstmsg.ReaderClose{})
	case "lose":
		return s.handle(ReaderLost{key, errTest})
	case "step":
		var out []string
		for k := range s.cfg.Members {
			out = append(out, s.share(k, words[1:])...)
			words = words[:1] // rank 0 has it all
		}
		return out
	case "share":
		return s.share(arg(1), words[2:])
	case "room":
		return s.handle(FromMember{arg(1), &Room{s.tries[arg(1)] - 1}})
	case "withdraw":
		s.tries[arg(1)]++
		return s.handle(FromMember{arg(1), &Withdraw{Try: s.tries[arg(1)] - 1, Cause: NewFault(errTest)}})
	case "regret":
		return s.handle(FromMember{arg(1), &Withdraw{Try: s.tries[arg(1)] - 1, Cause: NewFault(errTest)}})
	case "finish":
		if len(words) > 1 {
			return s.handle(FromMember{arg(1), &Finished{}})
		}
		var out []string
		for k := range s.cfg.Members {
			out = append(out, s.handle(FromMember{k, &Finished{}})...)
		}
		return out
	case "breaks":
		return s.handle(FromMember{arg(2), &PushFailed{Reader: key, Cause: NewFault(errTest)}})
	case "refused":
		return s.handle(FromMember{arg(1), &StreamFailed{NewFault(ErrParam)}})
	case "die":
		return s.handle(MemberLost{arg(1), errTest})
	case "end":
		return s.handle(EndStream{ErrClosed})
	case "fail":
		return s.handle(EndStream{errTest})
	}
	s.t.Fatalf("no such event: %q", words)
	return nil
}

func writerScriptRegister(k ReaderKey, words []string) Register {
	m := &sstmsg.ReaderRegister{
		Condition: int32(k),
		CP:        []sstmsg.CPReader{{Contact: "r", ReaderID: int64(100 + k)}},
		Evpath:    []sstmsg.EvpathReader{{Contact: "r", ReaderID: int64(200 + k)}},
	}
	if strings.HasSuffix(words[0], "observer") {
		m.Observer = 1
	}
	if strings.HasPrefix(words[0], "native") {
		m.Plane = PlaneNative
	}
	switch last := words[len(words)-1]; last {
	case PlaneEvpath, PlaneNative, PlaneMixed:
		m.Plane = last
	case "preload":
		m.SpecPreload = 1
	case "insist":
		m.SpecPreload = pushAlways
	}
	return Register{Reader: k, Msg: m, Contact: "us", Weft: words[0] == "weft" || m.Observer != 0 || m.Plane != ""}
}

func (s *writerScript) handle(e WriterEvent) []string {
	return writerActionTexts(s.leader.Handle(e))
}

func (s *writerScript) admit(k int, r ReaderKey) []string {
	return s.handle(FromMember{k, &Admitted{Reader: r, Control: []int64{int64(10 + k)}, Data: []int64{int64(20 + k)}}})
}

// share is what one member contributes: some of 40, +f, @a.
func (s *writerScript) share(k int, words []string) []string {
	c := &Contribute{Try: s.tries[k], Metadata: []sstmsg.Block{{Data: sstmsg.ByteBlob([]byte("m"))}}, Bytes: []uint64{0}}
	s.tries[k]++
	for i, w := range words {
		switch w[0] {
		case 'm':
			n, err := strconv.Atoi(words[i+1])
			if err != nil {
				s.t.Fatal(err)
			}
			c.Metadata[0].Data = sstmsg.ByteBlob(make([]byte, n))
			return s.handle(FromMember{k, c})
		case '+':
			c.Formats = append(c.Formats, sstmsg.FormatBlock{ID: sstmsg.ByteBlob([]byte(w[1:]))})
		case 'f':
			c.Full = true
		case '&':
			c.Native = []sstmsg.Block{{Data: sstmsg.ByteBlob([]byte(w[1:]))}}
		case '@':
			c.Attributes = []sstmsg.Blob{sstmsg.ByteBlob([]byte(w[1:]))}
		default:
			n, err := strconv.Atoi(w)
			if err != nil {
				s.t.Fatal(err)
			}
			c.Bytes[0] = uint64(n)
		}
	}
	return s.handle(FromMember{k, c})
}

// TestWriterScripts plays every rule of the leader. It is meant to be read.
func TestWriterScripts(t *testing.T) {
	for _, c := range writerScripts {
		t.Run(c.name, func(t *testing.T) { newWriterScript(t, c.change).play(c.script) })
	}
}
