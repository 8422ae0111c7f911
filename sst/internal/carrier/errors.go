package carrier

import (
	"errors"
	"fmt"
)

// Errors of this package. What a Link or an Endpoint reports is a *LinkError
// that wraps one of them, an error of package cm or ffs, or one of the network.
var (
	// ErrClosed means: closed by our side.
	ErrClosed = errors.New("carrier: closed")
	// ErrAborted means: dropped by our side without a reason given.
	ErrAborted = errors.New("carrier: aborted")
	// ErrPeerClosed means: the peer closed the connection between two units.
	ErrPeerClosed = errors.New("carrier: peer closed the connection")
	// ErrProtocol means: the peer sent what the protocol does not allow here.
	ErrProtocol = errors.New("carrier: protocol error")
	// ErrUnknownFormat means: a record whose format was never pushed.
	ErrUnknownFormat = errors.New("carrier: record of a format that was not pushed")
	// ErrLimit means: the peer exceeded a limit of Config.
	ErrLimit = errors.New("carrier: limit exceeded")
	// ErrWrongPeer means: another process than the one that the contact names
	// answers at its address. The contact is stale.
	ErrWrongPeer = errors.New("carrier: another process answers at this address")
	// ErrPeerAborted means: the peer dropped the link and does not want what comes.
	ErrPeerAborted = errors.New("carrier: peer dropped the link")
	// ErrVersion means: the peer speaks another version of our own protocol.
	ErrVersion = errors.New("carrier: peer speaks another version")
	// ErrRecord means: the record given to Send cannot be sent.
	ErrRecord = errors.New("carrier: bad record")
	// ErrConfig means: a Config that contradicts itself or the host.
	ErrConfig = errors.New("carrier: bad configuration")
)

// LinkError says what went wrong, with whom.
type LinkError struct {
	Op   string // "dial", "handshake", "read", "write", "send", "close", "abort"
	Peer string // as in LinkInfo
	Err  error
}

// Error implements error.
func (e *LinkError) Error() string {
	return fmt.Sprintf("carrier: %s, peer %s: %v", e.Op, e.Peer, e.Err)
}

// Unwrap returns the cause.
func (e *LinkError) Unwrap() error { return e.Err }
