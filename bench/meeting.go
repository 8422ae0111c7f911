package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// meeting is how the ranks of a Weft cohort find each other: where rank 0
// listens, and what they prove themselves with.
type meeting struct{ root, token string }

var errNoPort = errors.New("bench: no free port")

// newMeeting finds a port below those that the kernel gives to whoever asks for
// none, so that nobody takes it meanwhile. One rank meets nobody.
func newMeeting(ranks int) (meeting, error) {
	if ranks == 1 {
		return meeting{}, nil
	}
	for range 100 {
		root := fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(20000))
		l, err := net.Listen("tcp4", root)
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			return meeting{}, err
		}
		return meeting{root, fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64())}, nil
	}
	return meeting{}, errNoPort
}
