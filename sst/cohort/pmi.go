package cohort

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/sst/internal/tcp"
)

// PMI-1 is a dialogue in lines with the process manager: "cmd=NAME key=value ...".
// Each question has one answer, initack has four. What is used of it:
//
//	cmd=initack pmiid=ID            cmd=initack, cmd=set size=N, cmd=set rank=R, cmd=set debug=D
//	cmd=init pmi_version=1 pmi_subversion=1
//	                                cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0
//	cmd=get_maxes                   cmd=maxes kvsname_max=A keylen_max=B vallen_max=C
//	cmd=get_my_kvsname              cmd=my_kvsname kvsname=K
//	cmd=put kvsname=K key=X value=V cmd=put_result rc=0 msg=success
//	cmd=barrier_in                  cmd=barrier_out, when all processes are there
//	cmd=get kvsname=K key=X         cmd=get_result rc=0 msg=success value=V
//	cmd=finalize                    cmd=finalize_ack
//
// initack comes first, and only over PMI_PORT. A value holds no blanks.
const (
	maxPMILine = 8 << 10 // that is read
	// maxPMIValue keeps what is written below the 1024 bytes of a line with which
	// some managers begin to read, whatever length of values they offer.
	maxPMIValue = 700
)

// pmiLine is a parsed line.
type pmiLine map[string]string

func parsePMI(line string) (pmiLine, error) {
	m := make(pmiLine)
	for _, word := range strings.Fields(line) {
		key, value, ok := strings.Cut(word, "=")
		if ok && key != "" {
			m[key] = value // a word without "=" is the rest of a message for people
		}
	}
	if m["cmd"] == "" {
		return nil, fmt.Errorf("%w: PMI: a line without a command: %.80q", ErrProtocol, line)
	}
	return m, nil
}

// pmi is a process's side of the dialogue.
type pmi struct {
	conn net.Conn
	r    *bufio.Reader
	kvs  string
	room int // bytes of a value
}

// openPMI connects to the process manager by a descriptor that the process was
// started with, or by a port.
func openPMI(ctx context.Context, env environment) (*pmi, error) {
	var conn net.Conn
	var err error
	if env["PMI_FD"] != "" {
		conn, err = pmiByFD(env)
	} else {
		conn, err = new(net.Dialer).DialContext(ctx, "tcp", env["PMI_PORT"])
	}
	if err != nil {
		return nil, fmt.Errorf("cohort: reaching the process manager: %w", err)
	}
	return &pmi{conn: conn, r: bufio.NewReaderSize(conn, maxPMILine)}, nil
}

// pmiByFD makes a connection of PMI_FD. It leaves the descriptor itself alone: if
// the number means something else in this process, that must not be closed.
func pmiByFD(env environment) (net.Conn, error) {
	n, err := strconv.ParseUint(env["PMI_FD"], 10, 31)
	if err != nil {
		return nil, fmt.Errorf("%w: PMI_FD=%q is not a descriptor", ErrConfig, env["PMI_FD"])
	}
	f, err := sys.DupFile(int(n), "PMI_FD")
	if err != nil {
		return nil, fmt.Errorf("PMI_FD=%d, which was not handed down to this process: %w", n, err)
	}
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("PMI_FD=%d, which is no connection in this process: %w", n, err)
	}
	return conn, nil
}

// line reads one line, of a bounded length.
func (p *pmi) line() (pmiLine, error) {
	b, err := p.r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return nil, fmt.Errorf("%w: PMI: a line of more than %d bytes", ErrLimit, maxPMILine)
	}
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("the process manager hung up; it serves a process once, so this one may have "+
			"asked before, by an MPI library or for another cohort: %w", err)
	}
	if err != nil {
		return nil, err
	}
	return parsePMI(string(b))
}

// ask sends a question and returns its answer, which must be the named one and say
// that all is well.
func (p *pmi) ask(question, answer string) (pmiLine, error) {
	if _, err := io.WriteString(p.conn, question+"\n"); err != nil {
		return nil, fmt.Errorf("PMI: %s: %w", question, err)
	}
	m, err := p.answer(answer)
	if err != nil {
		return nil, fmt.Errorf("PMI: %s: %w", question, err)
	}
	return m, nil
}

func (p *pmi) answer(want string) (pmiLine, error) {
	m, err := p.line()
	if err != nil {
		return nil, err
	}
	if m["cmd"] != want {
		return nil, fmt.Errorf("%w: the answer is %q, not %q", ErrProtocol, m["cmd"], want)
	}
	if rc, ok := m["rc"]; ok && rc != "0" {
		return nil, fmt.Errorf("%w: the process manager refuses: rc=%s %s", ErrProtocol, rc, m["msg"])
	}
	return m, nil
}

// introduce asks for rank and size, over PMI_PORT.
func (p *pmi) introduce(id string) (rank, size int, err error) {
	if _, err := p.ask("cmd=initack pmiid="+id, "initack"); err != nil {
		return 0, 0, err
	}
	set := make(environment)
	for range 3 { // size, rank, debug
		m, err := p.answer("set")
		if err != nil {
			return 0, 0, fmt.Errorf("PMI: initack: %w", err)
		}
		for k, v := range m {
			set[k] = v
		}
	}
	l, err := set.launch(launcherPMI, "rank", "size")
	return l.Rank, l.Size, err
}

// begin opens the dialogue proper.
func (p *pmi) begin() error {
	if _, err := p.ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init"); err != nil {
		return err
	}
	m, err := p.ask("cmd=get_maxes", "maxes")
	if err != nil {
		return err
	}
	room, err := environment(m).number("vallen_max")
	if err != nil {
		return fmt.Errorf("PMI: maxes: %w", err)
	}
	p.room = min(room-1, maxPMIValue) // the manager may count a final zero
	m, err = p.ask("cmd=get_my_kvsname", "my_kvsname")
	p.kvs = m["kvsname"]
	return err
}

func (p *pmi) put(key, value string) error {
	_, err := p.ask(fmt.Sprintf("cmd=put kvsname=%s key=%s value=%s", p.kvs, key, value), "put_result")
	return err
}

func (p *pmi) get(key string) (string, error) {
	m, err := p.ask(fmt.Sprintf("cmd=get kvsname=%s key=%s", p.kvs, key), "get_result")
	return m["value"], err
}

func (p *pmi) barrier() error {
	_, err := p.ask("cmd=barrier_in", "barrier_out")
	return err
}

func (p *pmi) finalize() error {
	_, err := p.ask("cmd=finalize", "finalize_ack")
	return err
}

// pmiKey is the key of a cohort's contact: short, as PMI wants it.
func pmiKey(name string) string {
	sum := sha256.Sum256([]byte(name))
	return "weft-" + hex.EncodeToString(sum[:8])
}

// pmiValue is a contact as a value of PMI: "ID,TOKEN,HOST:PORT,..." with as many
// addresses as have room.
func (c *contact) pmiValue(room int) (string, error) {
	v := c.id.String() + "," + c.token
	n := 0
	for _, a := range c.addrs {
		if len(v)+1+len(a) <= room {
			v += "," + a
			n++
		}
	}
	if n == 0 {
		return "", fmt.Errorf("%w: PMI: a value has %d bytes: no room for an address", ErrLimit, room)
	}
	return v, nil
}

func parsePMIValue(v string) (contact, error) {
	var c contact
	parts := strings.Split(v, ",")
	if len(parts) < 3 || len(parts) > 2+maxAddresses || parts[1] == "" {
		return c, fmt.Errorf("%w: PMI: %.80q does not say where rank 0 is", ErrProtocol, v)
	}
	if err := c.id.parse(parts[0]); err != nil {
		return c, fmt.Errorf("PMI: %w", err)
	}
	c.token = parts[1]
	for _, a := range parts[2:] {
		if _, _, err := net.SplitHostPort(a); err != nil {
			return c, fmt.Errorf("%w: PMI: %q is not an address", ErrProtocol, a)
		}
		c.addrs = append(c.addrs, a)
	}
	return c, nil
}

// byPMI has the process manager tell the others where rank 0 is.
func (s *starter) byPMI(ctx context.Context) (Cohort, error) {
	explain := time.AfterFunc(tcp.OrDefault(s.config.explainAfter, 3*time.Second), func() {
		level := slog.LevelWarn
		if s.launch.Rank > 1 { // two are enough, of which one may be who is missing
			level = slog.LevelDebug
		}
		s.config.Logger.Log(ctx, level, "cohort: waits for the process manager, until all processes of the job have asked it too",
			"launch", s.launch.String(), "until", deadline(ctx))
	})
	m, err := s.meet(ctx)
	explain.Stop()
	if err != nil {
		return nil, fmt.Errorf("cohort: %v: %w", s.launch, err)
	}
	if s.launch.Size == 1 { // as the manager says, over PMI_PORT
		m.close()
		return Solo(), nil
	}
	c := s.tcpConfig()
	c.Token = m.token
	c, err = c.resolve()
	if err != nil {
		m.close()
		return nil, err
	}
	if m.listener != nil {
		return gather(ctx, c, m.listener, m.id, nil)
	}
	p := place{addrs: m.addrs, id: &m.id, token: m.token, from: strings.Join(m.addrs, " or ")}
	return dial(ctx, c, p.from, func(context.Context, func(error)) (place, error) { return p, nil })
}

// meeting is what comes of the dialogue: where rank 0 is, and at rank 0 the
// listener.
type meeting struct {
	contact
	listener net.Listener
}

func (m *meeting) close() {
	if m.listener != nil {
		_ = m.listener.Close()
	}
}

// meet is the whole dialogue with the process manager.
func (s *starter) meet(ctx context.Context) (m meeting, err error) {
	p, err := openPMI(ctx, s.env)
	if err != nil {
		return m, err
	}
	defer p.conn.Close()
	release := tcp.EndWith(ctx, p.conn)
	defer func() {
		if err = release(err); err != nil {
			m.close()
		}
	}()
	if s.env["PMI_FD"] == "" {
		if s.launch.Rank, s.launch.Size, err = p.introduce(s.env["PMI_ID"]); err != nil {
			return m, err
		}
	}
	if err := p.begin(); err != nil {
		return m, err
	}
	key := pmiKey(s.config.Name)
	var failed error
	if s.launch.Rank == 0 {
		// If that fails, the others must not wait in the barrier.
		m, failed = s.offer(ctx, p, key)
	}
	if err := p.barrier(); err != nil {
		return m, err
	}
	if s.launch.Rank != 0 {
		v, err := p.get(key)
		if err != nil {
			return m, fmt.Errorf("rank 0 has published nothing: %w", err)
		}
		if m.contact, err = parsePMIValue(v); err != nil {
			return m, err
		}
	}
	if err := p.finalize(); err != nil {
		return m, err
	}
	return m, failed
}

// offer listens and publishes where.
func (s *starter) offer(ctx context.Context, p *pmi, key string) (meeting, error) {
	l, addrs, err := s.listen(ctx)
	if err != nil {
		return meeting{}, err
	}
	m := meeting{contact{id: newCohortID(), size: s.launch.Size, token: newToken(), addrs: addrs}, l}
	v, err := m.pmiValue(p.room)
	if err == nil {
		err = p.put(key, v)
	}
	return m, err
}
