package sys

import (
	"bytes"
	"os"
	"testing"
)

func TestPeek(t *testing.T) {
	for what, f := range map[string]Features{"process_vm_readv": {}, "file": Features{}.Without(CrossMemory)} {
		m, err := OpenProcessMemory(os.Getpid(), f)
		if err != nil {
			t.Fatal(what, err)
		}
		want, got := []byte("what lies there"), make([]byte, 15)
		if n, err := m.ReadAt(got, int64(Address(want))); n != len(want) || err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %q, %v", what, got[:n], err)
		}
		if n, err := m.ReadAt(nil, int64(Address(want))); n != 0 || err != nil {
			t.Errorf("%s: nothing: %d, %v", what, n, err)
		}
		page, err := MapAnonymous(osPageSize)
		if err != nil {
			t.Fatal(err)
		}
		at := Address(page.Bytes())
		if err := page.Close(); err != nil {
			t.Fatal(err)
		}
		for _, addr := range []int64{int64(at), 0, -1, 1<<63 - 1} {
			if n, err := m.ReadAt(got, addr); err == nil {
				t.Errorf("%s: read %d bytes at %#x, where there is nothing", what, n, addr)
			}
		}
		if err := m.Close(); err != nil {
			t.Error(what, err)
		}
	}
	if _, err := OpenProcessMemory(1<<30, Features{}.Without(CrossMemory)); err == nil {
		t.Error("opened the memory of nobody")
	}
}

func TestProcessMappings(t *testing.T) {
	list, err := ProcessMappings(os.Getpid())
	if err != nil || len(list) == 0 {
		t.Error(list, err)
	}
	if list, err := ProcessMappings(1 << 30); err == nil {
		t.Error("nobody has mappings:", list)
	}
}
