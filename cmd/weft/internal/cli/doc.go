// Package cli is the weft command: one constructor for each subcommand, which
// takes what it needs of the outside (see [Env]), so that tests run commands
// like any function.
//
// Exit codes: 0 all done; 1 something could not be done, and stderr says what;
// 2 wrong usage, or the name is not a dataset; 130 left at once by a later
// Ctrl-C; 141 whoever read the output has left. The forms that programs may rely on (exit codes, --json) are
// documented in docs/cli.md.
package cli
