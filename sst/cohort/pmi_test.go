package cohort

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
)

// manager is a process manager that speaks PMI-1 to n processes.
type manager struct {
	n       int
	vallen  int
	twist   func(rank int, question, answer string) string // "" hangs up
	barrier sync.WaitGroup
	wg      sync.WaitGroup

	mu  sync.Mutex
	kvs map[string]string
}

func newManager(t *testing.T, n int) *manager {
	m := &manager{n: n, vallen: 1024, kvs: make(map[string]string)}
	m.twist = func(_ int, _, answer string) string { return answer }
	m.barrier.Add(n)
	t.Cleanup(m.wg.Wait)
	return m
}

// serve speaks to one process until it hangs up or has finished.
func (m *manager) serve(rank int, conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		question := strings.TrimSuffix(line, "\n")
		if q, ok := strings.CutPrefix(question, "cmd=initack pmiid="); ok {
			fmt.Sscan(q, &rank)
		}
		answer := m.twist(rank, question, m.reply(rank, question))
		if answer == "" {
			return
		}
		if _, err := conn.Write([]byte(answer + "\n")); err != nil || question == "cmd=finalize" {
			return
		}
	}
}

func (m *manager) reply(rank int, question string) string {
	cmd, rest, _ := strings.Cut(question, " ")
	args := map[string]string{}
	for _, a := range strings.Split(rest, " ") {
		k, v, _ := strings.Cut(a, "=")
		args[k] = v
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch cmd {
	case "cmd=initack":
		return fmt.Sprintf("cmd=initack\ncmd=set size=%d\ncmd=set rank=%d\ncmd=set debug=0", m.n, rank)
	case "cmd=init":
		return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"
	case "cmd=get_maxes":
		return fmt.Sprint("cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=", m.vallen)
	case "cmd=get_my_kvsname":
		return "cmd=my_kvsname kvsname=kvs_1_0_node1"
	case "cmd=put":
		if args["kvsname"] != "kvs_1_0_node1" || len(args["key"]) > 63 || len(args["value"]) >= m.vallen {
			return "cmd=put_result rc=-1 msg=bad"
		}
		m.kvs[args["key"]] = args["value"]
		return "cmd=put_result rc=0 msg=success"
	case "cmd=barrier_in":
		m.mu.Unlock()
		m.barrier.Done()
		m.barrier.Wait()
		m.mu.Lock()
		return "cmd=barrier_out"
	case "cmd=get":
		if v, ok := m.kvs[args["key"]]; ok {
			return "cmd=get_result rc=0 msg=success value=" + v
		}
		return "cmd=get_result rc=-1 msg=key_not_found value=unknown"
	case "cmd=finalize":
		return "cmd=finalize_ack"
	}
	return "cmd=unknown rc=-1"
}

// fd gives a process a connection to the manager, as a descriptor.
func (m *manager) fd(t *testing.T, rank int) []string {
	t.Helper()
	l := listen(t)
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	f, err := client.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close(); server.Close() })
	m.wg.Go(func() { m.serve(rank, server) })
	return []string{fmt.Sprint("PMI_RANK=", rank), fmt.Sprint("PMI_SIZE=", m.n), fmt.Sprint("PMI_FD=", f.Fd())}
}

// port lets processes connect to the manager.
func (m *manager) port(t *testing.T) string {
	l := listen(t)
	t.Cleanup(func() { l.Close() })
	m.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			m.wg.Go(func() { m.serve(-1, conn) })
		}
	})
	return l.Addr().String()
}

// launch calls FromLauncher for processes with the given environments.
func launch(ctx context.Context, t *testing.T, environs [][]string, change func(int, *LauncherConfig)) ([]Cohort, []error) {
	t.Helper()
	ranks, errs := make([]Cohort, len(environs)), make([]error, len(environs))
	var wg sync.WaitGroup
	for i, e := range environs {
		c := LauncherConfig{Environ: e, Dir: "/nonexistent"}
		if change != nil {
			change(i, &c)
		}
		wg.Go(func() { ranks[i], errs[i] = FromLauncher(ctx, c) })
	}
	wg.Wait()
	closeAll(t, ranks)
	return ranks, errs
}

// hello sends a word up and one down.
func hello(t *testing.T, ranks []Cohort) {
	t.Helper()
	byRank := make([]Cohort, len(ranks))
	for _, c := range ranks {
		byRank[c.Rank()] = c
	}
	ends := joinAll(t, byRank, "s")
	for i := 1; i < len(ends); i++ {
		ends[i].send(0, "up")
		ends[0].wants(i, "up")
		ends[0].send(i, "down")
		ends[i].wants(0, "down")
	}
}

func TestPMI(t *testing.T) {
	for _, port := range []bool{false, true} {
		t.Run(fmt.Sprint("port ", port), func(t *testing.T) {
			m := newManager(t, 3)
			var environs [][]string
			addr := ""
			if port {
				addr = m.port(t)
			}
			for i := range 3 {
				if port {
					environs = append(environs, []string{"PMI_PORT=" + addr, fmt.Sprint("PMI_ID=", i)})
				} else {
					environs = append(environs, m.fd(t, i))
				}
			}
			ranks, errs := launch(bounded(t), t, environs, nil)
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			hello(t, ranks)
		})
	}
}

// What a manager may answer that does not work.
func TestPMIThatFails(t *testing.T) {
	at := func(question, answer string) func(int, string, string) string {
		return func(_ int, q, a string) string {
			if strings.HasPrefix(q, question) {
				return answer
			}
			return a
		}
	}
	for _, c := range []struct {
		name  string
		twist func(int, string, string) string
		err   error
		says  string
	}{
		{"hangs up", at("cmd=init", ""), nil, "it serves a process once"},
		{"refuses", at("cmd=init", "cmd=response_to_init rc=-1 msg=no"), ErrProtocol, "rc=-1 no"},
		{"another answer", at("cmd=get_maxes", "cmd=other"), ErrProtocol, `"other"`},
		{"no command", at("cmd=get_maxes", "hello there"), ErrProtocol, "hello there"},
		{"no number", at("cmd=get_maxes", "cmd=maxes vallen_max=lots"), ErrConfig, "lots"},
		{"small values", at("cmd=get_maxes", "cmd=maxes vallen_max=30"), nil, ""},
		{"long line", at("cmd=get_my", "cmd=my_kvsname kvsname="+strings.Repeat("x", maxPMILine)), ErrLimit, ""},
		{"nothing there", at("cmd=get ", "cmd=get_result rc=-1 msg=key_not_found value=unknown"), nil, ""},
		{"something else there", at("cmd=get ", "cmd=get_result rc=0 msg=success value=x"), nil, ""},
		{"dies in the barrier", at("cmd=barrier", ""), nil, "hung up"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newManager(t, 2)
			m.twist = c.twist
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_, errs := launch(ctx, t, [][]string{m.fd(t, 0), m.fd(t, 1)}, nil)
			for rank, err := range errs {
				if err == nil {
					t.Fatalf("rank %d has a cohort", rank)
				}
			}
			if c.err != nil {
				wants(t, "rank 0", errs[0], c.err)
			}
			if !strings.Contains(errs[1].Error(), c.says) {
				t.Errorf("%v does not say %q", errs[1], c.says)
			}
		})
	}
}

// The barrier may last: the wait explains itself and ends with the context.
func TestPMIBarrierThatLasts(t *testing.T) {
	m := newManager(t, 2)
	defer m.barrier.Done() // for the process that never comes
	log, logger := testutil.NewLog(slog.LevelDebug)
	ctx, cancel := context.WithCancelCause(context.Background())
	enough := errors.New("the test has had enough")
	go func() {
		log.Expect(t, "level=WARN", "waits for the process manager")
		cancel(enough)
	}()
	_, errs := launch(ctx, t, [][]string{m.fd(t, 0)}, func(_ int, c *LauncherConfig) {
		c.Logger, c.explainAfter = logger, 10*time.Millisecond
	})
	wants(t, "rank 0", errs[0], enough)
}

// A descriptor that is something else in this process is left alone.
func TestPMIWrongDescriptor(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for name, fd := range map[string]string{"a file": fmt.Sprint(f.Fd()), "nothing": "9999", "no number": "x"} {
		_, errs := launch(bounded(t), t, [][]string{{"PMI_RANK=0", "PMI_SIZE=2", "PMI_FD=" + fd}}, nil)
		if errs[0] == nil || !strings.Contains(errs[0].Error(), "PMI_FD=") {
			t.Errorf("%s: %v", name, errs[0])
		}
	}
	if _, err := f.WriteString("x"); err != nil {
		t.Errorf("the file was closed: %v", err)
	}
	_, errs := launch(bounded(t), t, [][]string{{"PMI_PORT=127.0.0.1:1", "PMI_ID=0"}}, nil)
	if errs[0] == nil {
		t.Error("nobody listens there")
	}
}

// One rank asks nobody.
func TestPMISolo(t *testing.T) {
	ranks, errs := launch(bounded(t), t, [][]string{{"PMI_RANK=0", "PMI_SIZE=1", "PMI_FD=9999"}}, nil)
	if errs[0] != nil || ranks[0].Size() != 1 {
		t.Error(errs[0])
	}
}

func FuzzPMI(f *testing.F) {
	f.Add("cmd=get_result rc=0 msg=success value=a=b,c\n")
	f.Add("cmd=set size=3\ncmd=set rank=1\n")
	f.Fuzz(func(t *testing.T, text string) {
		a, b := net.Pipe()
		defer a.Close()
		go func() {
			b.Write([]byte(text))
			b.Close()
		}()
		p := &pmi{conn: a, r: bufio.NewReaderSize(a, maxPMILine)}
		for range len(text) + 1 {
			if _, err := p.line(); err != nil && !errors.Is(err, ErrProtocol) {
				return
			}
		}
		t.Error("no end")
	})
}

// Of many processes that wait for a barrier two explain it.
func TestPMIBarrierIsExplainedTwice(t *testing.T) {
	const size = 6
	m := newManager(t, size)
	defer m.barrier.Done() // for the process that never comes
	log, logger := testutil.NewLog(slog.LevelDebug)
	ctx, cancel := context.WithCancelCause(context.Background())
	var environ [][]string
	for rank := range size - 1 {
		environ = append(environ, m.fd(t, rank))
	}
	go func() {
		for range size - 1 {
			log.Expect(t, "waits for the process manager")
		}
		cancel(errors.New("enough"))
	}()
	launch(ctx, t, environ, func(_ int, c *LauncherConfig) { c.Logger, c.explainAfter = logger, 10*time.Millisecond })
	if n := strings.Count(log.String(), "level=WARN msg=\"cohort: waits"); n != 2 {
		t.Errorf("%d ranks explain the wait:\n%s", n, log)
	}
}
