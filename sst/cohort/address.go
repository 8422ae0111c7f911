package cohort

import (
	"net"
	"slices"
	"strconv"

	"github.com/weft-fabric/weft/sst/internal/tcp"
)

// candidates returns the addresses under which other hosts, and this one, may
// reach a port of this host, the likely ones first. Who dials tries one after the
// other, without waiting for the end of each, and knows the right one by its
// greeting, so that one too many does no harm: that of a bridge, say, which exists
// on every host.
func candidates(port int, node string) []string {
	last := []string{"127.0.0.1"}
	if node != "" && node != last[0] {
		last = slices.Insert(last, 0, node)
	}
	var out []string
	add := func(host string) { out = append(out, net.JoinHostPort(host, strconv.Itoa(port))) }
	for _, a := range tcp.HostAddrs() {
		if host := a.String(); host != node && len(out)+len(last) < maxAddresses {
			add(host)
		}
	}
	for _, host := range last {
		add(host)
	}
	return out
}
