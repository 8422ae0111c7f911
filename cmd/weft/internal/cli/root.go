package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// newRoot makes the command with all its subcommands.
func newRoot(env Env) *cobra.Command {
	root := &cobra.Command{
		Use:   "weft",
		Short: "Look into running ADIOS2 streams and BP5 files, and join streams",
		Long: `weft reads the live SST streams of ADIOS2 programs, and BP5 files, and feeds
ADIOS2 readers.

NAME is a BP5 folder, or a stream: its contact file, with or without ".sst".`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%w (see %s --help)", err, cmd.CommandPath())
	})
	root.AddCommand(newLs(env), newDump(env), newPipe(env), newDemo(env), newDemoWriter(env), newDemoReader(env), newVersion(env))
	return root
}

func newVersion(env Env) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(env.Stdout, "weft %s %s %s/%s\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

// version is what the Go tool knows of the build: a tag, or a commit.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
