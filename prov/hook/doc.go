// Package hook wraps a provider: it traces what passes, counts and times it, and makes
// things go wrong, by rules and from a seed. Programs and tests need not know: what comes out of [Wrap] is a
// provider like any other.
//
//	h := hook.Wrap(p, hook.Config{Seed: 7, Rules: []hook.Rule{
//		{At: hook.Posts, Chance: 0.1, Err: provider.ErrAgain}, // one post in ten has to be tried again
//		{At: hook.Send, After: 100, Count: 1, Kill: true},     // the 101st send finds its peer dead
//	}})
//	// and, of provider shm, from the third on no memory file can be made:
//	h = hook.Wrap(p, hook.Config{Open: map[string]string{"fail": "memfd@3-"}})
//	d, err := fabric.OpenDomainIn(h, info, fabric.DomainConfig{})
//
// It adds no completion and takes none away unless a rule says so, and it keeps the rules of package
// fabric/provider with every fault: what it refuses has no completion, what it drops still ends
// when the endpoint closes.
//
// It is no provider of its own: it registers nothing, and package prov/all does not have it. It is for tests and for
// looking into programs, and takes time: contexts are remembered to measure latencies.
//
// Everything is safe for concurrent use. A delay happens in the call that is delayed. There is no goroutine, but
// one for each queue whose Ready is used while a rule drops posts or refuses them with ErrAgain. The descriptor of a queue does not hear of
// these two; TryWait knows of them.
package hook
