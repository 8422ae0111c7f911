package cli

import (
	"context"
	"io"
	"os"

	"golang.org/x/term"

	_ "github.com/weft-fabric/weft/operator/all" // compressed variables are read
)

// Env is what the commands use of the outside.
type Env struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Width is the width of the terminal that Stdout is, 0 if it is none.
	Width int
	// Color says that colours may be used; never if Width is 0.
	Color bool
	// Size returns the size of the terminal that Stdout is, as it is now. Nil if it
	// is none, or one on which nothing can be drawn in place.
	Size func() (width, height int)
	// Environ is the environment, as os.Environ returns it, where launchers put
	// what they have to say.
	Environ []string
	// Root is where the files of the machine are, /proc and /sys; "" means /.
	Root string
	// Self is how to start this program again: path, then argv[0].
	Self [2]string
}

// Main runs the command of this process and returns its exit code.
func Main() int {
	ctx, stop := signals(os.Stderr)
	defer stop()
	return Run(ctx, processEnv(), os.Args[1:])
}

// processEnv is the environment of this process.
func processEnv() Env {
	env := Env{Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Self: [2]string{"", os.Args[0]}}
	if path, err := os.Executable(); err == nil {
		env.Self[0] = path
	}
	if fd := int(os.Stdout.Fd()); term.IsTerminal(fd) {
		if w, _, err := term.GetSize(fd); err == nil {
			env.Width = w
		}
		smart := env.Width > 0 && os.Getenv("TERM") != "dumb"
		env.Color = smart && os.Getenv("NO_COLOR") == ""
		if smart {
			env.Size = func() (int, int) {
				w, h, err := term.GetSize(fd)
				if err != nil {
					return env.Width, 0
				}
				return w, h
			}
		}
	}
	return env
}

func (e Env) root() string {
	if e.Root == "" {
		return "/"
	}
	return e.Root
}

// Run runs one command and returns its exit code.
func Run(ctx context.Context, env Env, args []string) int {
	root := newRoot(env)
	root.SetArgs(args)
	return exitCode(env.Stderr, root.ExecuteContext(ctx))
}
