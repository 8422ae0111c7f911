package cm

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Contact is the attribute list with which a process says how to reach it: what
// stands behind the colon in a contact file, and in the ContactInfo and
// ContactString fields of SST messages. Order does not matter and an atom should
// occur once; of several the first counts, as for real peers, which search
// linearly (cm.md §2.1).
type Contact []Attr

// NewContact returns the contact of a process that listens on addr (IPv4) and
// whose CM instance has the ID id, which is left out if it is 0.
func NewContact(addr netip.AddrPort, id uint32) (Contact, error) {
	ip := addr.Addr().Unmap()
	if !ip.Is4() || addr.Port() == 0 {
		return nil, fmt.Errorf("%w: %v", ErrNoAddress, addr)
	}
	c := Contact{
		{Atom: AtomIPPort, Kind: KindInt32, Int: int64(addr.Port())},
		{Atom: AtomIPAddr, Kind: KindInt32, Int: addrValue(ip)},
	}
	if id != 0 {
		c = append(c, Attr{Atom: AtomCMID, Kind: KindInt32, Int: int64(int32(id))})
	}
	return c, nil
}

// addrValue is the number under which an IPv4 address is published: the
// big-endian value, as a signed 32-bit integer (cm.md §2.2).
func addrValue(ip netip.Addr) int64 {
	v := ip.As4()
	return int64(int32(binary.BigEndian.Uint32(v[:])))
}

// ParseContact decodes a contact string: standard base64 with padding and no
// line breaks, of an encoded list. Unknown atoms are kept, unknown kinds are an
// error, because their length is unknown. Errors wrap ErrContact; a list of a
// big-endian peer also ErrByteOrder.
func ParseContact(s string) (Contact, error) {
	if strings.ContainsAny(s, "\r\n") {
		return nil, fmt.Errorf("%w: line break inside", ErrContact)
	}
	raw, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrContact, err)
	}
	return ParseAttrs(raw)
}

// ParseAttrs decodes an encoded attribute list that fills b, but for a few zero
// bytes behind it. The result shares no memory with b.
func ParseAttrs(b []byte) (Contact, error) {
	if len(b) < 4 {
		return nil, fmt.Errorf("%w: %w", ErrContact, short("list header", len(b), 4))
	}
	if b[0] != 0 {
		return nil, fmt.Errorf("%w: byte order %d: %w", ErrContact, b[0], ErrByteOrder)
	}
	ints, others, at := int(b[1]), int(b[2]), 4
	if len(b) < at+8*ints {
		return nil, fmt.Errorf("%w: %d integers: %w", ErrContact, ints, short("integers", len(b)-at, 8*ints))
	}
	c := make(Contact, 0, ints+min(others, len(b)/8))
	for range ints {
		value := int64(int32(binary.LittleEndian.Uint32(b[at+4:])))
		c = append(c, Attr{Atom: binary.LittleEndian.Uint32(b[at:]), Kind: KindInt32, Int: value})
		at += 8
	}
	for range others {
		a, n, err := parseAttr(b[at:], at)
		if err != nil {
			return nil, err
		}
		c, at = append(c, a), at+n
	}
	if err := checkSlack(b[at:], at); err != nil {
		return nil, err
	}
	return c, nil
}

// checkSlack accepts a few zero bytes behind a list and nothing else.
func checkSlack(rest []byte, at int) error {
	if len(rest) > maxSlack {
		return fmt.Errorf("%w: offset %d: %d bytes behind the list", ErrContact, at, len(rest))
	}
	for _, x := range rest {
		if x != 0 {
			return fmt.Errorf("%w: offset %d: %d bytes behind the list", ErrContact, at, len(rest))
		}
	}
	return nil
}

// Append encodes the list behind b: integers sorted by atom as a signed number,
// as real peers write them, then the others in their order. Errors wrap
// ErrContact and say which limit is broken.
//
//	wire: order u8=0 | ints u8 | others u8 | 0 | ints x (atom u32, value i32) | others (cm.md §2.1)
func (c Contact) Append(b []byte) ([]byte, error) {
	var ints, others []Attr
	for _, a := range c {
		if err := a.check(); err != nil {
			return b, err
		}
		if a.Kind == KindInt32 {
			ints = append(ints, a)
		} else {
			others = append(others, a)
		}
	}
	if len(ints) > maxAttrs || len(others) > maxAttrs {
		return b, fmt.Errorf("%w: %d integers and %d others; at most %d of each", ErrContact, len(ints), len(others), maxAttrs)
	}
	slices.SortStableFunc(ints, func(x, y Attr) int { return cmp.Compare(int32(x.Atom), int32(y.Atom)) })
	b = append(b, 0, byte(len(ints)), byte(len(others)), 0)
	for _, a := range ints {
		b = binary.LittleEndian.AppendUint32(b, a.Atom)
		b = binary.LittleEndian.AppendUint32(b, uint32(int32(a.Int)))
	}
	for _, a := range others {
		b = a.appendTo(b)
	}
	return b, nil
}

// String returns the contact string, in the canonical order of Append, or ""
// for a list that breaks a limit.
func (c Contact) String() string {
	raw, err := c.Append(nil)
	if err != nil {
		return ""
	}
	return base64.StdEncoding.EncodeToString(raw)
}

// Lookup returns the first attribute with that atom.
func (c Contact) Lookup(atom uint32) (Attr, bool) {
	for _, a := range c {
		if a.Atom == atom {
			return a, true
		}
	}
	return Attr{}, false
}

// With returns a copy of c in which a replaces every attribute of the same atom,
// or is added at the end. c itself is left alone.
func (c Contact) With(a Attr) Contact {
	out := make(Contact, 0, len(c)+1)
	for _, old := range c {
		if old.Atom != a.Atom {
			out = append(out, old)
		}
	}
	return append(out, a)
}

// WithAddr returns a copy of c that publishes the IPv4 address ip.
func (c Contact) WithAddr(ip netip.Addr) (Contact, error) {
	ip = ip.Unmap()
	if !ip.Is4() {
		return nil, fmt.Errorf("%w: %v is not IPv4", ErrNoAddress, ip)
	}
	return c.With(Attr{Atom: AtomIPAddr, Kind: KindInt32, Int: addrValue(ip)}), nil
}

// Addr returns where to dial. Errors wrap ErrNoAddress; a contact that asks for
// another transport gives a *TransportError, one that has only a host name a
// *HostOnlyError.
func (c Contact) Addr() (netip.AddrPort, error) {
	if t, ok := c.Lookup(AtomTransport); ok && (t.Kind != KindString || t.Text != TransportSockets) {
		return netip.AddrPort{}, &TransportError{Transport: t.Text}
	}
	port, _ := c.int32(AtomIPPort)
	addr, ok := c.int32(AtomIPAddr)
	if !ok {
		if host, named := c.Lookup(AtomIPHost); named {
			return netip.AddrPort{}, &HostOnlyError{Host: host.Text, Port: int(port)}
		}
		return netip.AddrPort{}, fmt.Errorf("%w: no IP_ADDR", ErrNoAddress)
	}
	var v [4]byte
	binary.BigEndian.PutUint32(v[:], uint32(addr))
	ip := netip.AddrFrom4(v)
	if port < 1 || port > 0xffff || ip.IsUnspecified() || ip.IsMulticast() {
		return netip.AddrPort{}, fmt.Errorf("%w: address %v port %d", ErrNoAddress, ip, port)
	}
	return netip.AddrPortFrom(ip, uint16(port)), nil
}

// CMID returns the ID of the CM instance, which 2.11 and later publish. It is
// the number that the same process sends in its handshake.
func (c Contact) CMID() (uint32, bool) {
	v, ok := c.int32(AtomCMID)
	return uint32(v), ok
}

// int32 returns the value of a 4-byte integer attribute, 0 if there is none.
func (c Contact) int32(atom uint32) (int32, bool) {
	a, ok := c.Lookup(atom)
	if !ok || a.Kind != KindInt32 {
		return 0, false
	}
	return int32(a.Int), true
}
