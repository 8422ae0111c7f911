package provutil

import "time"

// firstReminder is how soon a wait that sleeps is told again of room that was told of before.
const firstReminder = 50 * time.Microsecond

// Reminder repeats the word that there is room for posts. Who was refused may not wait yet when the word is given, while others do;
// no queue can tell it from them, when it comes. So the waits that sleep are told again, at once too often for a program to notice
// and ever more rarely: who comes late waits at most about as long as it was late, and who has nothing to post returns some twenty
// times in a minute and no more than thirty in a day.
//
// Nobody reminds them but they themselves: a sleep is bounded by Sleeps, and who finds at its end that it is Over tells all who wait. So
// nothing runs while nobody waits, and nothing is left of a queue that is closed.
//
// The zero value reminds of nothing. The lock of its queue guards it.
type Reminder struct {
	due   bool // there was room once
	pause time.Duration
	at    time.Time // the next time; zero while nobody has slept since the last
}

// Room begins anew: this is the first word of it.
func (r *Reminder) Room() { *r = Reminder{due: true, pause: firstReminder} }

// Due says whether there was room at any time.
func (r *Reminder) Due() bool { return r.due }

// Sleeps says how long a wait may sleep; false if as long as it wants.
func (r *Reminder) Sleeps() (time.Duration, bool) {
	if !r.due {
		return 0, false
	}
	if r.at.IsZero() {
		r.at = time.Now().Add(r.pause)
		return r.pause, true
	}
	return time.Until(r.at), true
}

// Over says whether all who wait are to be told now. The next time is twice as far away.
func (r *Reminder) Over() bool {
	if r.at.IsZero() || time.Now().Before(r.at) {
		return false
	}
	r.at = time.Time{}
	r.pause = min(2*r.pause, 1000*time.Hour)
	return true
}
