// Package all links every provider into the program that imports it, as package fabric finds them by their
// names:
//
//	import _ "github.com/weft-fabric/weft/prov/all"
//
// It has no code of its own. prov/hook is not among them: it wraps providers, and is asked for by name.
package all

import (
	_ "github.com/weft-fabric/weft/prov/loop"
	_ "github.com/weft-fabric/weft/prov/shm"
)
