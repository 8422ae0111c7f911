package cli

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// suggestDistance is how many letters of a command may be wrong.
const suggestDistance = 2

// newRoot makes the command with all its subcommands.
func newRoot(env Env) *cobra.Command {
	root := &cobra.Command{
		Use:   "weft",
		Short: "Look into running ADIOS2 streams and BP5 files, join streams, and measure communication",
		Long: `weft reads the live SST streams of ADIOS2 programs, and BP5 files, and feeds
ADIOS2 readers. It shows and measures the ways in which processes can communicate
here (info, ping), and what the machine allows (doctor).

NAME is a BP5 folder, or a stream: its contact file, with or without ".sst".

Exit codes: 0 all done; 1 something could not be done, and stderr says what;
2 wrong usage, or NAME is no whole dataset; 130 left at once by a later Ctrl-C;
141 whoever read the output has left.

Unless told otherwise: ls and dump do not wait for NAME to appear, wait 60s to
attach to a stream, and wait for its next step without end; pipe waits for one
reader and queues at most 4 steps for it.

Ctrl-C ends a command cleanly; again after one second, it leaves at once. While a
command attaches to a stream, that can HANG OR CRASH an ADIOS2 writer.`,
		Example: `  weft demo
  weft ls -l run.bp
  weft dump -v T --steps 10 sim
  weft pipe run.bp replay
  weft stat sim
  weft info
  weft doctor
  weft ping
  weft completion bash > weft.bash`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version(),
		Args:          onlyCommands,
		RunE:          showHelp,

		SuggestionsMinimumDistance: suggestDistance,
	}
	root.Flags().Bool("version", false, "print the version") // cobra's own would take -v
	root.SetVersionTemplate(versionLine())
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(newHelp())
	root.AddCommand(newLs(env), newDump(env), newPipe(env), newStat(env), newParams(env), newInfo(env), newDoctor(env), newPing(env), newPingPeer(env), newDemo(env), newDemoWriter(env), newDemoReader(env), newVersion(env))
	strictCompletion(root)
	return root
}

func newVersion(env Env) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  names(),
		RunE: func(*cobra.Command, []string) error {
			_, err := io.WriteString(env.Stdout, versionLine())
			return err
		},
	}
}

func versionLine() string {
	return fmt.Sprintf("weft %s %s %s/%s\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// version is what the Go tool knows of the build: a tag, or a commit.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
