package ffs

// Builder returns a deep copy of the record that can be changed and encoded
// again. A record from a real encoder gives the same bytes back, gaps between
// fields included. Raw values still point into the record. Structs that the
// record points at several times are written several times.
func (r Record) Builder() (*Builder, error) {
	if r.f == nil {
		return nil, ErrNil
	}
	// Breadth or depth does not matter: the encoder has an order of its own.
	root := r.f.NewRecord()
	c := copier{work: []job{{root, r.Top()}}}
	for len(c.work) > 0 {
		j := c.work[len(c.work)-1]
		c.work = c.work[:len(c.work)-1]
		if err := c.copy(j.b, j.v); err != nil {
			return nil, err
		}
	}
	return root, nil
}

// copier holds the structs that are still to be copied. The check of the record
// has bounded how many there can be.
type copier struct {
	work []job
}

type job struct {
	b *Builder
	v View
}

// copy fills b from v. The bytes of the struct are taken as they are, gaps
// too; slots are cleared, because the encoder writes its own.
func (c *copier) copy(b *Builder, v View) error {
	copy(b.fixed, v.body[v.at:])
	for _, i := range v.l.slots {
		f := &v.l.fields[i]
		if !f.dynamic && f.flat() {
			continue // copied with the struct
		}
		clear(b.fixed[f.offset:][:f.slots()])
		val, err := c.value(b, v, f)
		if err != nil {
			return v.l.fieldErr(i, err)
		}
		b.vals[f.slot] = val
	}
	return nil
}

// slots returns the bytes that a field with offsets in it has in its struct and
// that the encoder will write again.
func (f *field) slots() int {
	if f.elem == structure && !f.dynamic {
		return 0 // the structs themselves are written over
	}
	return f.span()
}

// value copies what the field f of v holds.
func (c *copier) value(b *Builder, v View, f *field) (value, error) {
	at, n, err := v.elements(f)
	if err != nil || n == 0 {
		return value{}, err
	}
	switch {
	case f.flat():
		return value{set: true, raw: v.body[at : at+n*f.size]}, nil
	case f.elem == text && f.plain:
		s, err := cstring(v.body, at)
		if s == nil || err != nil {
			return value{}, err
		}
		return value{set: true, raw: s[:len(s)+1]}, nil // with its NUL
	case f.elem == text:
		return copyTexts(v.body, at, n)
	}
	kids := make([]*Builder, n)
	for k := range kids {
		sub, err := v.element(f, at, k)
		if err != nil {
			return value{}, err
		}
		if !sub.IsNil() {
			kids[k] = newBuilder(b.f, f.sub, b.mem)
			c.work = append(c.work, job{kids[k], sub})
		}
	}
	return value{set: true, kids: kids}, nil
}

// copyTexts copies an array of strings. NULL and the empty string differ on
// the wire, so which are NULL is kept.
func copyTexts(body []byte, at, n int) (value, error) {
	l := &many{texts: make([]string, n), nulls: make([]bool, n)}
	for k := range n {
		s, err := cstring(body, at+k*slotSize)
		if err != nil {
			return value{}, err
		}
		l.texts[k], l.nulls[k] = string(s), s == nil
	}
	return value{set: true, list: l}, nil
}
