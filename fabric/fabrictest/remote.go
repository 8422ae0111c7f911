package fabrictest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
)

// answerPrefix starts the lines of a child that are answers.
const answerPrefix = "fabrictest> "

// childArgs are what a child is started with, as JSON.
type childArgs struct {
	Provider string
	Wrap     string
	Options  map[string]string
}

// serve is the child program: it carries out the requests that come in, line by line.
func serve(args []string, wraps []Wrap) error {
	o, err := childOpener(args, wraps)
	if err != nil {
		return err
	}
	a := &agent{o: o}
	in := json.NewDecoder(bufio.NewReader(os.Stdin))
	for in.More() {
		var r request
		if err := in.Decode(&r); err != nil {
			return err
		}
		text, err := json.Marshal(a.do(r))
		if err != nil {
			return err
		}
		fmt.Println(answerPrefix + string(text))
	}
	return a.close()
}

func childOpener(args []string, wraps []Wrap) (opener, error) {
	var c childArgs
	if len(args) == 0 {
		return opener{}, errors.New("a child of fabrictest needs its argument")
	}
	if err := json.Unmarshal([]byte(args[len(args)-1]), &c); err != nil {
		return opener{}, err
	}
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
	return opener{p, info, c.Options, patience}, nil
}

// remote is an agent in a child process.
type remote struct {
	t     testing.TB
	p     *testutil.Process
	dead  bool
	asked int // requests whose answers were not read
}

// launch starts a child.
func launch(e *env) *remote {
	e.Helper()
	args := childArgs{Provider: e.c.Provider, Options: e.c.Options}
	if e.c.Wrap != nil {
		args.Wrap = e.c.Wrap.Name
	}
	text, err := json.Marshal(args)
	if err != nil {
		e.Fatal(err)
	}
	program, setting := testutil.RoleCommand(e.TB, roleName)
	command := slices.Concat(e.c.Launcher, []string{program, string(text)})
	return &remote{t: e.TB, p: testutil.Start(e.TB, "", []string{setting}, command[0], command[1:]...)}
}

// ask sends a request.
func (r *remote) ask(q request) {
	r.t.Helper()
	text, err := json.Marshal(q)
	if err != nil {
		r.t.Fatal(err)
	}
	r.p.Send(string(text))
	r.asked++
}

// answer waits for the answer to the oldest request.
func (r *remote) answer() reply {
	r.t.Helper()
	r.asked--
	text := r.p.Expect(answerPrefix)
	var a reply
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&a); err != nil {
		r.t.Fatalf("the child answered %q: %v", text, err)
	}
	return a
}
