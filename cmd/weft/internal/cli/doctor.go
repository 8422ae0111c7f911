package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-fabric/weft/internal/doctor"
)

type doctorOptions struct {
	pid  int
	json bool
}

func newDoctor(env Env) *cobra.Command {
	var opt doctorOptions
	cmd := &cobra.Command{
		Use:        "doctor [--pid PID] [--json]",
		SuggestFor: []string{"check", "diagnose", "hooks", "monitor", "env"},
		Short:      "Look at what this machine and this process allow, and what to do about what is missing",
		Example: `  weft doctor
  weft doctor --pid $(pgrep -n simulation)
  weft doctor --json | jq '.checks[] | select(.state != "works")'`,
		Long: `Look at what Weft needs of the machine, and at what it uses if it is there: features
of the kernel, limits of memory and descriptors, namespaces, network devices and
libraries, memory monitors. What can be tried is tried. What is missing or limited
has a remedy below it.

The exit code is 1 if something is missing that Weft cannot do without: memory files,
sockets, epoll, and the identities of kernel and network namespace; also if --pid names
a process that cannot be looked at.

Other libraries hook memory functions of the C library, to hear when memory goes away.
Two of them in a process make each other deaf. --pid PID says whose hooks there are in a
process, which has to be the same user's, or any for the superuser. Without it c_library
is of this command itself. All other checks always are: start it where the program runs,
with its limits.`,
		Args: names(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("pid") && opt.pid <= 0 {
				return usagef("--pid %d is no process", opt.pid)
			}
			return runDoctor(cmd.Context(), env, opt)
		},
	}
	f := cmd.Flags()
	f.IntVar(&opt.pid, "pid", 0, "look for hooks in the process with this number")
	f.BoolVar(&opt.json, "json", false, "print one JSON object")
	return cmd
}

func runDoctor(ctx context.Context, env Env, opt doctorOptions) error {
	r, err := lookAt(ctx, doctor.Config{Root: env.Root, PID: opt.pid, LibraryPath: environment(env, "LD_LIBRARY_PATH")})
	if err != nil {
		return err
	}
	out := newOutput(env.Stdout)
	if opt.json {
		b, err := jsonLine(r)
		if err != nil {
			return err
		}
		out.bytes(b)
	} else {
		writeDoctor(out, &r)
	}
	if err := out.flush(); err != nil {
		return err
	}
	if opt.pid != 0 && r.Hooks.Error != "" {
		return fmt.Errorf("process %d could not be looked at: %s", opt.pid, r.Hooks.Error)
	}
	return missing(&r)
}

// lookAt leaves the looking alone when it is interrupted: reading what another process has loaded may take long, or hang with its file system. It
// ends with this process.
func lookAt(ctx context.Context, c doctor.Config) (doctor.Report, error) {
	seen := make(chan doctor.Report, 1)
	go func() { seen <- doctor.Examine(c) }()
	select {
	case r := <-seen:
		return r, nil
	case <-ctx.Done():
		return doctor.Report{}, context.Cause(ctx)
	}
}

// missing is an error that names what Weft needs and has not.
func missing(r *doctor.Report) error {
	var list []string
	for _, c := range r.Checks {
		if c.Needed && c.State == doctor.Missing {
			list = append(list, c.Name)
		}
	}
	if list == nil {
		return nil
	}
	return fmt.Errorf("missing here, and needed: %s", strings.Join(list, ", "))
}

func environment(env Env, name string) string {
	for _, v := range env.Environ {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// writeDoctor has a line for each check, and below it what to do.
func writeDoctor(out *output, r *doctor.Report) {
	rows := [][]string{{"CHECK", "STATE", "FOUND"}}
	for _, c := range r.Checks {
		name := c.Name
		if c.Needed {
			name += " *"
		}
		rows = append(rows, []string{name, string(c.State), wordOrDash(oneLine(c.Found))})
	}
	for i, line := range alignColumns(rows, len(rows[0])) {
		out.text(strings.TrimPrefix(line, "  ") + "\n")
		if i > 0 && r.Checks[i-1].Remedy != "" {
			out.printf("    -> %s\n", printable(r.Checks[i-1].Remedy))
		}
	}
	out.text("\n* Weft needs it\n")
}
