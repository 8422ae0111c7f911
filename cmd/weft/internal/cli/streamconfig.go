package cli

import (
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/sst/cohort"
)

// This file is all that the command knows of how streams are configured for
// cohorts and observers.

// targetConfig configures the writer of this process, which stands for some
// ranks; a cohort of nil is this process alone.
func targetConfig(session *sst.Session, p sst.Params, c cohort.Cohort, ranks int) sst.WriterConfig {
	return sst.WriterConfig{Session: session, Params: p, Ranks: ranks}
}

// sourceConfig configures the reader of this process.
func sourceConfig(session *sst.Session, p sst.Params, c cohort.Cohort) sst.ReaderConfig {
	return sst.ReaderConfig{Session: session, Params: p}
}
