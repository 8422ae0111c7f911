package memmon

import (
	"errors"
	"testing"

	"github.com/weft-fabric/weft/internal/sys"
)

// TestF70DeviceMemory has the kernel say that memory is a device's: it is refused, by a typed error that names the device, and not taken for the host's.
// Memory of the kernel's own devices is not a device's.
func TestF70DeviceMemory(t *testing.T) {
	a := testArbiter(t)
	if err := a.Import(newFake()); err != nil {
		t.Fatal(err)
	}
	defer a.Attach(ignore, nil)()
	b := pages(t, 1).Bytes()
	defer func() { mappingsOf = sys.MappingsOf }()
	for file, want := range map[string]error{
		"": nil, "/dev/nvidia-uvm": ErrDevice, "/dev/dri/renderD128": ErrDevice, "/dmabuf:": ErrDevice, "/dev/kfd": ErrDevice,
		"/dev/zero": ErrUnanswered, "/dev/zero (deleted)": ErrUnanswered, "/dev/shm/x": ErrUnanswered, "/dev/hugepages/x": ErrUnanswered, "/data/x": ErrUnanswered,
	} {
		mappingsOf = func(addr, n uint64) ([]sys.MappingInfo, error) {
			return []sys.MappingInfo{{Addr: addr, Len: n, File: file}}, nil
		}
		p, err := a.Prove(Mapped(b, nil))
		if !errors.Is(err, want) || want != nil && errors.Is(err, ErrDevice) == errors.Is(err, ErrUnanswered) {
			t.Errorf("%q: %v", file, err)
		}
		if err == nil {
			p.Close()
		}
	}
}
