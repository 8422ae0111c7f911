package ping

import (
	"errors"
	"slices"
	"testing"
	"time"
)

func TestParseSizes(t *testing.T) {
	for text, want := range map[string][]int{
		"8": {8}, "0": {0}, "8,1K, 64KiB ,1m,1 MiB,1G,3b": {8, 1 << 10, 64 << 10, 1 << 20, 1 << 20, 1 << 30, 3}, "1gib": {1 << 30},
	} {
		if got, err := ParseSizes(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", ",", "8,", "K", "-1", "1.5K", "1T", "2G", "1025M", "99999999999999999999", "8 8", "0x10", "1KK"} {
		if got, err := ParseSizes(text); !errors.Is(err, ErrSize) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

func FuzzParseSizes(f *testing.F) {
	f.Add("8,1K")
	f.Add("1 GiB")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ParseSizes(text)
		if (err == nil) == (len(list) == 0) || slices.ContainsFunc(list, func(n int) bool { return n < 0 || n > MaxSize }) {
			t.Errorf("%q: %v, %v", text, list, err)
		}
	})
}

func TestBounds(t *testing.T) {
	for _, op := range Ops {
		for _, n := range []int{0, 1, 8, 4 << 10, 1 << 20, 64 << 20, MaxSize} {
			w := Work{Op: op}
			if i := w.iters(n); i < 20 || i > 20_000 {
				t.Errorf("%d iterations of %d bytes", i, n)
			}
			for _, p := range []Phase{Latency, Rate} {
				if s := slots(p, op, n); s < 1 || s > maxSlots || s > 2 && s*n > slotBytes {
					t.Errorf("%d slots of %d bytes", s, n)
				}
			}
		}
	}
}

func TestDistribution(t *testing.T) {
	ns := make([]int64, 1001)
	for i := range ns {
		ns[len(ns)-1-i] = int64(i) * 1000
	}
	if got := distribution(ns, 0.5); got != (Distribution{0, 250, 495}) {
		t.Errorf("%+v", got)
	}
	if got := distribution([]int64{2000}, 1); got != (Distribution{2, 2, 2}) {
		t.Errorf("%+v", got)
	}
	if got := distribution(nil, 1); got != (Distribution{}) {
		t.Errorf("%+v", got)
	}
}

func TestRates(t *testing.T) {
	r := Result{Size: 1000}
	if r.rates(500, time.Second/2); r.OpsPerS != 1000 || r.MBPerS != 1 {
		t.Errorf("%+v", r)
	}
	if r.rates(1, 0); r.OpsPerS != 1e9 {
		t.Errorf("%+v", r)
	}
}
