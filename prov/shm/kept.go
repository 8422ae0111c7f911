package shm

import "github.com/weft-fabric/weft/fabric/provider"

// kept is what the provider keeps with a message that waits for its receive.
type kept struct {
	pair    *pair
	how     uint8 // opInline: copied here; else where it still is
	context uint64
	seg     uint32
	off     uint64
	cost    uint64
	ack     bool
	grows   bool
	claimed bool
	why     error // the sender is gone, and the message with it
}

// arrival is what is known of a message that has arrived.
type arrival struct {
	tagged, hasData bool
	source          provider.Peer
	tag, data, len  uint64
}
