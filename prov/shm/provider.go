package shm

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/sys"
)

// Name is how the provider is chosen.
const Name = "shm"

func init() { provider.Register(shm{}) }

type shm struct{}

// Name is "shm".
func (shm) Name() string { return Name }

// Discover describes the node.
func (shm) Discover(context.Context) ([]provider.Info, error) {
	return []provider.Info{describe(sys.Features{})}, nil
}

// OpenDomain opens the node.
func (shm) OpenDomain(info provider.Info, c provider.DomainConfig) (provider.Domain, error) {
	d, err := open(info, c)
	if err != nil {
		return nil, fail("open domain", "", err)
	}
	return d, nil
}

func open(info provider.Info, c provider.DomainConfig) (*domain, error) {
	if info.Provider != "" && info.Provider != Name {
		return nil, fmt.Errorf("the description is of %s: %w", info.Provider, provider.ErrInvalid)
	}
	if c.Progress != provider.Auto && c.Progress != provider.Manual {
		return nil, fmt.Errorf("no progress mode has the number %d: %w", c.Progress, provider.ErrInvalid)
	}
	opts, err := parseOptions(c.Options)
	if err != nil {
		return nil, err
	}
	d := &domain{opts: opts, info: describe(opts.features), uid: uint32(os.Getuid())}
	if !d.info.Usable {
		if err := systemError(unusable(opts.features)); errors.Is(err, provider.ErrNoMemory) { // just now
			return nil, err
		}
		return nil, fmt.Errorf("%s: %w", d.info.Why, provider.ErrNotSupported)
	}
	id, err := sys.BootID()
	if err == nil {
		d.boot = id
		d.net, err = sys.NetNamespace()
	}
	if err == nil {
		err = d.open(c)
	}
	if err != nil {
		return nil, systemError(err)
	}
	return d, nil
}

// crossUse is said of cross-process copies.
const crossUse = "reads of registered memory whose owner sleeps, up to 256 KiB, or is in manual mode"

// describe says what there is on this machine.
func describe(f sys.Features) provider.Info {
	i := provider.Info{
		Provider: Name, Version: fmt.Sprint(helloVersion), Domain: "node", Usable: true,
		Caps: provider.Msg | provider.Tagged | provider.RMA | provider.Atomics | provider.RemoteCQData | provider.MultiRecv |
			provider.DirectedRecv | provider.Source | provider.Arena | provider.Views | provider.LocalComm,
		Progress: []provider.Progress{provider.Auto, provider.Manual},
		Memory:   provider.MemoryMode{ProviderKey: true},
		Limits: provider.Limits{
			Inject: maxInline, Segments: maxSegmentV, Remotes: maxRemotes, AtomicLen: maxAtomic, TagBits: 64, DataBytes: 8, KeyBytes: 8,
			Peers: maxPeers(f), IdlePeer: 2 * lanesSize,
		},
		Address: "shm://NAME[?boot=HEX&inc=HEX&net=INODE&path=FOLDER&uid=UID]",
	}
	for _, which := range sys.AllFeatures() {
		i.Features = append(i.Features, kernelFeature(f, which))
	}
	if why := unusable(f); why != nil {
		i.Usable, i.Why = false, why.Error()
	}
	return i
}

// What a pair and a domain have of descriptors: a socket, our bell and the peer's; and the domain's own, with some for the program.
const (
	pairDescriptors = 3
	ownDescriptors  = 64
)

// maxPeers is how many peers can be connected with what this process may have of descriptors (RLIMIT_NOFILE); 0 means that
// nothing bounds them.
func maxPeers(f sys.Features) int {
	limit, err := sys.DescriptorLimit()
	if err != nil {
		return 0
	}
	each := uint64(pairDescriptors)
	if !f.Has(sys.EventFD) {
		each = 1
	}
	return int(max(min(limit, 1<<31)-min(limit, ownDescriptors), each) / each)
}

// fallbacks says what is done without a feature of the kernel, for each that can be disabled.
var fallbacks = map[sys.Feature]string{
	sys.FutureWrite:   "read-only descriptors keep peers of other users from writing; those of this user could",
	sys.NoExecSeal:    "memory files could be run as programs, as on older kernels",
	sys.PopulatePages: "new memory is touched page by page",
	sys.EventFD:       "sleepers are woken by a packet on the socket",
	sys.RobustList:    "peers are told of the death of this process by its sockets, after its memory was freed",
	sys.FutexWaitv:    "deaths of peers are noticed by their sockets, after their memory was freed",
	sys.CrossMemory:   "registered memory is always read by way of its owner",
	sys.HugeTLB:       "arenas lie on ordinary pages",
}

// kernelFeature asks the kernel for a feature.
func kernelFeature(f sys.Features, which sys.Feature) provider.Feature {
	err := f.Check(which)
	feature := provider.Feature{Name: which.String(), On: err == nil}
	switch {
	case err != nil:
		feature.Detail = fmt.Sprintf("%v: %s", err, fallbacks[which])
	case which == sys.CrossMemory:
		feature.Detail = crossUse
	case which == sys.HugeTLB:
		feature.Detail = "option hugetlb; " + hugeRoom(sys.HugePools())
	}
	return feature
}

// unusable is why there can be no domain here: memory files cannot be made or sealed, or nothing says which node this is.
func unusable(f sys.Features) error {
	_, boot := sys.BootID()
	_, net := sys.NetNamespace()
	file, err := newFile("probe", pageSize, false, f)
	if err == nil {
		file.close()
	}
	return errors.Join(boot, net, err)
}
