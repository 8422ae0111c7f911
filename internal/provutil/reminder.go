package provutil

import "time"

// firstReminder is how soon a wait that sleeps is told again of room that was told of before.
const firstReminder = 50 * time.Microsecond

// Reminder repeats the word that there is room for posts. Who was refused may not wait yet when the word is given, while others do;
// no queue can tell it from them, when it comes. So the waits that sleep are told again, at once too often for a program to notice
// and ever more rarely: who comes late waits at most about as long as it was late, and who has nothing to post returns some twenty
// times in a minute and no more than thirty in a day.
//
// The zero value reminds of nothing, and has no timer. The lock of its queue guards it.
type Reminder struct {
	due     bool // there was room once
	running bool
	pause   time.Duration
	timer   *time.Timer
}

// Reminded is a queue that repeats the word when it is time. It is called without the queue's lock.
type Reminded interface{ Remind() }

// Room begins anew: this is the first word of it.
func (r *Reminder) Room() {
	r.Stop()
	r.due, r.pause = true, firstReminder
}

// Sleeps is for a wait that is to sleep: q is called when it is time.
func (r *Reminder) Sleeps(q Reminded) {
	if !r.due || r.running {
		return
	}
	r.running = true
	if r.timer == nil {
		r.timer = time.AfterFunc(r.pause, q.Remind)
	} else {
		r.timer.Reset(r.pause)
	}
}

// Ran is for Remind: the next time is twice as far away.
func (r *Reminder) Ran() {
	r.running = false
	r.pause = min(2*r.pause, 1000*time.Hour)
}

// Stop ends it until the next wait that is to sleep.
func (r *Reminder) Stop() {
	if r.running {
		r.timer.Stop()
		r.running = false
	}
}
