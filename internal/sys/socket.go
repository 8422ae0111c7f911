package sys

import "fmt"

// UnixAddress is where a unix socket listens.
type UnixAddress struct {
	Name     string // a path, or with Abstract any bytes, at most 107
	Abstract bool   // in the network namespace's own table of names, not in the file system
}

// String is "@name" for an abstract one, else the path.
func (a UnixAddress) String() string {
	if a.Abstract {
		return fmt.Sprintf("@%s", a.Name)
	}
	return a.Name
}

// SocketType is how a unix socket carries bytes.
type SocketType uint8

// The types.
const (
	Stream    SocketType = iota // a stream of bytes
	SeqPacket                   // messages, each sent and received whole
)

// Credentials are who connected, or listened, as the kernel saw it at that moment. PID is 0, and UID and GID
// the overflow ids, if they have none in this namespace.
type Credentials struct {
	PID      int
	UID, GID uint32
}
