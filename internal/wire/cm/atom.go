package cm

import "github.com/weft-fabric/weft/internal/wire/lookup3"

// Atoms of the attributes that SST peers put into contact strings, or that
// Weft adds (cm.md §2.2; the source in each line). An atom is Atom of its name;
// the test of this file holds them to that.
const (
	AtomIPPort       uint32 = 0x8df2c994 // "IP_PORT", int: TCP port; cm.md §2.2
	AtomIPAddr       uint32 = 0x98023901 // "IP_ADDR", int: IPv4 as a number, 127.0.0.1 is 0x7f000001; cm.md §2.2
	AtomIPHost       uint32 = 0x67fb5ba4 // "IP_HOST", string: host name; cm.md §2.2
	AtomCMID         uint32 = 0xc490e7de // "CM_CMANAGER_ID", int: 31-bit ID of the CM instance, 2.11 and later; cm.md §2.2
	AtomIPInterface  uint32 = 0x774b3849 // "IP_INTERFACE", string: interface asked for, informational; cm.md §2.2
	AtomTransport    uint32 = 0x8edf88d5 // "CM_TRANSPORT", string: absent means "sockets"; cm.md §2.2
	AtomSSTGroup     uint32 = 0x59f8f653 // "SST_GROUP_ID", string: SSH-tunnel helper, 2.11 and later; cm.md §2.2
	AtomENetTimeout  uint32 = 0x18ff5e08 // "CM_ENET_CONN_TIMEOUT", int: only with enet; cm.md §2.2
	AtomVNI          uint32 = 0x1cf9baeb // "vni", 8-byte int: Slingshot network ID of the rdma plane; cm.md §2.2
	AtomRDMADRCCred  uint32 = 0xfec711ff // "RDMA_DRC_CRED", 8-byte int: Cray GNI; cm.md §2.2
	AtomRDMADRCKey   uint32 = 0xd7577bca // "RDMA_DRC_KEY", int: Cray GNI; cm.md §2.2
	AtomWeft         uint32 = 0x39043226 // "WEFT", int: Weft's own mark; cm.md §2.5
	TransportSockets        = "sockets"  // the CM_TRANSPORT that means TCP; cm.md §2.2
)

// Atom returns the 32-bit hash that stands for an attribute name: lookup3's
// hashlittle over the name without a NUL, initial value 0 (cm.md §2.2).
func Atom(name string) uint32 { return lookup3.Hash([]byte(name), 0) }

// atomNames lists the names behind the constants, for readable output.
var atomNames = []struct {
	atom uint32
	name string
}{
	{AtomIPPort, "IP_PORT"},
	{AtomIPAddr, "IP_ADDR"},
	{AtomIPHost, "IP_HOST"},
	{AtomCMID, "CM_CMANAGER_ID"},
	{AtomIPInterface, "IP_INTERFACE"},
	{AtomTransport, "CM_TRANSPORT"},
	{AtomSSTGroup, "SST_GROUP_ID"},
	{AtomENetTimeout, "CM_ENET_CONN_TIMEOUT"},
	{AtomVNI, "vni"},
	{AtomRDMADRCCred, "RDMA_DRC_CRED"},
	{AtomRDMADRCKey, "RDMA_DRC_KEY"},
	{AtomWeft, "WEFT"},
}

// atomName returns the name behind an atom, if it is a known one.
func atomName(atom uint32) (string, bool) {
	for _, a := range atomNames {
		if a.atom == atom {
			return a.name, true
		}
	}
	return "", false
}
