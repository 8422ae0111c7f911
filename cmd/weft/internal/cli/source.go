package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weft-fabric/weft/bp"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/sst/cohort"
	"github.com/weft-fabric/weft/step"
)

// source is a stream or a file whose steps are taken one after the other.
type source interface {
	// Next returns the next step, io.EOF behind the last. The step before must
	// have been ended.
	Next(ctx context.Context) (*step.Step, error)
	// Ranks is the number of ranks that a writer of the same needs.
	Ranks() int
	// Live reports whether this is a stream.
	Live() bool
	// Describe returns lines for ls -v.
	Describe() []string
	Close() error
}

// sourceOptions say how to open a source.
type sourceOptions struct {
	follow  bool
	timeout time.Duration
	session *sst.Session  // for streams; nil makes one
	params  sst.Params    // of a reader, for streams
	cohort  cohort.Cohort // that reads a stream together; nil for this process alone
	observe observing     // of a stream: only look
	screen  io.Reader     // where the writer's contact comes from without a file
}

var (
	// errNothing says that the name names nothing.
	errNothing = errors.New("no such file or stream")
	// errNoStep is the cause of a wait for a step that took too long.
	errNoStep = errors.New("no step came within the time-out")
)

const contactSuffix = ".sst"

// openSource decides by looking whether name is a file or a stream. With a
// time-out it waits for something of that name.
func openSource(ctx context.Context, env Env, name string, opt sourceOptions) (source, error) {
	log := newLogger(env.Stderr)
	if opt.params.RegistrationMethod == registrationScreen { // there is no file to look for
		opt.screen = env.Stdin
		return openStream(ctx, log, name, opt)
	}
	if bare := strings.TrimRight(name, "/"); bare != "" {
		name = bare // a stream's name has none at its end
	}
	if err := checkName(name); err != nil {
		return nil, err
	}
	live, err := awaitName(ctx, log, name, opt)
	if err != nil {
		return nil, err
	}
	if live {
		return openStream(ctx, log, name, opt)
	}
	r, err := bp.Open(ctx, name, bp.Config{Follow: opt.follow, Timeout: opt.timeout, Notify: func(n bp.Notice) { log.Warn(n.String()) }})
	if err != nil {
		return nil, err
	}
	next, stop := iter.Pull2(r.Steps(ctx))
	return &fileSource{Reader: r, next: next, stop: stop}, nil
}

// awaitName reports whether name is a stream, after waiting for it to be
// anything if that was asked for.
func awaitName(ctx context.Context, log *slog.Logger, name string, opt sourceOptions) (live bool, err error) {
	limit := opt.timeout
	if limit == 0 && opt.follow {
		limit = 1<<63 - 1
	}
	const every = 100 * time.Millisecond // file systems offer no event
	begin, told := time.Now(), false
	for {
		waited := time.Since(begin)
		exists, live := look(name)
		// A stream may come beside a folder that is no file; package bp follows files.
		if exists && (live || opt.follow || waited >= limit || !bareFolder(name)) {
			return live, nil
		}
		if waited >= limit {
			return false, nothing(name, limit)
		}
		if waited > 3*time.Second && !told {
			told = true
			log.Warn(fmt.Sprintf("waiting for a file or stream %s to appear", name))
		}
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-time.After(min(every, limit-waited)):
		}
	}
}

// look tells what name is. Something that is neither is left to package bp,
// which says what it is.
func look(name string) (exists, live bool) {
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		// A folder of the same name that is no file does not hide a stream.
		return true, bareFolder(name) && isFile(name+contactSuffix)
	case err == nil && strings.HasSuffix(name, contactSuffix):
		return true, true
	case err == nil:
		// A stream "x" may have other files called x near it.
		return true, isContact(name + contactSuffix)
	case !errors.Is(err, fs.ErrNotExist):
		return true, false
	}
	_, err = os.Stat(name + contactSuffix)
	return err == nil, err == nil
}

// indexName is the file by which a folder is a BP5 file.
const indexName = "md.idx"

// bareFolder reports whether a name is a folder that is no BP5 file, or not yet.
func bareFolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir() && !isFile(filepath.Join(name, indexName))
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// checkName refuses names that are nearly right, and says which are.
func checkName(name string) error {
	if !isFile(name) {
		return nil
	}
	base, folder := filepath.Base(name), filepath.Dir(name)
	part := base == indexName || base == "md.0" || base == "mmd.0" || strings.HasPrefix(base, "data.")
	switch {
	case part && isFile(filepath.Join(folder, indexName)):
		if folder == "." {
			if abs, err := filepath.Abs(folder); err == nil {
				folder = abs
			}
		}
		return usagef("%s is a part of a BP5 file: give the folder, %s", name, folder)
	case strings.HasSuffix(name, contactSuffix) || isContact(name+contactSuffix):
		return nil
	case isContact(name):
		return usagef("%s is the contact file of a stream, but its name does not end in %s: rename it to %s%s", name, contactSuffix, name, contactSuffix)
	}
	return nil
}

// isContact reports whether a file begins as contact files do.
func isContact(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, len("#ADIOS2-SST"))
	_, err = io.ReadFull(f, head)
	return err == nil && string(head) == "#ADIOS2-SST"
}

func nothing(name string, waited time.Duration) error {
	hint := "; --timeout waits for one"
	if waited > 0 {
		hint = fmt.Sprintf(" after %v", waited)
	}
	if _, err := os.Stat(filepath.Dir(name)); err != nil {
		return fmt.Errorf("%s: %w: its folder does not exist", name, errNothing)
	}
	if near := similar(name); near != "" {
		hint += "; there are: " + near
	}
	return fmt.Errorf("%s: %w%s", name, errNothing, hint)
}

// similar lists datasets near the place where name was looked for.
func similar(name string) string {
	var found []string
	for _, pattern := range []string{"*" + contactSuffix, "*.bp"} {
		list, _ := filepath.Glob(filepath.Join(filepath.Dir(name), pattern)) // the patterns are constant
		found = append(found, list...)
	}
	const most = 5
	if len(found) > most {
		found = append(found[:most], "...")
	}
	return strings.Join(found, ", ")
}

// fileSource is a BP5 file.
type fileSource struct {
	*bp.Reader
	next func() (*step.Step, error, bool)
	stop func()
}

func (s *fileSource) Next(context.Context) (*step.Step, error) {
	st, err, ok := s.next()
	if !ok {
		return nil, io.EOF
	}
	return st, err
}

func (s *fileSource) Ranks() int { return max(1, s.Writers()) }

func (s *fileSource) Live() bool { return false }

func (s *fileSource) Close() error {
	s.stop()
	return s.Reader.Close()
}

// sayUnfinished tells of a file that its writer has not closed.
func sayUnfinished(stderr io.Writer, name string, src source) {
	if f, ok := src.(*fileSource); ok && f.Active() {
		fmt.Fprintf(stderr, "weft: %s: unfinished: %d whole steps; its writer is at work, or ended without close\n", printable(name), f.NumSteps())
	}
}

func (s *fileSource) Describe() []string {
	i := s.Info()
	lines := []string{
		"  of steps:      " + fmt.Sprint(i.Steps),
		"  of writers:    " + fmt.Sprint(i.Writers),
		"  written by:    ADIOS2 " + i.Release,
		"  array order:   " + order(i.ColumnMajor),
	}
	if i.Active {
		lines = append(lines, "  unfinished:    its writer is at work, or ended without close")
	}
	return lines
}

func order(columnMajor bool) string {
	if columnMajor {
		return "column-major, shown reversed"
	}
	return "row-major"
}
