package cli

import (
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/sst/cohort"
)

// targetConfig configures the writer of this process, which stands for some
// ranks; a cohort of nil is this process alone.
func targetConfig(session *sst.Session, p sst.Params, c cohort.Cohort, ranks int) sst.WriterConfig {
	return sst.WriterConfig{Session: session, Params: p, Cohort: c, Ranks: ranks}
}

// sourceConfig configures the reader of this process.
func sourceConfig(session *sst.Session, p sst.Params, opt sourceOptions) sst.ReaderConfig {
	return sst.ReaderConfig{Session: session, Params: p, Cohort: opt.cohort, Observer: opt.observe}
}
