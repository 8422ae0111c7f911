package provider

import "context"

// Info describes one way to communicate, on this machine, now. It is pure data: nothing is open.
type Info struct {
	Provider string // "shm"
	Version  string // of the provider's protocol
	Domain   string // what is opened; a device, or "node"
	Usable   bool   // whether OpenDomain can succeed here
	Why      string // why it is not usable, or what of it is degraded; for people

	Caps     Caps
	Progress []Progress // the modes it can do; the first is its default
	Memory   MemoryMode
	Limits   Limits
	Address  string    // the form of its addresses, for people: "shm://NAME[?...]"
	Features []Feature // what of the system it uses, and whether it is there
}

// Feature is something a provider can use if the system has it.
type Feature struct {
	Name   string // "process_vm_readv"
	On     bool
	Detail string // why not, or how much: "EPERM from the sandbox: slower copy used"
}

// Limits are the bounds of a provider; 0 means there is none.
type Limits struct {
	Message   uint64 // bytes of a message
	RMA       uint64 // bytes of a read or write
	Inject    uint64 // bytes with Inject
	Segments  int    // local segments of an operation
	Remotes   int    // remote segments of an operation
	AtomicLen uint64 // bytes of an atomic operation
	TagBits   int    // usable bits of a tag, from the lowest
	DataBytes int    // bytes of RemoteData
	KeyBytes  int    // bytes of a Key
	Peers     int    // peers of an endpoint
	IdlePeer  uint64 // bytes of memory for a connected peer that is idle
}

// MemoryMode says what a provider asks of memory registration: libfabric's mr_mode, bit by bit.
type MemoryMode struct {
	Local        bool // FI_MR_LOCAL: local buffers must be registered
	VirtualAddr  bool // FI_MR_VIRT_ADDR: Offset is an address of the target, not an offset
	Allocated    bool // FI_MR_ALLOCATED: memory must be backed when it is registered
	ProviderKey  bool // FI_MR_PROV_KEY: the provider chooses keys
	Notify       bool // FI_MR_MMU_NOTIFY: Memory.Refresh must tell of pages that come later
	Raw          bool // FI_MR_RAW: keys are longer than 64 bits
	HMem         bool // FI_MR_HMEM: device memory must be registered
	EndpointOnly bool // FI_MR_ENDPOINT: registrations belong to an endpoint
	Collective   bool // FI_MR_COLLECTIVE: memory of collectives must be registered
	Event        bool // FI_MR_RMA_EVENT: counters of remote access must be asked for at registration
}

// Bits names libfabric's mode bits that are set, lowest first, without their prefix FI_MR_.
func (m MemoryMode) Bits() []string {
	var names []string
	for _, bit := range []struct {
		name string
		on   bool
	}{
		{"LOCAL", m.Local}, {"RAW", m.Raw}, {"VIRT_ADDR", m.VirtualAddr}, {"ALLOCATED", m.Allocated},
		{"PROV_KEY", m.ProviderKey}, {"MMU_NOTIFY", m.Notify}, {"RMA_EVENT", m.Event}, {"ENDPOINT", m.EndpointOnly},
		{"HMEM", m.HMem}, {"COLLECTIVE", m.Collective},
	} {
		if bit.on {
			names = append(names, bit.name)
		}
	}
	return names
}

// Hints say what a program needs. The zero value asks for anything.
type Hints struct {
	Provider string // this one only
	Caps     Caps   // all of these
	Unusable bool   // also what cannot be used here, with the reason
}

// Address is where an endpoint can be reached: "scheme://...". Its form is the provider's; it is
// printable and has no spaces.
type Address string

// Provider is one way to communicate.
type Provider interface {
	// Name is how it is chosen: "shm".
	Name() string
	// Discover describes what it can do here, and opens nothing that outlives the call. What is not usable
	// is described too, with the reason.
	Discover(ctx context.Context) ([]Info, error)
	// OpenDomain opens what info describes.
	OpenDomain(info Info, c DomainConfig) (Domain, error)
}
