package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/sst/cohort"
)

// targetConfig configures the writer of this process, which stands for some
// ranks, or none; a cohort of nil is this process alone.
func targetConfig(session *sst.Session, p sst.Params, c cohort.Cohort, ranks int, screen io.Writer) sst.WriterConfig {
	if ranks == 0 {
		ranks = sst.NoRanks
	}
	return sst.WriterConfig{Session: session, Params: p, Cohort: c, Ranks: ranks, Screen: screen}
}

// registrationScreen is the RegistrationMethod without a contact file: people
// carry the writer's contact from one screen to the other.
const registrationScreen = "Screen"

// sourceConfig configures the reader of this process.
func sourceConfig(session *sst.Session, name string, p sst.Params, opt sourceOptions) sst.ReaderConfig {
	return sst.ReaderConfig{Session: session, Params: p, Cohort: opt.cohort, Observer: opt.observe.of(name), Screen: opt.screen}
}

// observing says whether a command attaches to a stream as an observer, which
// nobody waits for. ADIOS2 writers know no observers.
type observing uint8

const (
	observeNever observing = iota
	observeWeft            // if the writer is Weft
	observeOnly            // or not at all
)

// of decides for one stream.
func (o observing) of(name string) bool {
	if o != observeWeft {
		return o == observeOnly
	}
	weft, err := sst.IsWeft(name)
	return err == nil && weft // else Open says what is wrong
}

// check refuses to observe writers that cannot be.
func (o observing) check(name string) error {
	if o != observeOnly {
		return nil
	}
	weft, err := sst.IsWeft(name)
	if err == nil && !weft {
		return usagef("--observe: the writer of %s is ADIOS2, which knows no observers: without --observe this command attaches as a reader, which counts for the writer and can hold it up", name)
	}
	return nil // whatever is wrong, Open says it
}

// observeFlag adds --observe; unset is what the command does without it.
func observeFlag(cmd *cobra.Command, unset observing, help string) func() observing {
	value := cmd.Flags().Bool("observe", false, help)
	return func() observing {
		switch {
		case !cmd.Flags().Changed("observe"):
			return unset
		case *value:
			return observeOnly
		}
		return observeNever
	}
}
