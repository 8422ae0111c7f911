package cohort

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
)

// ranksOf returns the environments of n ranks that somebody started by hand.
func ranksOf(n int, more ...string) [][]string {
	var list [][]string
	for i := range n {
		list = append(list, append([]string{fmt.Sprint("WEFT_RANK=", i), fmt.Sprint("WEFT_SIZE=", n)}, more...))
	}
	return list
}

func inDir(dir string) func(int, *LauncherConfig) {
	return func(_ int, c *LauncherConfig) { c.Dir, c.Name = dir, "n" }
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	for range 3 { // the same name again and again
		ranks, errs := launch(bounded(t), t, ranksOf(4), inDir(dir))
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		hello(t, ranks)
		empty(t, dir)
	}
}

// Names keep the cohorts of one job apart.
func TestFileNames(t *testing.T) {
	dir := t.TempDir()
	environs := append(ranksOf(2), ranksOf(2)...)
	ranks, errs := launch(bounded(t), t, environs, func(i int, c *LauncherConfig) {
		c.Dir, c.Name = dir, fmt.Sprint("cohort ", i/2)
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	hello(t, ranks[:2])
	hello(t, ranks[2:])
	empty(t, dir)
}

func TestContactPath(t *testing.T) {
	seen := map[string]string{}
	for _, c := range [][2]string{{"a", "b"}, {"a-b", ""}, {"", "a-b"}, {"a/b", ""}, {"a.b", ""}, {"../../x", "/y"}, {strings.Repeat("x", 300), ""}, {"prterun-n1-42@1", "writer"}, {"\x00\n", "é"}} {
		p := contactPath("dir", c[0], c[1])
		if filepath.Dir(p) != "dir" || len(filepath.Base(p)) > 120 || strings.ContainsAny(p, "\x00\n ") {
			t.Errorf("%q: %q", c, p)
		}
		if other, ok := seen[p]; ok {
			t.Errorf("%q and %q are the same: %s", c, other, p)
		}
		seen[p] = fmt.Sprint(c)
	}
}

// The file is for this user alone, whole at any time, and goes when rank 0 gives up.
func TestFileOfRankZero(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(bounded(t))
	done := make(chan []error, 1)
	go func() {
		_, errs := launch(ctx, t, ranksOf(3)[:1], inDir(dir))
		done <- errs
	}()
	path := contactPath(dir, "weft", "n")
	waitFile(t, path)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	c, err := readContact(path)
	if err != nil || c.size != 3 || len(c.addrs) == 0 || len(c.token) < 40 {
		t.Errorf("%+v, %v", c, err)
	}
	cancel()
	wants(t, "rank 0", (<-done)[0], context.Canceled)
	empty(t, dir)
}

// leave writes a contact as a dead job would leave it.
func leave(t *testing.T, dir string, addrs ...string) {
	t.Helper()
	c := contact{id: newCohortID(), size: 2, token: newToken(), addrs: addrs}
	if err := c.publish(contactPath(dir, "weft", "n")); err != nil {
		t.Fatal(err)
	}
}

// What a dead job has left behind is passed over: nobody answers there, or
// somebody else.
func TestFileLeftBehind(t *testing.T) {
	closed := listen(t)
	closed.Close()
	greeter, silent, other := listen(t), listen(t), listen(t)
	defer falseRoot(greeter, (&greeting{id: newCohortID()}).append(nil), nil)()
	defer falseRoot(other, []byte("220 mail.example.org ESMTP\r\n"), nil)()
	defer silent.Close() // accepts by its backlog, says nothing
	for name, addr := range map[string]net.Listener{"refused": closed, "another cohort": greeter, "silent": silent, "another service": other} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			leave(t, dir, addr.Addr().String())
			log, logger := testutil.NewLog(slog.LevelDebug)
			type result struct {
				ranks []Cohort
				errs  []error
			}
			set := func(i int, c *LauncherConfig) {
				inDir(dir)(i, c)
				c.Logger, c.explainAfter, c.DialTimeout = logger, 10*time.Millisecond, 200*time.Millisecond
			}
			one := make(chan result, 1)
			go func() {
				ranks, errs := launch(bounded(t), t, ranksOf(2)[1:], set)
				one <- result{ranks, errs}
			}()
			if name == "another service" { // who refuses is named at once
				log.Expect(t, "refused, and goes on looking for rank 0", "what answers is not rank 0", contactPath(dir, "weft", "n"))
			} else {
				log.Expect(t, "waits for rank 0 to answer", contactPath(dir, "weft", "n"))
			}
			zero, errs := launch(bounded(t), t, ranksOf(2)[:1], set)
			r := <-one
			if err := errors.Join(errs[0], r.errs[0]); err != nil {
				t.Fatal(err)
			}
			hello(t, append(zero, r.ranks...))
			empty(t, dir)
		})
	}
}

// A file that cannot be read is waited out, and the error says which it was.
func TestFileThatNeverComes(t *testing.T) {
	for name, write := range map[string]string{"missing": "", "garbage": "hello"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := contactPath(dir, "weft", "n")
			if write != "" {
				if err := os.WriteFile(path, []byte(write), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithTimeout(context.Background(), 150*time.Millisecond)
			defer cancel()
			_, errs := launch(ctx, t, ranksOf(2)[1:], inDir(dir))
			wants(t, "rank 1", errs[0], context.DeadlineExceeded)
			if !strings.Contains(errs[0].Error(), path) {
				t.Errorf("%v does not name %s", errs[0], path)
			}
		})
	}
}

// Ranks that disagree about the size do not meet.
func TestFileOfAnotherSize(t *testing.T) {
	dir := t.TempDir()
	log, logger := testutil.NewLog(slog.LevelDebug)
	ctx, cancel := context.WithCancelCause(bounded(t))
	enough := errors.New("the test has had enough")
	zero := make(chan error, 1)
	go func() {
		_, errs := launch(ctx, t, ranksOf(2)[:1], inDir(dir))
		zero <- errs[0]
	}()
	waitFile(t, contactPath(dir, "weft", "n"))
	go func() { // the wait says it as well as the error at its end
		log.Expect(t, "level=WARN", "waits for rank 0 to answer", "it is of a cohort of 2 ranks, not 3")
		cancel(enough)
	}()
	_, errs := launch(ctx, t, ranksOf(3)[1:2], func(i int, c *LauncherConfig) {
		inDir(dir)(i, c)
		c.Logger, c.explainAfter = logger, 500*time.Millisecond
	})
	wants(t, "rank 0", <-zero, enough)
	wants(t, "rank 1", errs[0], ErrRefused)
}

// Messages name the run folder in full: what "." is may differ between hosts.
func TestFolderInFull(t *testing.T) {
	t.Chdir(t.TempDir())
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, given := range []string{"", ".", "../" + filepath.Base(dir)} {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		_, errs := launch(ctx, t, ranksOf(2)[1:], func(_ int, c *LauncherConfig) { c.Dir, c.Name = given, "n" })
		cancel()
		if errs[0] == nil || !strings.Contains(errs[0].Error(), contactPath(dir, "weft", "n")) {
			t.Errorf("%q: %v", given, errs[0])
		}
	}
}

// Two jobs that cannot be told apart do not mix: the second says what to set.
func TestFileOfALivingJob(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(bounded(t))
	done := make(chan []error, 1)
	go func() {
		_, errs := launch(ctx, t, ranksOf(2)[:1], inDir(dir))
		done <- errs
	}()
	waitFile(t, contactPath(dir, "weft", "n"))
	_, errs := launch(bounded(t), t, ranksOf(2)[:1], inDir(dir))
	wants(t, "the second", errs[0], ErrConfig)
	if !strings.Contains(errs[0].Error(), "WEFT_JOB") {
		t.Errorf("%v does not say what to set", errs[0])
	}
	ranks, errs := launch(bounded(t), t, ranksOf(2, "WEFT_JOB=other"), inDir(dir))
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	hello(t, ranks)
	cancel()
	<-done
	empty(t, dir)
}

// rank 0 removes no file but its own.
func TestWithdraw(t *testing.T) {
	dir := t.TempDir()
	path := contactPath(dir, "weft", "n")
	mine := sampleContact()
	if err := mine.withdraw(path); err != nil {
		t.Errorf("a missing file: %v", err)
	}
	leave(t, dir, "h:1")
	_ = mine.withdraw(path)
	if _, err := os.Stat(path); err != nil {
		t.Errorf("another's file is gone: %v", err)
	}
	if err := errors.Join(mine.publish(path), mine.withdraw(path)); err != nil {
		t.Error(err)
	}
	empty(t, dir)
	if err := mine.publish(filepath.Join(dir, "no", "folder")); err == nil {
		t.Error("published in a folder that is not there")
	}
}

func TestNoJob(t *testing.T) {
	_, errs := launch(bounded(t), t, [][]string{{"PMI_RANK=1", "PMI_SIZE=3"}}, nil)
	wants(t, "no job", errs[0], ErrConfig)
	for _, word := range []string{"WEFT_JOB", "WEFT_ROOT", "WEFT_TOKEN"} {
		if !strings.Contains(errs[0].Error(), word) {
			t.Errorf("%v does not say %s", errs[0], word)
		}
	}
	_, err := FromLauncher(bounded(t), LauncherConfig{Environ: []string{"WEFT_RANK=1"}})
	wants(t, "half", err, ErrConfig)
}

func TestFromEnv(t *testing.T) {
	for _, name := range []string{envRank, envSize, envRoot, envToken, "PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_STEP_ID"} {
		t.Setenv(name, "")
	}
	for _, f := range []func(context.Context, LauncherConfig) (Cohort, error){FromEnv, FromLauncher} {
		c, err := f(bounded(t), LauncherConfig{})
		if err != nil || c.Size() != 1 || c.Rank() != 0 {
			t.Errorf("%v", err)
		}
	}
	t.Setenv(envRank, "4")
	_, err := FromLauncher(bounded(t), LauncherConfig{})
	wants(t, "half", err, ErrConfig)
}

// Rank 0 can be told which address to publish, and on which port to listen.
func TestPublishedAddress(t *testing.T) {
	l := listen(t)
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	for _, c := range []struct{ address, want string }{
		{"", "127.0.0.1:"},
		{"127.0.0.1", "127.0.0.1:"},
		{"login.example.org", "login.example.org:"},
		{fmt.Sprint("127.0.0.1:", port), fmt.Sprint("127.0.0.1:", port)},
		{fmt.Sprint("node1:", port), fmt.Sprint("node1:", port)},
		{"::1", "[::1]:"},
	} {
		s := starter{launch: Launch{Address: c.address, Node: "node7"}}
		l, addrs, err := s.listen(bounded(t))
		if err != nil {
			t.Errorf("%q: %v", c.address, err)
			continue
		}
		last := addrs[len(addrs)-1]
		if !strings.HasPrefix(last, c.want) || c.address != "" && len(addrs) != 1 {
			t.Errorf("%q: %q, want %q", c.address, addrs, c.want)
		}
		if c.address == "" && !strings.HasPrefix(addrs[len(addrs)-2], "node7:") {
			t.Errorf("no name of the node in %q", addrs)
		}
		l.Close()
	}
}
