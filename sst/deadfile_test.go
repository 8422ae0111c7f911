package sst

import (
	"errors"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/wire/cm"
)

// TestDeadFile has the waits for an address that does not answer double up to a
// second, whatever the number of looks, and not hold for another file.
func TestDeadFile(t *testing.T) {
	var d deadFile
	dead, other := contactFile{stream: 1}, contactFile{stream: 2}
	refused := errors.New("refused")
	now := time.Unix(1000, 0)
	if d.known(dead, now) != nil {
		t.Error("known before it was tried")
	}
	for i, wait := range []time.Duration{100, 200, 400, 800, 1000, 1000} {
		d.note(dead, now, refused)
		due := now.Add(wait * time.Millisecond)
		if d.tries != i+1 || !errors.Is(d.known(dead, due.Add(-1)), refused) || d.known(dead, due) != nil {
			t.Errorf("try %d: tried again before or after %v: %+v", i+1, wait*time.Millisecond, d)
		}
		if d.known(other, now) != nil {
			t.Errorf("try %d: a new file has to wait", i+1)
		}
		now = due
	}
	d.note(other, now, refused)
	if d.tries != 1 || d.known(other, now.Add(pollInterval)) != nil {
		t.Errorf("another file waits as long as the one before: %+v", d)
	}
}

// TestNewFileIsTriedAtOnce: a look knocks at the address of a dead file again only
// when that is due, and at that of the file that replaces it in any case.
func TestNewFileIsTriedAtOnce(t *testing.T) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c, err := cm.NewContact(ln.Addr().(*net.TCPAddr).AddrPort(), 0x777)
	if err = errors.Join(err, ln.Close()); err != nil {
		t.Fatal(err)
	}
	f := &finder{path: filepath.Join(t.TempDir(), "s"+contactSuffix), session: testSession(t)}
	look := func(stream int64) error {
		t.Helper()
		if err := writeContact(f.path, contactFile{stream: stream, contact: c}, 0o600); err != nil {
			t.Fatal(err)
		}
		err := f.look(t.Context())
		if !errors.Is(err, ErrStale) {
			t.Fatalf("stream %d: %v", stream, err)
		}
		return err
	}
	first := look(1)
	f.dead.next = time.Now().Add(time.Hour)
	if again := look(1); again != first || f.dead.tries != 1 {
		t.Errorf("tried again before it was due: %v, %d tries", again, f.dead.tries)
	}
	if other := look(2); other == first || f.dead.tries != 1 || f.dead.next.After(time.Now().Add(maxRedial)) {
		t.Errorf("a new file was not tried: %v, %+v", other, f.dead)
	}
}
