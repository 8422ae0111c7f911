package sys

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
)

// TestCross copies in pieces of all lengths, as a kernel may.
func TestCross(t *testing.T) {
	from := make([]byte, 1000)
	for i := range from {
		from[i] = byte(i * 3)
	}
	for piece := 1; piece < 1001; piece += 37 {
		to := make([]byte, 1000)
		interrupted := false
		n, err := cross(to, 5000, func(b []byte, at uint64) (int, error) {
			if interrupted = !interrupted; interrupted {
				return -1, syscall.EINTR
			}
			return copy(b[:min(len(b), piece)], from[at-5000:]), nil
		})
		if n != 1000 || err != nil || string(to) != string(from) {
			t.Fatalf("pieces of %d: %d, %v", piece, n, err)
		}
	}
	for _, c := range []struct {
		n    int
		err  error
		want error
	}{{0, nil, io.ErrUnexpectedEOF}, {-1, syscall.EPERM, syscall.EPERM}} {
		first := true
		n, err := cross(make([]byte, 10), 0, func([]byte, uint64) (int, error) {
			if first {
				first = false
				return 4, nil
			}
			return c.n, c.err
		})
		if n != 4 || !errors.Is(err, c.want) {
			t.Error(n, err)
		}
	}
	if n, err := cross(nil, 0, nil); n != 0 || err != nil {
		t.Error(n, err)
	}
}

// memoryChild starts a process with size bytes of memory that has marks, and returns where they are.
func memoryChild(t *testing.T, size int, marks ...int) (*testutil.Process, uint64) {
	t.Helper()
	args := []string{strconv.Itoa(size)}
	for _, m := range marks {
		args = append(args, strconv.Itoa(m))
	}
	child := testutil.Child(t, "memory", args...)
	at, err := strconv.ParseUint(strings.TrimSpace(child.Expect("address")), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return child, at
}

func TestProcessMemory(t *testing.T) {
	testutil.Require(t, has(CrossMemory))
	const size = 1 << 20
	child, at := memoryChild(t, size, 0, 77777, size-1)
	buf := make([]byte, size)
	if n, err := ReadProcess(child.Pid(), at, buf, Features{}); n != size || err != nil {
		t.Fatal(n, err)
	}
	for _, m := range []int{0, 77777, size - 1} {
		if buf[m] != byte(m*7+1) {
			t.Errorf("byte %d is %d", m, buf[m])
		}
	}
	buf[0], buf[size-1] = 41, 42
	if n, err := WriteProcess(child.Pid(), at, buf, Features{}); n != size || err != nil {
		t.Fatal(n, err)
	}
	child.Send("show")
	if s := child.Expect("bytes "); s != "41 42" {
		t.Error(s)
	}
	// Where it has no memory.
	if _, err := ReadProcess(child.Pid(), 16, buf, Features{}); !errors.Is(err, syscall.EFAULT) {
		t.Error(err)
	}
	if _, err := ReadProcess(child.Pid(), at, buf, Features{}.Without(CrossMemory)); !errors.Is(err, ErrNotSupported) {
		t.Error(err)
	}
	if _, err := WriteProcess(child.Pid(), at, buf, Features{}.Without(CrossMemory)); !errors.Is(err, ErrNotSupported) {
		t.Error(err)
	}
	child.Kill()
	<-child.Done()
	if _, err := WriteProcess(child.Pid(), at, buf, Features{}); !errors.Is(err, syscall.ESRCH) {
		t.Error(err)
	}
}

// TestSoakF41 reads more than the kernel copies in one call.
func TestSoakF41(t *testing.T) {
	testutil.Require(t, has(CrossMemory))
	size := int(testutil.Pick[int64](t, 3*crossChunk+8192, 2<<30+8192))
	marks := []int{0, crossChunk - 1, crossChunk, size - 8193, size - 1}
	if int64(size) > 2<<30 {
		marks = append(marks, 0x7ffff000-1, 0x7ffff000)
	}
	child, at := memoryChild(t, size, marks...)
	buf := make([]byte, size)
	if n, err := ReadProcess(child.Pid(), at, buf, Features{}); n != size || err != nil {
		t.Fatal(n, err)
	}
	for _, m := range marks {
		if buf[m] != byte(m*7+1) {
			t.Errorf("byte %d is %d", m, buf[m])
		}
	}
}

func TestHost(t *testing.T) {
	a, err := BootID()
	if err != nil || a == [16]byte{} {
		t.Error(a, err)
	}
	if b, err := BootID(); a != b || err != nil {
		t.Error(a, b, err)
	}
	for _, text := range []string{"", "00000000-0000-0000-0000-00000000000", "g0000000-0000-0000-0000-000000000000"} {
		name := t.TempDir() + "/id"
		write(t, name, text)
		if id, err := bootID(name); err == nil {
			t.Errorf("%q: %x", text, id)
		}
	}
	if _, err := bootID(t.TempDir() + "/none"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	n, err := NetNamespace()
	link, linkErr := os.Readlink("/proc/self/ns/net")
	if err != nil || linkErr != nil || link != fmt.Sprintf("net:[%d]", n) {
		t.Error(n, err, link, linkErr)
	}
}
