package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/weft-fabric/weft/internal/ping"
)

// libfabric is a release of it, with its program fi_pingpong.
type libfabric struct {
	name    software
	command func(ctx context.Context, args ...string) *exec.Cmd // runs in its place
}

// findLibfabric looks for releases: that of this machine, and that of the Debian root, which is made if it has
// to be. notes say what there is not.
func findLibfabric(ctx context.Context) (list []libfabric, notes []string) {
	here := libfabric{command: func(ctx context.Context, args ...string) *exec.Cmd { return command(ctx, args[0], args[1:]...) }}
	if _, err := exec.LookPath("fi_pingpong"); err != nil {
		notes = append(notes, "no fi_pingpong on this machine (package libfabric-bin)")
	} else if err := here.ask(ctx); err != nil {
		notes = append(notes, err.Error())
	} else {
		list = append(list, here)
	}
	script, err := findScript()
	if err == nil {
		_, err = output(command(ctx, script, "make", suite))
	}
	root := libfabric{command: (&peer{script: script, dir: "/tmp"}).inside}
	if err == nil {
		err = root.ask(ctx)
	}
	if err != nil {
		return list, append(notes, "no libfabric in a root: "+err.Error())
	}
	if len(list) == 0 || list[0].name != root.name {
		list = append(list, root)
	}
	return list, notes
}

var errVersion = errors.New("bench: fi_info says no version")

// ask asks for the version.
func (l *libfabric) ask(ctx context.Context) error {
	text, err := output(l.command(ctx, "fi_info", "--version"))
	if err != nil {
		return err
	}
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(line, "libfabric: "); ok {
			l.name = software("libfabric " + strings.TrimSpace(v))
			return nil
		}
	}
	return fmt.Errorf("%w: %q", errVersion, text)
}

// pingpongScript starts both sides of fi_pingpong, in one place: each run in a root
// has a /dev/shm of its own. The client is tried until the server listens. The
// arguments are a port, and the options of both.
const pingpongScript = `
port=$1 server=$2 client=$3 # the last two are commands that say where a side runs, or nothing
shift 3
( $server fi_pingpong "$@" -B "$port"; echo "exit $?"; times ) 2>&1 | sed 's/^/server /' &
(
	for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		out=$($client fi_pingpong "$@" -P "$port" 127.0.0.1 2>&1) && break
		sleep 0.1
	done
	echo "$out"
	times
) | sed 's/^/client /'
wait
`

// pingpong does a row.
func (l *libfabric) pingpong(ctx context.Context, r shmRow) (shmSample, error) {
	m, err := newMeeting(2)
	if err != nil {
		return shmSample{}, err
	}
	_, port, _ := strings.Cut(m.root, ":")
	iters := r.iters(l.name)
	var on [2]string
	if r.Pin != ping.Anywhere {
		client, server, err := ping.CPUs(r.Pin)
		if err != nil {
			return shmSample{}, err
		}
		on = [2]string{fmt.Sprintf("taskset -c %d", server), fmt.Sprintf("taskset -c %d", client)}
	}
	cmd := l.command(ctx, "sh", "-c", pingpongScript, "sh", port, on[0], on[1], "-p", "shm", "-e", "rdm", "-I", strconv.Itoa(iters), "-S", strconv.Itoa(r.Size))
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return shmSample{}, err
	}
	if err := cmd.Wait(); err != nil {
		return shmSample{}, fmt.Errorf("%s: %w\n%s", l.name, err, tail(out.String(), 10))
	}
	s, err := parsePingpong(out.String(), r, iters)
	if err != nil {
		return shmSample{}, fmt.Errorf("%s: %w\n%s", l.name, err, tail(out.String(), 10))
	}
	return s, nil
}

var errPingpong = errors.New("bench: fi_pingpong did not say what it measured")

// The client's result and the processor times of both shells' children:
//
//	client bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec
//	client 64k     10k     =10k     1.2g        0.12s  11000.00       5.90       0.17
//	client 0m0.00s 0m0.00s
//	client 0m0.12s 0m0.01s
var (
	pingpongLine = regexp.MustCompile(`(?m)^client +\S+ +\S+ +=?\S+ +\S+ +[0-9.]+s +([0-9.]+) +([0-9.]+) +[0-9.]+ *$`)
	timesLine    = regexp.MustCompile(`(?m)^(client|server) ([0-9]+m[0-9.]+s) ([0-9]+m[0-9.]+s) *$`)
)

func parsePingpong(text string, r shmRow, iters int) (shmSample, error) {
	m := pingpongLine.FindStringSubmatch(text)
	if m == nil {
		return shmSample{}, errPingpong
	}
	mb, err1 := strconv.ParseFloat(m[1], 64)
	us, err2 := strconv.ParseFloat(m[2], 64)
	if err := errors.Join(err1, err2); err != nil {
		return shmSample{}, fmt.Errorf("%w: %w", errPingpong, err)
	}
	s := shmSample{Value: us}
	if r.Metric == bandwidth {
		s.Value = mb / 1e3
	}
	if s.Value <= 0 { // it prints two digits behind the point
		return shmSample{}, fmt.Errorf("%w: 0", errPingpong)
	}
	cpu := map[string]time.Duration{} // the last line of each is that of the children
	for _, t := range timesLine.FindAllStringSubmatch(text, -1) {
		user, err1 := time.ParseDuration(t[2])
		system, err2 := time.ParseDuration(t[3])
		if err := errors.Join(err1, err2); err != nil {
			return shmSample{}, fmt.Errorf("%w: %w", errPingpong, err)
		}
		cpu[t[1]] = user + system
	}
	ops := float64(2 * iters) // transfers
	s.Local, s.Peer = cpu["client"].Seconds()*1e6/ops, cpu["server"].Seconds()*1e6/ops
	return s, nil
}
