package interop

import (
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/sst/cohort"
)

func writerConfig(p sst.Params, c cohort.Cohort) sst.WriterConfig {
	return sst.WriterConfig{Params: p, Cohort: c}
}

func readerConfig(p sst.Params, c cohort.Cohort, o ReaderOptions) sst.ReaderConfig {
	return sst.ReaderConfig{Params: p, Cohort: c, Observer: o.Observer}
}
