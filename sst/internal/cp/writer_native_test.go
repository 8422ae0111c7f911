package cp

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

func servesNative(c *WriterConfig) { c.Planes = []string{PlaneNative, PlaneEvpath} }

// nativeScripts are the rules of the native plane at the writer: see writerScript.
var nativeScripts = []struct {
	name   string
	change func(*WriterConfig)
	script string
}{
	{"a reader of the native plane is told where steps lie", servesNative, `
		native 1 -> all: admit [1] native; [1]: response, next 0, native n0
		says 1 native ->
		activate 1 ->
		step 40 &a -> [1]: step 0 at 0:a; all: published 0
		step 40 -> [1]: step 1; all: published 1
		step 40 &b -> [1]: step 2 at 0:b; all: published 2`},
	{"others are not", servesNative, `
		native 1 -> all: admit [1] native; [1]: response, next 0, native n0
		reader 2 -> all: admit [2]; [2]: response, next 0
		weft 3 -> all: admit [3]; [3]: response, next 0
		says 1 native ->
		activate 1 ->
		activate 2 ->
		activate 3 ->
		step &a -> [1]: step 0 at 0:a; [2]: step 0; [3]: step 0; all: published 0`},
	{"some routes: it is told, and members know", servesNative, `
		native 1 -> all: admit [1] native; [1]: response, next 0, native n0
		says 1 mixed -> all: replane [1] mixed
		activate 1 ->
		step &a -> [1]: step 0 at 0:a; all: published 0`},
	{"no route: a reader as others", func(c *WriterConfig) { servesNative(c); c.Preload = true }, `
		native 1 preload -> all: admit [1] native; [1]: response, next 0, native n0
		step &a -> all: published 0
		says 1 evpath -> all: replane [1] evpath
		activate 1 -> all: push 0 [1]; [1]: step 0 preloaded
		step &b -> all: push 1 [1]; [1]: step 1 preloaded; all: published 1`},
	{"nothing is pushed to who can look", func(c *WriterConfig) { servesNative(c); c.Preload = true }, `
		native 1 insist -> all: admit [1] native; [1]: response, next 0, native n0
		says 1 native ->
		activate 1 ->
		native 2 preload -> all: admit [2] native; [2]: response, next 0, native n0
		says 2 mixed -> all: replane [2] mixed
		activate 2 ->
		weft 3 preload -> all: admit [3]; [3]: response, next 0
		activate 3 ->
		step &a -> [1]: step 0 at 0:a; [2]: step 0 at 0:a; all: push 0 [3]; [3]: step 0 preloaded; all: published 0`},
	{"ranks that have nothing to look at", func(c *WriterConfig) { servesNative(c); c.Members = 3 }, `
		native 1 -> all: admit [1] native; [1]: response, next 0, native n0 n1 n2
		says 1 native ->
		activate 1 ->
		share 0 ->
		share 1 &b ->
		share 2 -> [1]: step 0 at 1:b; all: published 0
		share 0 & ->
		share 1 ->
		share 2 & -> [1]: step 1; all: published 1`},
	{"a late reader is told where the steps before lie", func(c *WriterConfig) { servesNative(c); c.Reserve = 2 }, `
		step &a -> all: published 0
		step -> all: published 1
		native 1 -> all: admit [1] native; [1]: response, next 0, native n0
		says 1 native ->
		activate 1 -> [1]: step 0 at 0:a; [1]: step 1`},
	{"a discarded step lies nowhere", func(c *WriterConfig) { servesNative(c); c.QueueLimit, c.Discard = 1, true }, `
		native 1 -> all: admit [1] native; [1]: response, next 0, native n0
		says 1 native ->
		activate 1 ->
		step &a -> [1]: step 0 at 0:a; all: published 0
		step &b -> [1]: no step 1; all: discarded 1`},
	// It leaves at once: its opening was given up.
	{"a reader that does not say", servesNative, `
		native 1 -> all: admit [1] native; [1]: response, next 0, native n0
		activate 1 ->
		leave 1 -> drop [1]: nil; all: dismiss [1]`},
	{"a reader that is lost before it says", servesNative, `
		native 1 -> all: admit [1] native; [1]: response, next 0, native n0
		lose 1 -> drop [1]: errTest; all: dismiss [1]`},
	{"an observer that opens when the stream is over", servesNative, `
		nativeobserver 1 -> all: admit [1] native; [1]: response, next 0, native n0
		finish -> all: drained
		says 1 mixed ->
		activate 1 -> [1]: close after -1`},

	// What a reader must not say.
	{"twice", servesNative, `
		native 1 -> all: admit [1] native; [1]: response, next 0, native n0
		says 1 native ->
		says 1 native -> [1]: close after -1, failed; drop [1]: ErrProtocol; all: dismiss [1]`},
	{"another one afterwards", servesNative, `
		native 1 -> all: admit [1] native; [1]: response, next 0, native n0
		says 1 evpath -> all: replane [1] evpath
		says 1 mixed -> [1]: close after -1, failed; drop [1]: ErrProtocol; all: dismiss [1]`},
	{"a plane that there is not", servesNative, `
		native 1 -> all: admit [1] native; [1]: response, next 0, native n0
		says 1 ucx -> [1]: close after -1, failed; drop [1]: ErrProtocol; all: dismiss [1]`},
	{"before the response", func(c *WriterConfig) { servesNative(c); c.Members = 2 }, `
		register 1 native -> all: admit [1] native
		admit 1 0 ->
		says 1 native -> [1]: close after -1, failed; drop [1]: ErrProtocol; all: dismiss [1]`},
	{"after the activation", servesNative, `
		native 1 -> all: admit [1] native; [1]: response, next 0, native n0
		activate 1 ->
		says 1 native -> [1]: close after -1, failed; drop [1]: ErrProtocol; all: dismiss [1]`},
	{"a reader of plane evpath", servesNative, `
		weft 1 -> all: admit [1]; [1]: response, next 0
		says 1 evpath -> [1]: close after -1, failed; drop [1]: ErrProtocol; all: dismiss [1]`},
	{"an ADIOS2 reader", servesNative, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		says 1 native -> cut [1]: ErrProtocol; all: dismiss [1]`},

	// What it must not register for.
	{"a plane that is not served", nil, `
		register 1 native -> cut [1]: ErrProtocol
		register 2 mixed -> cut [2]: ErrProtocol
		weft 3 -> all: admit [3]; [3]: response, next 0`},
	{"sockets, where they are not served", func(c *WriterConfig) { c.Planes = []string{PlaneNative} }, `
		register 1 evpath -> cut [1]: ErrProtocol
		native 2 -> all: admit [2] native; [2]: response, next 0, native n0`},
}

func TestNativeScripts(t *testing.T) {
	for _, c := range nativeScripts {
		t.Run(c.name, func(t *testing.T) { newWriterScript(t, c.change).play(c.script) })
	}
}

// TestNativeOfStrangers: who is not Weft has no business with the plane.
func TestNativeOfStrangers(t *testing.T) {
	s := newWriterScript(t, servesNative)
	e := writerScriptRegister(1, []string{"native"})
	e.Weft = false
	same(t, "registration", s.handle(e), "cut [1]: ErrProtocol")
}

// TestNativeResponse: the contact of a member stands for each of its ranks, and is
// not what replaces that of member 0 on a link.
func TestNativeResponse(t *testing.T) {
	w := NewWriterLeader(WriterConfig{Members: 3, Contact: "here", Planes: []string{PlaneNative}})
	w.Handle(FromMember{0, &WriterHello{Ranks: 2, Contact: "here", Native: "here"}})
	w.Handle(FromMember{1, &WriterHello{Ranks: 1, Contact: "there"}})
	w.Handle(FromMember{2, &WriterHello{Ranks: 1, Contact: "far", Native: "n2"}})
	w.Handle(ContactPublished{})
	w.Handle(writerScriptRegister(1, []string{"native"}))
	w.Handle(FromMember{0, &Admitted{Reader: 1, Control: []int64{1, 2}, Data: []int64{1, 2}}})
	w.Handle(FromMember{1, &Admitted{Reader: 1, Control: []int64{3}, Data: []int64{3}}})
	m := w.Handle(FromMember{2, &Admitted{Reader: 1, Control: []int64{4}, Data: []int64{4}}})[0].(SendToReader).Msg.(*sstmsg.WriterResponse)
	want := []sstmsg.NativeWriter{{Contact: "here"}, {Contact: "here"}, {}, {Contact: "n2"}}
	if d := cmp.Diff(want, m.Native); d != "" {
		t.Error(d)
	}
	if m.Evpath[3].Contact != "weft native rank 3" {
		t.Errorf("%q", m.Evpath[3].Contact)
	}
}

// TestNativeCounts: what the plane of a reader is, and when.
func TestNativeCounts(t *testing.T) {
	s := newWriterScript(t, servesNative)
	want := func(plane string) {
		t.Helper()
		if got := s.leader.Reader(1).Plane; got != plane {
			t.Errorf("plane %q, want %q", got, plane)
		}
	}
	want("")
	s.do([]string{"native", "1"})
	want(PlaneNative)
	s.do([]string{"says", "1", PlaneMixed})
	want(PlaneMixed)
}

// TestNativeOtherRanks: a member says where its data lie for each of its ranks, or
// for none.
func TestNativeOtherRanks(t *testing.T) {
	s := newWriterScript(t, servesNative)
	c := &Contribute{Metadata: make([]sstmsg.Block, 1), Bytes: make([]uint64, 1), Native: make([]sstmsg.Block, 2)}
	same(t, "contribution", s.handle(FromMember{0, c}), "all: failed: ErrProtocol")
}

// TestWriterMemberReplane: a member passes on which plane a reader has.
func TestWriterMemberReplane(t *testing.T) {
	m := NewWriterMember(MemberConfig{Hello: WriterHello{Ranks: 1}})
	for _, l := range append(joined[:len(joined):len(joined)],
		memberOn(hears(&Admit{Reader: 1, Plane: PlaneNative}), "admit [1]"),
		memberOn(hears(&Replane{Reader: 1, Plane: PlaneMixed}), "replane [1] mixed"),
		memberOn(hears(&Replane{Reader: 7, Plane: PlaneEvpath}), "replane [7] evpath"),
	) {
		same(t, "member", writerMemberTexts(m.Handle(l.do)), l.want...)
	}
}
