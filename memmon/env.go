package memmon

import (
	"fmt"
	"os"
)

// The environment that FromEnv reads.
const (
	envMonitor = "WEFT_MR_MONITOR"
	envCache   = "WEFT_MR_CACHE"
)

// FromEnv sets what the environment says, for programs that want that: WEFT_MR_MONITOR is a name that [Arbiter.Choose] takes, and WEFT_MR_CACHE is on or
// off. What is not set changes nothing; what is wrong is an error that names it. Nothing else in Weft reads these.
func (a *Arbiter) FromEnv() error {
	if name := os.Getenv(envMonitor); name != "" {
		if err := a.Choose(name); err != nil {
			return fmt.Errorf("%s=%s: %w", envMonitor, name, err)
		}
	}
	switch v := os.Getenv(envCache); v {
	case "":
	case "on":
		a.Enable()
	case "off":
		a.Disable()
	default:
		return fmt.Errorf("%s=%s: %w: on or off", envCache, v, errSetting)
	}
	return nil
}
