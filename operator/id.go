package operator

import "strconv"

// ID is the number of an operator, the first byte of a stored block. It alone decides what the rest is: some operators
// of ADIOS2 leave a block to another one, for example to Null when compression does not pay.
type ID uint8

// The operators of ADIOS2 (docs/wire/bp5.md §8).
const (
	Blosc              ID = 0
	Bzip2              ID = 1
	Libpressio         ID = 2
	MGARD              ID = 3
	PNG                ID = 4
	Sirius             ID = 5
	SZ                 ID = 6
	ZFP                ID = 7
	MGARDPlus          ID = 8
	BigWhoop           ID = 9
	MGARDComplex       ID = 10
	SZ3                ID = 11
	MDR                ID = 41
	PRODM              ID = 42
	CAESAR             ID = 45
	SignatureCallback1 ID = 51 // never stored
	SignatureCallback2 ID = 52 // never stored
	Plugin             ID = 53 // an operator that the writing program loaded itself
	Null               ID = 127
)

var names = map[ID]string{
	Blosc: "blosc", Bzip2: "bzip2", Libpressio: "libpressio", MGARD: "mgard", PNG: "png", Sirius: "sirius", SZ: "sz",
	ZFP: "zfp", MGARDPlus: "mgardplus", BigWhoop: "bigwhoop", MGARDComplex: "mgard_complex", SZ3: "sz3", MDR: "mdr",
	PRODM: "prodm", CAESAR: "caesar", SignatureCallback1: "callback 1", SignatureCallback2: "callback 2",
	Plugin: "plugin", Null: "null",
}

// subpackages are the operators with a decoder in this module.
var subpackages = map[ID]string{Blosc: "operator/blosc", Bzip2: "operator/bzip2", PNG: "operator/png"}

// String returns ADIOS2's name of the operator, or "operator 77" for a number without a name.
func (id ID) String() string {
	if n, ok := names[id]; ok {
		return n
	}
	return "operator " + strconv.Itoa(int(id))
}
