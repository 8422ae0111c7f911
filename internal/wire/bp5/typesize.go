package bp5

var typeSizes = [...]int{
	Int8: 1, Int16: 2, Int32: 4, Int64: 8, Uint8: 1, Uint16: 2, Uint32: 4, Uint64: 8,
	Float: 4, Double: 8, LongDouble: 16, ComplexFloat: 8, ComplexDouble: 16, Char: 1, Struct: 0,
}

// Size returns the bytes of one element, 0 for types whose elements have no size of their own.
func (t Type) Size() int {
	if int(t) < len(typeSizes) {
		return typeSizes[t]
	}
	return 0
}
