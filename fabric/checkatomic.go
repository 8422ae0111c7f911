package fabric

// class is what an element type can do.
type class uint8

const (
	ordered class = 1 << iota // can be compared by size: all but complex
	integer                   // has bits
)

func classOf(t DataType) class {
	switch t {
	case Float32, Float64:
		return ordered
	case Complex64, Complex128:
		return 0
	}
	return ordered | integer
}

// codeNeeds says what an atomic operation needs of the element type.
func codeNeeds(c AtomicCode) class {
	switch c {
	case AtomicMin, AtomicMax, AtomicSwapLe, AtomicSwapLt, AtomicSwapGe, AtomicSwapGt:
		return ordered
	case AtomicBitOr, AtomicBitAnd, AtomicBitXor, AtomicMaskSwap:
		return integer
	}
	return 0
}

func compares(c AtomicCode) bool { return c >= AtomicSwapEq && c <= AtomicMaskSwap }

// atomic checks an atomic operation.
func (k *checker) atomic(a *Atomic) error {
	if err := k.post(callAtomic, &a.Op); err != nil {
		return err
	}
	size := uint64(a.Type.Size())
	switch {
	case a.Code < AtomicMin || a.Code > AtomicMaskSwap:
		return invalid("no atomic operation has the code %d", a.Code)
	case size == 0:
		return invalid("no element type has the number %d", a.Type)
	case codeNeeds(a.Code)&^classOf(a.Type) != 0:
		return invalid("atomic operation %d is not for element type %d", a.Code, a.Type)
	}
	n := uint64(a.Len())
	if a.Code == AtomicRead {
		if n != 0 {
			return invalid("an atomic read has no operands")
		}
		n = uint64(len(a.Result))
		if err := k.length(callAtomic, 0, n); err != nil {
			return err
		}
	}
	switch {
	case n == 0 || n%size != 0:
		return invalid("%d bytes are no elements of %d", n, size)
	case a.Result != nil && uint64(len(a.Result)) != n:
		return invalid("the result has %d bytes, the operands %d", len(a.Result), n)
	case compares(a.Code) && uint64(len(a.Compare)) != n:
		return invalid("the values to compare with have %d bytes, the operands %d", len(a.Compare), n)
	case a.Flags.Has(Inject) && (a.Result != nil || a.Compare != nil):
		return invalid("%v is of operands only: a result or values to compare with stay with the fabric", Inject)
	case !compares(a.Code) && a.Compare != nil:
		return invalid("atomic operation %d compares nothing", a.Code)
	}
	for i := range a.Remotes {
		if l := a.Remotes[i].Len; l == 0 || l%size != 0 {
			return invalid("remote segment %d: %d bytes are no elements of %d", i, l, size)
		}
	}
	return k.target(&a.Op, n)
}
