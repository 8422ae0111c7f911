// Package provutil is what providers share: the lock of a domain with its wait
// ladder and sleeper ([Core]), completion queues and counters ([CQ], [Counter]),
// the matching of messages to receives ([Matcher]), the address vector ([AV]),
// memory keys ([Keys]), atomic operations on bytes ([Atomics]), pools of records
// and buffers, and the checks that every provider makes.
//
// It is not a provider, and it moves no byte between processes: that is an
// [Engine], which each provider writes.
//
// Concurrency: one mutex guards everything of a domain, that of its Core. A
// function whose doc says "locked" is called with it held, one whose doc says
// "unlocked" without it. Matcher, AV, Pool and Buffers are plain data that this
// lock guards; Keys and Atomics, which peers of the same process use too, have
// locks of their own. Nothing allocates on the way of a post or a completion that
// ends well.
package provutil
