package sst

import (
	"slices"
	"testing"

	"github.com/weft-fabric/weft/sst/cohort"
	"github.com/weft-fabric/weft/sst/internal/cp"
)

// notingChannel notes how each message is sent.
type notingChannel struct {
	cohort.Channel
	sent *[]string
}

func (c notingChannel) Send(int, []byte) error {
	*c.sent = append(*c.sent, "now")
	return nil
}

// delayingChannel is one that can put messages off.
type delayingChannel struct{ notingChannel }

func (c delayingChannel) SendLater(int, []byte) error {
	*c.sent = append(*c.sent, "later")
	return nil
}

// TestFreeWaits: that a step can go is in no hurry; it goes out with the next verdict,
// if the cohort can do that. Nothing else waits.
func TestFreeWaits(t *testing.T) {
	var sent []string
	noting := notingChannel{sent: &sent}
	for name, c := range map[string]struct {
		channel cohort.Channel
		want    []string
	}{
		"a channel that can": {delayingChannel{noting}, []string{"later", "later", "now", "now"}},
		"one that cannot":    {noting, []string{"now", "now", "now", "now"}},
	} {
		sent = nil
		l := cohortLink{size: 3, channel: c.channel}
		l.send(&cp.Free{Step: 1}, l.others()...)
		l.send(&cp.Verdict{Try: 2, Step: 2}, l.others()...)
		if !slices.Equal(sent, c.want) {
			t.Errorf("%s: %v, want %v", name, sent, c.want)
		}
	}
}
