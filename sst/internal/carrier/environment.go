package carrier

import (
	"fmt"
	"net/netip"
	"os"
)

// FromEnv returns c with what it leaves open filled in from the environment, under
// the names and with the meaning that ADIOS2 gives them (docs/wire/cm.md §2.4):
// prefix+"IP", the address to publish, goes before prefix+"INTERFACE", and
// prefix+"PORT_RANGE" is where to listen. prefix is "ADIOS2_" for an ordinary
// build of ADIOS2. What c says itself goes before all of them. Errors wrap
// ErrConfig and name the variable.
func (c Config) FromEnv(prefix string) (Config, error) {
	if c.Interface == "" && !c.AdvertiseAddr.IsValid() {
		if s := os.Getenv(prefix + "IP"); s != "" {
			a, err := netip.ParseAddr(s)
			if err != nil {
				return c, fmt.Errorf("%w: %sIP: %w", ErrConfig, prefix, err)
			}
			c.AdvertiseAddr = a
		} else {
			c.Interface = os.Getenv(prefix + "INTERFACE")
		}
	}
	if s := os.Getenv(prefix + "PORT_RANGE"); s != "" && c.ListenPorts.IsZero() && c.ListenAddr.Port() == 0 {
		r, err := parsePortRange(s)
		if err != nil {
			return c, fmt.Errorf("%sPORT_RANGE: %w", prefix, err)
		}
		c.ListenPorts = r
	}
	return c, nil
}
