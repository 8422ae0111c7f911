package tcp

import (
	"net"
	"time"
)

// OrDefault returns v, or d if v is not positive: the rule of every number and
// every time in a configuration.
func OrDefault[T int | time.Duration](v, d T) T {
	if v <= 0 {
		return d
	}
	return v
}

// KeepAlive returns the settings by which the end of a host is noticed after
// idle + count*interval. What is not positive means the default: 15 s, 5 s and 4,
// together 35 s.
func KeepAlive(idle, interval time.Duration, count int) net.KeepAliveConfig {
	return net.KeepAliveConfig{
		Enable:   true,
		Idle:     OrDefault(idle, 15*time.Second),
		Interval: OrDefault(interval, 5*time.Second),
		Count:    OrDefault(count, 4),
	}
}
