package cm

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
)

// Describe returns the list in words, for logs and for people: one NAME=value
// for each attribute, atoms without a known name in hex.
func (c Contact) Describe() string {
	words := make([]string, 0, len(c))
	for _, a := range c {
		name, ok := atomName(a.Atom)
		if !ok {
			name = fmt.Sprintf("%#08x", a.Atom)
		}
		words = append(words, name+"="+a.describe())
	}
	return strings.Join(words, " ")
}

// describe returns the value in words.
func (a Attr) describe() string {
	switch {
	case a.Atom == AtomIPAddr && a.Kind == KindInt32:
		var v [4]byte
		binary.BigEndian.PutUint32(v[:], uint32(a.Int))
		return netip.AddrFrom4(v).String()
	case a.Kind == KindAtom:
		return fmt.Sprintf("%#08x", uint32(a.Int))
	case a.Kind == KindString:
		return fmt.Sprintf("%q", a.Text)
	case a.Kind == KindOpaque:
		return fmt.Sprintf("(%d bytes)", len(a.Bytes))
	case a.Kind == KindFloat:
		return fmt.Sprintf("%g", a.Float)
	}
	return fmt.Sprintf("%d", a.Int)
}
