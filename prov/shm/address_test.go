package shm

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/weft-fabric/weft/fabric/provider"
)

const someBoot = "0123456789abcdef0123456789abcdef"

func TestAddress(t *testing.T) {
	for _, c := range []struct {
		text string
		want address
	}{
		{"shm://a", address{name: "a"}},
		{"shm://a%2Fb%20c%3F", address{name: "a/b c?"}},
		{"shm://n?boot=" + someBoot + "&inc=ff&net=4026531840&path=%2Frun%2Fx+y&uid=0",
			address{name: "n", boot: someBoot, inc: 255, net: 4026531840, path: "/run/x y", uid: 0, has: true}},
	} {
		got, err := parseAddress(provider.Address(c.text))
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(address{})); diff != "" {
			t.Errorf("%s: %s", c.text, diff)
		}
		if got.String() != c.text {
			t.Errorf("%s becomes %s", c.text, got)
		}
	}
	if got, err := parseAddress("shm://n?"); err != nil || got != (address{name: "n"}) {
		t.Errorf("no parameters: %v, %v", got, err)
	}
}

// What is wrong with an address is said, and what may have been meant.
func TestAddressSaysWhatIsWrong(t *testing.T) {
	s := newSide(t, provider.DomainConfig{}, provider.EndpointConfig{})
	for text, want := range map[string]string{
		"shm://x?inx=5":        `unknown parameter "inx": do you mean "inc"?`,
		"shm://x?completely=5": `unknown parameter "completely"; known are boot, inc, net, path, uid`,
		"shm://x?path=rel":     `path="rel": want the absolute path of a folder`,
		"shm://x?inc=0":        `inc="0": want an incarnation`,
		"shm://x?uid=me":       `uid="me": want a user's number`,
		"shm://x?uid=1&uid=2":  "uid is said twice",
		"shm://x/":             "it ends with a slash",
		"shm://x/?inc=5":       "it ends with a slash",
		"shm://shm:%2F%2Fx":    `the name "shm://x" is an address`,
		"shm://shm://x":        `the name "shm://x" is an address`,
	} {
		_, err := s.d.Insert(provider.Address(text))
		if !errors.Is(err, provider.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	_, err := s.d.OpenEndpoint(provider.EndpointConfig{Name: "shm://x"})
	if !errors.Is(err, provider.ErrInvalid) || !strings.Contains(err.Error(), `the name "shm://x" is an address`) {
		t.Errorf("as a name: %v", err)
	}
	for _, name := range []string{"x/", "shm:/x", "a/shm://x"} { // these are names
		ep, err := s.d.OpenEndpoint(provider.EndpointConfig{Name: name})
		if err != nil {
			t.Error(err)
			continue
		}
		if p, err := parseAddress(ep.Address()); err != nil || p.name != name {
			t.Errorf("%s: %v, %v", ep.Address(), p, err)
		}
		s.must(ep.Close())
	}
}

func TestBadAddress(t *testing.T) {
	for _, text := range []string{
		"", "shm:", "loop://a", "shm://", "shm://?inc=1", "shm://%zz", "shm://" + strings.Repeat("x", maxName+1),
		"shm://a?inc=", "shm://a?inc=xyz", "shm://a?inc=11111111111111111", "shm://a?net=-1", "shm://a?uid=4294967296", "shm://a?boot=12",
		"shm://a?boot=" + strings.Repeat("g", 32), "shm://a?path=%", "shm://a?&", "shm://a?later=1", "shm://a?path=", "shm://a?path=a/b", "shm://a?net=0", "shm://a?inc=1&inc=1",
		"shm://a?path=" + strings.Repeat("x", maxAddress),
	} {
		if _, err := parseAddress(provider.Address(text)); !errors.Is(err, provider.ErrInvalid) {
			t.Errorf("%.80s: %v", text, err)
		}
	}
}

func FuzzAddress(f *testing.F) {
	f.Add("shm://n?boot=" + someBoot + "&inc=ff&net=1&path=%2Fr&uid=7")
	f.Add("shm://a%20b")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parseAddress(provider.Address(text))
		if err != nil {
			return
		}
		again, err := parseAddress(provider.Address(p.String()))
		if len(p.String()) <= maxAddress && (err != nil || again != p) {
			t.Fatalf("%q: %+v, then %+v, %v", text, p, again, err)
		}
		if strings.ContainsAny(p.String(), " \n\x00") {
			t.Fatalf("%q becomes %q", text, p.String())
		}
	})
}
