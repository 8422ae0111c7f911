package provutil

// Engine is what moves the operations of a domain: the part of a provider that a Core drives.
type Engine interface {
	// Poll moves all that can move now, and says whether anything did. It bounds the bytes it copies, so that
	// others get the lock. Locked.
	Poll() bool
	// Arm makes peers ring from now on, and then looks once more. True means that something had come
	// meanwhile: the Core disarms and polls again. Locked.
	Arm() bool
	// Disarm ends Arm: peers need not ring. Locked.
	Disarm()
	// Park sleeps until a peer rings or Unpark was called since the last Park returned. It may return for no
	// reason. One goroutine at a time parks. Unlocked.
	Park()
	// Unpark ends the Park of now, or, if there is none, the next one. It does not block. Locked or unlocked.
	Unpark()
	// Descriptor is a file descriptor that polls as readable when a peer has rung while armed, until Poll or
	// Disarm; ErrNotSupported if there is none. It belongs to the engine. Locked.
	Descriptor() (int, error)
}

// Flusher is an Engine that keeps posts with the flag More back. Flush publishes them; Poll does so too. Reading a
// queue that has completions enough does not poll, and flushes. Locked.
type Flusher interface{ Flush() }
