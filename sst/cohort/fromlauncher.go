package cohort

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// LauncherConfig says how the ranks of a launched job find each other.
type LauncherConfig struct {
	// Environ is the environment, as os.Environ returns it; nil means that of the
	// process.
	Environ []string
	// Dir is the run folder, which all ranks see; "" means ".". A file appears in
	// it while the cohort forms, if nothing better is there to find rank 0.
	Dir string
	// Name tells the cohorts of one job apart; all ranks of one have the same.
	Name string
	// Logger hears what TCPConfig.Logger hears; nil means slog.Default().
	Logger *slog.Logger

	Tuning
}

// FromEnv is FromLauncher with the environment of the process.
func FromEnv(ctx context.Context, config LauncherConfig) (Cohort, error) {
	config.Environ = append([]string{}, os.Environ()...)
	return FromLauncher(ctx, config)
}

// FromLauncher makes the cohort of a process that a launcher has started, and
// returns when all ranks are connected; ctx bounds that. Detect says who counts as
// a launcher. How the ranks meet, the first that is possible:
//
//   - WEFT_ROOT and WEFT_TOKEN: rank 0 listens there, the others dial it.
//   - The process manager, over PMI-1: rank 0 listens where it can and has the
//     manager tell the others. The manager is asked once in the life of a process:
//     make one cohort and share it between streams. A program that initialises MPI
//     itself must not use it so.
//   - A file in the run folder, for this user only: it is named after the job and
//     Name, holds addresses and a random token, and is removed when all are there.
//     The others look for it every 50 to 100 ms. One that a dead job has left
//     behind is passed over.
//
// Errors are those of TCP, and of files.
func FromLauncher(ctx context.Context, config LauncherConfig) (Cohort, error) {
	if config.Environ == nil {
		return FromEnv(ctx, config)
	}
	l, err := Detect(config.Environ)
	if err != nil {
		return nil, err
	}
	s := starter{config: config, env: parseEnviron(config.Environ), launch: l}
	if s.config.Logger == nil {
		s.config.Logger = slog.Default()
	}
	s.config.Dir = absolute(s.config.Dir)
	return s.start(ctx)
}

// absolute makes a folder one that messages can name: hosts may differ in what the
// current one is. "" is the current one.
func absolute(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		return abs
	}
	return cmp.Or(dir, ".")
}

// starter is one FromLauncher.
type starter struct {
	config LauncherConfig
	env    environment
	launch Launch
}

func (s *starter) start(ctx context.Context) (Cohort, error) {
	if s.launch.Means != meansNone {
		s.config.Logger.Debug("cohort: forming", "launch", s.launch.String(), "name", s.config.Name)
	}
	switch s.launch.Means {
	case meansNone:
		return Solo(), nil
	case meansAddress:
		return s.byAddress(ctx)
	case meansPMI:
		return s.byPMI(ctx)
	}
	return s.byFile(ctx)
}

// tcpConfig returns the configuration of this rank, without root and token.
func (s *starter) tcpConfig() TCPConfig {
	c := &s.config
	return TCPConfig{Rank: s.launch.Rank, Size: s.launch.Size, Logger: c.Logger, Tuning: c.Tuning}
}

// byAddress is for those who were told where rank 0 is.
func (s *starter) byAddress(ctx context.Context) (Cohort, error) {
	c := s.tcpConfig()
	c.Root, c.Token = s.launch.Root, s.env[envToken]
	return TCP(ctx, c)
}

// byFile has rank 0 publish itself in the run folder.
func (s *starter) byFile(ctx context.Context) (Cohort, error) {
	if s.launch.Job == "" {
		return nil, fmt.Errorf("%w: %s told rank %d of %d, but nothing that names the job: set %s to a name that no other job in %s has, or %s and %s",
			ErrConfig, s.launch.Launcher, s.launch.Rank, s.launch.Size, envJob, s.config.Dir, envRoot, envToken)
	}
	path := contactPath(s.config.Dir, s.launch.Job, s.config.Name)
	c := s.tcpConfig()
	c.Token = newToken() // for rank 0; the others read it
	c, err := c.resolve()
	if err != nil {
		return nil, err
	}
	if c.Rank != 0 {
		w := &watch{path: path, size: c.Size}
		return dial(ctx, c, "the file "+path, w.find)
	}
	if err := s.free(ctx, path); err != nil {
		return nil, err
	}
	l, addrs, err := s.listen(ctx)
	if err != nil {
		return nil, err
	}
	mine := contact{id: newCohortID(), size: c.Size, token: c.Token, addrs: addrs}
	if err := mine.publish(path); err != nil {
		_ = l.Close()
		return nil, err
	}
	c.Logger.Debug("cohort: rank 0 has published itself", "file", path, "addresses", addrs)
	return gather(ctx, c, l, mine.id, func() {
		if err := mine.withdraw(path); err != nil {
			c.Logger.Warn("cohort: rank 0 cannot remove the file in which it published itself", "err", err)
		}
	})
}

// free makes sure that a file of this job does not belong to another cohort which
// is forming at this moment: two jobs that cannot be told apart would mix.
func (s *starter) free(ctx context.Context, path string) error {
	there, err := readContact(path)
	if err != nil {
		return nil // none, or one that nobody can use: it is replaced
	}
	c, err := TCPConfig{Rank: 1, Size: 2, Token: there.token, Tuning: Tuning{DialTimeout: time.Second}}.resolve()
	if err != nil {
		return err
	}
	alive, err := c.callAll(ctx, place{addrs: there.addrs, id: &there.id})
	if err != nil {
		return ctx.Err()
	}
	_ = alive.conn.Close()
	return fmt.Errorf("%w: another cohort is forming with the file %s, at %v: set %s to a name that no other job in this folder has",
		ErrConfig, path, alive.conn.RemoteAddr(), envJob)
}

// listen opens the listener of a rank 0 that chooses its address, and returns
// under which addresses it may be found.
func (s *starter) listen(ctx context.Context) (net.Listener, []string, error) {
	host, port := s.launch.Address, "0"
	if h, p, err := net.SplitHostPort(host); err == nil {
		host, port = h, p
	}
	bind := ""
	if isLoopback(host) {
		bind = host
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(bind, port))
	if err != nil {
		return nil, nil, fmt.Errorf("cohort: rank 0 cannot listen: %w", err)
	}
	a, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		_ = l.Close()
		return nil, nil, fmt.Errorf("cohort: rank 0 listens at %v, which is no TCP address", l.Addr())
	}
	if host != "" {
		return l, []string{net.JoinHostPort(host, strconv.Itoa(a.Port))}, nil
	}
	return l, candidates(a.Port, s.launch.Node), nil
}
