package interop

import (
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/sst/cohort"
)

func writerConfig(p sst.Params, c cohort.Cohort) sst.WriterConfig {
	return sst.WriterConfig{Params: p}
}

func readerConfig(p sst.Params, c cohort.Cohort, o ReaderOptions) sst.ReaderConfig {
	return sst.ReaderConfig{Params: p}
}
