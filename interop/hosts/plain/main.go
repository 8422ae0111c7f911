//go:build peers

// The program plain has no middleware of its own: a library that patches the C library and posts what it sees is loaded into it.
package main

/*
#include <stdint.h>
extern volatile unsigned long patcher_calls __attribute__((weak));
static uint64_t seen(void) { return &patcher_calls ? patcher_calls : 0; }
*/
import "C"

import (
	"github.com/weft-fabric/weft/interop/hosts"
	"github.com/weft-fabric/weft/interop/hosts/libc"
	"github.com/weft-fabric/weft/memmon"
)

func main() {
	hosts.Main(hosts.Host{
		Calls: libc.New(),
		Start: func() error { return nil },
		Monitor: func(a *memmon.Arbiter) memmon.Monitor { // which has proven itself when it was loaded
			return a.Mailbox(memmon.MailboxConfig{By: "the patcher", Coverage: libc.Coverage})
		},
		Seen: func() uint64 { return uint64(C.seen()) },
	})
}
