package cm

// WeftVersion is the wire version of Weft's extensions to SST, the value of the
// attribute by which two Weft programs know each other. Real peers ignore it
// (cm.md §2.5).
const WeftVersion = 1

// WithMark returns a copy of c that carries Weft's mark, version WeftVersion.
func (c Contact) WithMark() Contact {
	return c.With(Attr{Atom: AtomWeft, Kind: KindInt32, Int: WeftVersion})
}

// Mark returns the version of Weft's extensions that the process behind c
// speaks; ok is false for everybody else.
func (c Contact) Mark() (version int, ok bool) {
	v, ok := c.int32(AtomWeft)
	if !ok || v < 1 {
		return 0, false
	}
	return int(v), true
}
