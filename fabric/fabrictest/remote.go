package fabrictest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
)

// childArgs are what a child is started with, as JSON.
type childArgs struct {
	Provider string
	Wrap     string
	Options  map[string]string
	Again    bool
	Socket   string // where requests come from: what the child prints is for people
}

// serve is the child program: it carries out the requests that come in until there are no more.
func serve(args []string, wraps []Wrap) error {
	var c childArgs
	if len(args) == 0 {
		return errors.New("a child of fabrictest needs its argument")
	}
	if err := json.Unmarshal([]byte(args[len(args)-1]), &c); err != nil {
		return err
	}
	o, err := childOpener(c, wraps)
	if err != nil {
		return err
	}
	conn, err := net.Dial("unix", c.Socket)
	if err != nil {
		return err
	}
	a := &agent{o: o}
	in, out := json.NewDecoder(conn), json.NewEncoder(conn)
	for {
		var r request
		if err := in.Decode(&r); errors.Is(err, io.EOF) {
			return errors.Join(a.close(), conn.Close())
		} else if err != nil {
			return err
		}
		if err := out.Encode(a.do(r)); err != nil {
			return err
		}
	}
}

func childOpener(c childArgs, wraps []Wrap) (opener, error) {
	p, ok := provider.Lookup(c.Provider)
	if !ok {
		return opener{}, fmt.Errorf("no provider %q is linked into the child", c.Provider)
	}
	if c.Wrap != "" {
		i := slices.IndexFunc(wraps, func(w Wrap) bool { return w.Name == c.Wrap })
		if i < 0 {
			return opener{}, fmt.Errorf("the wrap %q was not given to fabrictest.Main", c.Wrap)
		}
		p = wraps[i].Provider(p)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	info, err := usable(ctx, p)
	if err != nil {
		return opener{}, err
	}
	if !info.Usable {
		return opener{}, fmt.Errorf("%s is not usable in the child: %s", c.Provider, info.Why)
	}
	return opener{p, info, c.Options, patience, c.Again}, nil
}

// remote is an agent in a child process.
type remote struct {
	t    testing.TB
	p    *testutil.Process
	conn *net.UnixConn
	in   *json.Decoder
	out  *json.Encoder
	dead bool
}

// launch starts a child.
func launch(e *env) *remote {
	e.Helper()
	// Not the test's folder: its name may be too long for a socket.
	dir, err := os.MkdirTemp("", "ft")
	if err != nil {
		e.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // both ends are connected by then, or it has failed
	args := childArgs{Provider: e.c.Provider, Options: e.c.Options, Again: e.c.Again, Socket: filepath.Join(dir, "s")}
	if e.c.Wrap != nil {
		args.Wrap = e.c.Wrap.Name
	}
	text, err := json.Marshal(args)
	if err != nil {
		e.Fatal(err)
	}
	l, err := listen(args.Socket)
	if err != nil {
		e.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	program, setting := testutil.RoleCommand(e.TB, roleName)
	command := slices.Concat(e.c.Launcher, []string{program, string(text)})
	r := &remote{t: e.TB, p: testutil.Start(e.TB, "", []string{setting}, command[0], command[1:]...)}
	r.accept(l)
	e.Cleanup(func() { _ = r.conn.Close() })
	return r
}

// listen makes the socket, for a child that may be of another user.
func listen(path string) (*net.UnixListener, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	return l, errors.Join(os.Chmod(filepath.Dir(path), 0o755), os.Chmod(path, 0o777))
}

// accept waits until the child has connected, or has ended.
func (r *remote) accept(l *net.UnixListener) {
	r.t.Helper()
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-r.p.Done():
			_ = l.SetDeadline(time.Unix(1, 0))
		case <-ended:
		}
	}()
	if err := l.SetDeadline(time.Now().Add(answerBound)); err != nil {
		r.t.Fatal(err)
	}
	conn, err := l.AcceptUnix()
	if err != nil {
		r.t.Fatalf("the child does not connect: %v\n%s", err, r.p.Output())
	}
	r.conn, r.in, r.out = conn, json.NewDecoder(conn), json.NewEncoder(conn)
}

// answerBound is how long a child may take for an answer: above what any request waits for.
const answerBound = 2 * time.Minute

// ask sends a request.
func (r *remote) ask(q request) {
	r.t.Helper()
	if err := r.out.Encode(q); err != nil {
		r.t.Fatalf("%s: asking the child: %v", q.Verb, err)
	}
}

// answer waits for the answer to the oldest request.
func (r *remote) answer() reply {
	r.t.Helper()
	if err := r.conn.SetReadDeadline(time.Now().Add(answerBound)); err != nil {
		r.t.Fatal(err)
	}
	var a reply
	if err := r.in.Decode(&a); err != nil {
		r.t.Fatalf("the child (pid %d) does not answer: %v", r.p.Pid(), err)
	}
	return a
}

// end lets the child end by itself, and waits for it.
func (r *remote) end() error {
	return errors.Join(r.conn.Close(), r.p.Wait())
}
