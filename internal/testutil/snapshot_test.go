package testutil

import (
	"os"
	"strings"
	"testing"
)

func TestParseMappings(t *testing.T) {
	got, err := parseMappings([]byte(`55d0c0000000-55d0c0001000 r-xp 00000000 fe:01 99                         /usr/bin/x
7f0000000000-7f0000010000 rw-s 00000000 00:01 1055                       /memfd:ring (deleted)
7f0000010000-7f0000011000 r--s 00010000 00:01 1055                       /memfd:ring (deleted)
7f0000020000-7f0000021000 rw-s 00000000 00:01 7
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]
`))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got["/memfd:ring (deleted) (device 00:01, inode 1055)"] != 0x11000 || got[" (device 00:01, inode 7)"] != 0x1000 {
		t.Errorf("got %v", got)
	}
	for _, bad := range []string{"x", "1-2 rw-s 0 0:0", "zz-2 rw-s 0 0:0 1", "2-1 rw-s 0 0:0 1"} {
		if _, err := parseMappings([]byte(bad)); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestParseStat(t *testing.T) {
	pid, name, state, parent, ok := parseStat([]byte("12 (a) b (c)) S 7 12 12 0 -1\n"))
	if !ok || pid != 12 || name != "a) b (c)" || state != "S" || parent != 7 {
		t.Errorf("got %d %q %q %d %v", pid, name, state, parent, ok)
	}
	for _, bad := range []string{"", "12", "12 (x", "12 (x) S", "x (x) S 1", "12 (x) S y", ")("} {
		if _, _, _, _, ok := parseStat([]byte(bad)); ok {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestSnapshotSeesWhatIsOpen(t *testing.T) {
	before, err := takeSnapshot()
	if err != nil {
		t.Fatal(err)
	}
	if err := before.since(before); err != nil {
		t.Errorf("a snapshot differs from itself: %v", err)
	}
	path := t.TempDir() + "/file"
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	during, err := takeSnapshot()
	if err != nil {
		t.Fatal(err)
	}
	if err := during.since(before); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v, want %s named", err, path)
	}
	if err := before.since(during); err != nil {
		t.Errorf("what has gone counts as a leak: %v", err)
	}
}

func TestSnapshotDifferences(t *testing.T) {
	old := snapshot{
		files:    map[int]string{0: "/dev/null", 5: "old"},
		mappings: map[string]uint64{"m": 4096},
		children: map[int]string{9: "state S"},
	}
	same := snapshot{
		files:    map[int]string{0: "/dev/null"},
		mappings: map[string]uint64{"m": 4096},
		children: map[int]string{9: "state R"},
	}
	if err := same.since(old); err != nil {
		t.Errorf("nothing came, got %v", err)
	}
	more := snapshot{
		files:    map[int]string{0: "/dev/null", 5: "new"},
		mappings: map[string]uint64{"m": 8192},
		children: map[int]string{10: "state S"},
	}
	err := more.since(old)
	if err == nil {
		t.Fatal("three leaks were not seen")
	}
	want := `descriptor 5 is open: new
shared memory is mapped: m: 8192 bytes, 4096 before the tests
process 10 is there: state S`
	if err.Error() != want {
		t.Errorf("got:\n%v\nwant:\n%s", err, want)
	}
}
