package tcp

import (
	"net"
	"testing"
	"time"
)

func TestOrDefault(t *testing.T) {
	for v, want := range map[int]int{-1: 7, 0: 7, 1: 1, 9: 9} {
		if got := OrDefault(v, 7); got != want {
			t.Errorf("%d: %d, want %d", v, got, want)
		}
	}
	if got := OrDefault(-time.Second, time.Minute); got != time.Minute {
		t.Error(got)
	}
}

func TestKeepAlive(t *testing.T) {
	for _, tt := range []struct {
		idle, interval time.Duration
		count          int
		want           net.KeepAliveConfig
	}{
		{0, 0, 0, net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 4}},
		{time.Minute, 0, -1, net.KeepAliveConfig{Enable: true, Idle: time.Minute, Interval: 5 * time.Second, Count: 4}},
		{time.Second, 2 * time.Second, 3, net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: 2 * time.Second, Count: 3}},
	} {
		if got := KeepAlive(tt.idle, tt.interval, tt.count); got != tt.want {
			t.Errorf("%v, %v, %d: %+v", tt.idle, tt.interval, tt.count, got)
		}
	}
}
