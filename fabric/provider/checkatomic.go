package provider

// class is what an element type can do.
type class uint8

const (
	ordered class = 1 << iota // can be compared by size: all but complex
	integer                   // has bits
)

func (t DataType) class() class {
	switch t {
	case Float32, Float64:
		return ordered
	case Complex64, Complex128:
		return 0
	}
	return ordered | integer
}

// needs says what an atomic operation needs of the element type.
func (c AtomicCode) needs() class {
	switch c {
	case AtomicMin, AtomicMax, AtomicSwapLe, AtomicSwapLt, AtomicSwapGe, AtomicSwapGt:
		return ordered
	case AtomicBitOr, AtomicBitAnd, AtomicBitXor, AtomicMaskSwap:
		return integer
	}
	return 0
}

// Compares says whether the operation has values to compare with.
func (c AtomicCode) Compares() bool { return c >= AtomicSwapEq && c <= AtomicMaskSwap }

// Fits says whether the operation exists for elements of type t: integers have all, floating-point numbers those without bits,
// complex numbers those without bits and without an order.
func (c AtomicCode) Fits(t DataType) bool {
	return c >= AtomicMin && c <= AtomicMaskSwap && t.Size() != 0 && c.needs()&^t.class() == 0
}

// Target is the number of bytes at the peer that the operation reads or changes.
func (a *Atomic) Target() int {
	if a.Code == AtomicRead {
		return len(a.Result)
	}
	return a.Len()
}

// CheckAtomic is Check for an atomic operation.
func CheckAtomic(l *Limits, a *Atomic) error {
	if err := Check(l, AtomicDone, &a.Op); err != nil {
		return err
	}
	size := uint64(a.Type.Size())
	switch {
	case a.Code < AtomicMin || a.Code > AtomicMaskSwap:
		return invalid("no atomic operation has the code %d", a.Code)
	case size == 0:
		return invalid("no element type has the number %d", a.Type)
	case !a.Code.Fits(a.Type):
		return invalid("the atomic operation %d is not for the element type %d", a.Code, a.Type)
	case a.Code == AtomicRead && a.Len() != 0:
		return invalid("an atomic read has no operands")
	}
	n := uint64(a.Target())
	if err := checkLength(l, AtomicDone, 0, n); err != nil {
		return err
	}
	switch {
	case n == 0 || n%size != 0:
		return invalid("%d bytes are no elements of %d", n, size)
	case a.Result != nil && uint64(len(a.Result)) != n:
		return invalid("the result has %d bytes, the operands %d", len(a.Result), n)
	case a.Code.Compares() && uint64(len(a.Compare)) != n:
		return invalid("the values to compare with have %d bytes, the operands %d", len(a.Compare), n)
	case a.Flags.Has(Inject) && (a.Result != nil || a.Compare != nil):
		return invalid("%v is of operands only: a result or values to compare with stay with the fabric", Inject)
	case !a.Code.Compares() && a.Compare != nil:
		return invalid("the atomic operation %d compares nothing", a.Code)
	}
	for i := range a.Remotes {
		if l := a.Remotes[i].Len; l == 0 || l%size != 0 {
			return invalid("remote segment %d: %d bytes are no elements of %d", i, l, size)
		}
	}
	return checkTarget(l, &a.Op, n)
}
