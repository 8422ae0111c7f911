package shm

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/suggest"
)

const (
	scheme     = "shm://"
	maxName    = 255  // bytes of an endpoint's name
	maxAddress = 4096 // bytes of an address
)

// address is a parsed address: shm://NAME[?boot=HEX&inc=HEX&net=INODE&path=FOLDER&uid=UID]. The name is
// enough among processes of one user in one network namespace; what an endpoint gives as its own address has all
// of it, so that whoever has it can say at once that the endpoint is on another node, or is not the
// one it was.
type address struct {
	name string
	boot string // the kernel's boot id, hex; "" means any
	inc  uint64 // the endpoint's incarnation; 0 means any
	net  uint64 // inode of the network namespace; 0 means ours, or, with a folder, any
	path string // a folder in which the endpoint also listens; "" means none
	uid  uint32 // the endpoint's user, with hasUID
	has  bool   // whether uid is said; else it is ours
}

func parseAddress(a provider.Address) (address, error) {
	p, err := splitAddress(a)
	if err != nil {
		return address{}, fmt.Errorf("address %.100q: %w: %w", string(a), err, provider.ErrInvalid)
	}
	return p, nil
}

func splitAddress(a provider.Address) (address, error) {
	rest, ok := strings.CutPrefix(string(a), scheme)
	if !ok {
		return address{}, fmt.Errorf("not %s", scheme)
	}
	if len(a) > maxAddress {
		return address{}, fmt.Errorf("longer than %d bytes", maxAddress)
	}
	if i := strings.IndexFunc(rest, func(r rune) bool { return r <= ' ' || r > '~' }); i >= 0 {
		return address{}, fmt.Errorf("%q at %d: it has only printable ASCII, other bytes as %%XX", rest[i], len(scheme)+i)
	}
	name, query, _ := strings.Cut(rest, "?")
	var p address
	var said []string
	var err error
	if p.name, err = url.PathUnescape(name); err != nil {
		return address{}, err
	}
	if p.name == "" || len(p.name) > maxName {
		return address{}, fmt.Errorf("a name has 1 to %d bytes", maxName)
	}
	if strings.HasSuffix(name, "/") {
		return address{}, errors.New("it ends with a slash: leave that out, or write %2F if the name has it")
	}
	if err := checkName(p.name); err != nil {
		return address{}, err
	}
	for len(query) > 0 {
		var word string
		word, query, _ = strings.Cut(query, "&")
		key, value, _ := strings.Cut(word, "=")
		if value, err = url.QueryUnescape(value); err != nil {
			return address{}, err
		}
		if slices.Contains(said, key) {
			return address{}, fmt.Errorf("%s is said twice", key)
		}
		said = append(said, key)
		if err := p.set(key, value); err != nil {
			return address{}, err
		}
	}
	return p, nil
}

// checkName refuses a name that is an address: it would become a name within another address, at which nobody looks for it.
func checkName(name string) error {
	if strings.HasPrefix(name, scheme) {
		return fmt.Errorf("the name %.100q is an address: a name has no %s before it", name, scheme)
	}
	return nil
}

// addressKeys are the parameters of an address.
var addressKeys = []string{"boot", "inc", "net", "path", "uid"}

// set takes one parameter. What is not understood is an error: an address that means something else than it says
// would reach somebody else, or nobody.
func (p *address) set(key, value string) (err error) {
	want := ""
	switch key {
	case "boot":
		want = "a boot id, 32 hex digits"
		if b, err := hex.DecodeString(value); err == nil && len(b) == len(bootID{}) {
			p.boot, want = strings.ToLower(value), ""
		}
	case "inc":
		if p.inc, err = strconv.ParseUint(value, 16, 64); err != nil || p.inc == 0 {
			want = "an incarnation, a hex number that is not 0"
		}
	case "net":
		if p.net, err = strconv.ParseUint(value, 10, 64); err != nil || p.net == 0 {
			want = "the inode of a network namespace, a number that is not 0"
		}
	case "path":
		if p.path = filepath.Clean(value); !filepath.IsAbs(value) {
			want = "the absolute path of a folder"
		}
	case "uid":
		uid, err := strconv.ParseUint(value, 10, 32)
		if p.uid, p.has = uint32(uid), true; err != nil {
			want = "a user's number"
		}
	default:
		if s := suggest.Nearest(key, addressKeys); s != "" {
			return fmt.Errorf("unknown parameter %q: do you mean %q?", key, s)
		}
		return fmt.Errorf("unknown parameter %q; known are %s", key, strings.Join(addressKeys, ", "))
	}
	if want != "" {
		return fmt.Errorf("%s=%q: want %s", key, value, want)
	}
	return nil
}

// String is the address in its one form: parameters by name, none that is not said.
func (p address) String() string {
	var b strings.Builder
	b.WriteString(scheme)
	b.WriteString(url.PathEscape(p.name))
	sep := byte('?')
	add := func(key, value string) {
		b.WriteByte(sep)
		b.WriteString(key + "=" + value)
		sep = '&'
	}
	if p.boot != "" {
		add("boot", p.boot)
	}
	if p.inc != 0 {
		add("inc", strconv.FormatUint(p.inc, 16))
	}
	if p.net != 0 {
		add("net", strconv.FormatUint(p.net, 10))
	}
	if p.path != "" {
		add("path", url.QueryEscape(p.path))
	}
	if p.has {
		add("uid", strconv.FormatUint(uint64(p.uid), 10))
	}
	return b.String()
}
