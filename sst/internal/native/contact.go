package native

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/weft-fabric/weft/fabric"
)

const (
	contactVersion = "1"

	maxAddress = 4096 // bytes of an address
	keyDigits  = 16
	nonceSize  = 16 // bytes that a probe holds
)

// Contact is what a reader needs to reach a process. It is told as text: four words with one space between them, nothing before and
// nothing behind.
//
//	version  "1"; what follows another one is unknown
//	address  of the process's endpoint: 1 to 4096 bytes of printable ASCII (0x21 to 0x7e)
//	key      of its probe: 16 hex digits, lower case
//	nonce    what the probe holds: 16 random bytes as 32 hex digits, lower case
type Contact struct {
	Address fabric.Address
	Key     fabric.Key
	Nonce   [nonceSize]byte
}

// Append appends the text. The address must be one of a provider.
func (c Contact) Append(b []byte) []byte {
	return fmt.Appendf(b, "%s %s %0*x %x", contactVersion, c.Address, keyDigits, uint64(c.Key), c.Nonce[:])
}

// ParseContact reads what Append has written. It comes from a peer: what is not exactly that fails with fabric.ErrInvalid, and the
// error says where.
func ParseContact(text string) (Contact, error) {
	var c Contact
	version, rest, ok := strings.Cut(text, " ")
	if version != contactVersion || !ok {
		return c, badContact(0, "version %.20q, this side knows %q", version, contactVersion)
	}
	at := len(version) + 1
	address, rest, ok := strings.Cut(rest, " ")
	if bad := strings.IndexFunc(address, unprintable); bad >= 0 {
		return c, badContact(at+bad, "a byte %#x in the address", address[bad])
	}
	if !ok || address == "" || len(address) > maxAddress {
		return c, badContact(at, "an address of %d bytes, want 1 to %d and a space", len(address), maxAddress)
	}
	at += len(address) + 1
	if want := keyDigits + 1 + 2*nonceSize; len(rest) != want || rest[keyDigits] != ' ' {
		return c, badContact(at, "%d bytes, want a key of %d digits, a space, and a nonce of %d", len(rest), keyDigits, 2*nonceSize)
	}
	var key [keyDigits / 2]byte
	if err := digits(key[:], rest[:keyDigits], at); err != nil {
		return c, err
	}
	if err := digits(c.Nonce[:], rest[keyDigits+1:], at+keyDigits+1); err != nil {
		return c, err
	}
	c.Address, c.Key = fabric.Address(address), fabric.Key(binary.BigEndian.Uint64(key[:]))
	return c, nil
}

func unprintable(r rune) bool { return r <= ' ' || r > '~' }

// digits reads hex digits, which stand at an offset of the contact.
func digits(to []byte, from string, at int) error {
	if i := strings.IndexFunc(from, func(r rune) bool { return !strings.ContainsRune("0123456789abcdef", r) }); i >= 0 {
		return badContact(at+i, "a byte %#x, want a digit 0 to 9 or a to f", from[i])
	}
	_, err := hex.Decode(to, []byte(from))
	return err
}

func badContact(at int, format string, args ...any) error {
	return fmt.Errorf("native contact, offset %d: %s: %w", at, fmt.Sprintf(format, args...), fabric.ErrInvalid)
}
