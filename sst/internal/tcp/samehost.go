package tcp

import (
	"net"

	"github.com/weft-fabric/weft/internal/sys"
)

// loopbackControl is the congestion control of connections within a host: the one that
// every Linux kernel has. While nothing is lost, and within a host nothing is, it
// holds nothing back.
const loopbackControl = "reno"

// TuneWithinHost takes the network's congestion control off a connection whose other end
// is on this host, and leaves others alone. A kernel that is set to one which paces
// (BBR) wakes by a timer for every few packets, also where there is no network: that
// costs more than all else that is done for a large record (docs/decisions/0012).
//
// An error means that the connection stays as it is: it is closed, or the system
// has no such choice, or does not leave it to us.
func TuneWithinHost(conn *net.TCPConn) error {
	if !withinHost(conn.LocalAddr(), conn.RemoteAddr()) {
		return nil
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	return sys.SetCongestion(raw, loopbackControl)
}

// withinHost reports whether both ends of a connection are on this host: then the kernel
// chooses for the one that dials the address that it has dialled.
func withinHost(local, remote net.Addr) bool {
	a := AddrPort(local).Addr()
	return a.IsValid() && a == AddrPort(remote).Addr()
}
