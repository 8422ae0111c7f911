package cohort

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
)

// What is written is the frames one after the other, however they are packed, and
// long bodies are not copied.
func TestBatch(t *testing.T) {
	rnd := testutil.Rand(t)
	var w batch
	for range 50 {
		var list []frame
		for i := range 1 + rnd.IntN(2*maxVec) {
			size := rnd.IntN(2 * copyBelow)
			if rnd.IntN(200) == 0 {
				size = rnd.IntN(2 * maxWrite)
			}
			list = append(list, frame{kind: frameMessage, id: uint32(i), body: filler(size, 1, i)})
		}
		var got bytes.Buffer
		for rest := list; len(rest) > 0; {
			n := w.compose(rest)
			if n < 1 || len(w.vec) > maxVec+2 {
				t.Fatalf("%d frames in %d slices", n, len(w.vec))
			}
			for _, part := range w.vec {
				got.Write(part)
			}
			if last := rest[n-1].body; len(last) >= copyBelow && &w.vec[len(w.vec)-1][0] != &last[0] {
				t.Error("a long body was copied")
			}
			rest = rest[n:]
		}
		if !bytes.Equal(got.Bytes(), wire(list...)) {
			t.Fatal("other bytes")
		}
	}
}

// A connection without half-close works as well, a pipe say.
func TestLinkOverPipe(t *testing.T) {
	a, b := net.Pipe()
	cfg, err := TCPConfig{Size: 2, Token: "x", Tuning: Tuning{CloseTimeout: time.Second}}.resolve()
	if err != nil {
		t.Fatal(err)
	}
	c := newTCP(cfg)
	c.forming = false
	if !c.launch(a, 1) {
		t.Fatal("not launched")
	}
	e := join(t, c, "s")
	go b.Write(wire(frame{kind: frameJoin, id: 1, body: appendJoin(nil, key{"s", 1})}, frame{kind: frameMessage, id: 1, body: []byte("hello")}))
	for _, want := range []frame{{kind: frameJoin, id: 1}, {kind: frameMessage, id: 1}, {kind: frameBye}} {
		switch want.kind {
		case frameMessage:
			e.wants(1, "hello")
			e.send(1, "back")
		case frameBye:
			go c.Close()
		}
		f, err := readFrame(b, 1<<20)
		if err != nil || f.kind != want.kind || f.id != want.id {
			t.Errorf("got %+v, %v, want %+v", f, err, want)
		}
	}
	if _, err := b.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("%v, want the end", err)
	}
	c.Close()
	if c.launch(b, 1) {
		t.Error("launched after Close")
	}
	b.Close()
}

// A process that is stopped is not dead: its messages wait, and go on when it does.
func TestStoppedProcess(t *testing.T) {
	dir := t.TempDir()
	ranks := startRanks(t, "hang", 3, nil, dir)
	for _, p := range ranks {
		p.Expect("there")
	}
	if err := ranks[1].Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	// Another one dies; the stopped one hears of it when it goes on.
	if err := ranks[2].Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	ranks[0].Expect("lost 2: ")
	if err := ranks[1].Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	ranks[1].Expect("lost 2: ")
	for _, p := range ranks[:2] {
		if got := bytes.Count([]byte(p.Stdout()), []byte("lost")); got != 1 {
			t.Errorf("%d losses:\n%s", got, p.Output())
		}
	}
}

// Processes that talk, of which one is killed at a random moment: those that had
// formed the cohort hear of it, by its number, and end.
func TestSoakKilledProcesses(t *testing.T) {
	rnd := testutil.Rand(t)
	formed := 0
	for range testutil.Count(t, 6, 200) {
		victim := rnd.IntN(3)
		ranks := startRanks(t, "talk", 3, nil, t.TempDir())
		<-time.After(time.Duration(rnd.IntN(200)) * time.Millisecond) // any moment: nothing to wait for
		if err := ranks[victim].Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		limit, cancel := context.WithTimeout(context.Background(), time.Second)
		for i, p := range ranks {
			if i == victim {
				continue
			}
			select {
			case <-p.Done():
			case <-limit.Done():
			}
			if !strings.Contains(p.Stdout(), "there") {
				continue // it may wait for one that never came: no launcher is there to end it
			}
			formed++
			if want := fmt.Sprintf("lost %d: ", victim); !strings.Contains(p.Stderr(), want) {
				t.Errorf("rank %d was not told of %q:\n%s", i, want, p.Output())
			}
		}
		cancel()
		for _, p := range ranks {
			p.Kill()
		}
	}
	t.Logf("%d survivors were told", formed)
}

// A process that dies ends its connection in one of two ways, depending on what it
// had not read yet. Both are told in the same words.
func TestLinkToADeadProcess(t *testing.T) {
	for _, reset := range []bool{false, true} {
		l := listen(t)
		dead := make(chan net.Conn, 1)
		go func() {
			conn, _ := net.Dial("tcp", l.Addr().String())
			dead <- conn
		}()
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		other := (<-dead).(*net.TCPConn)
		if reset {
			other.SetLinger(0)
		}
		other.Close()
		_, err = io.Copy(io.Discard, conn)
		if err == nil {
			err = io.EOF
		}
		err = (&link{rank: 3, conn: conn}).cause(err)
		wants(t, "cause", err, ErrRankGone)
		if !strings.Contains(err.Error(), "rank 3 at ") || !strings.HasSuffix(err.Error(), "its process died, or exited without Close") {
			t.Errorf("reset %v: %v", reset, err)
		}
		conn.Close()
		l.Close()
	}
}
