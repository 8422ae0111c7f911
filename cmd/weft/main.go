// Command weft looks into running ADIOS2 streams and BP5 files, and joins
// streams. "weft --help" lists what it can do; docs/cli.md explains it.
package main

import (
	"os"

	"github.com/weft-fabric/weft/cmd/weft/internal/cli"
)

func main() { os.Exit(cli.Main()) }
