// Package all registers every operator of this module that can be decoded. Import it for its effect:
//
//	import _ "github.com/weft-fabric/weft/operator/all"
//
// It has nothing else, and no state.
package all

import (
	_ "github.com/weft-fabric/weft/operator/blosc"
	_ "github.com/weft-fabric/weft/operator/bzip2"
	_ "github.com/weft-fabric/weft/operator/png"
)
