package sys

import "sync/atomic"

// WaitWord is one word of FutexWaitAny: it ends when Word no longer is Value and somebody calls FutexWake.
type WaitWord struct {
	Word  *atomic.Uint32
	Value uint32
}
