package mrcache

// Flush makes the cache forget all that it keeps. What is idle is deregistered when it returns, but for what the cache's goroutine is just about to;
// what is in use is so after its last Release.
func (c *Cache[H]) Flush() { c.logFailure(c.clear(true)) }

// spare gives back what is idle, for who finds no memory to pin. Who closes the cache gives back all by himself, and waits for those who are here
// already: so they, whom a driver or the handler of a log may bring here once more, must not wait for him.
func (c *Cache[H]) spare() {
	if !c.sparing.TryRLock() {
		return
	}
	defer c.sparing.RUnlock()
	c.logFailure(c.clear(false))
}

// Close deregisters all that is idle, and ends the goroutine. It does not wait for what is in use: that is deregistered by the last Release. More than
// once is harmless. The error is what the registrar says.
func (c *Cache[H]) Close() error {
	c.close.once.Do(func() {
		c.mu.Lock()
		c.closed.Store(true)
		c.mu.Unlock()
		c.lonely()
		c.sparing.Lock() // for good: another one's shortage may be giving back what is idle here, and none does from now on
		close(c.reclaimer.stop)
		<-c.reclaimer.done
		c.close.err = c.clear(true)
		c.leave()
	})
	return c.close.err
}

// enter counts a registration, for which the monitor has to stay; not after Close.
func (c *Cache[H]) enter() bool {
	for !c.closed.Load() {
		n := c.live.Load()
		if n == 0 {
			return false
		}
		if c.live.CompareAndSwap(n, n+1) {
			return true
		}
	}
	return false
}

// leave is for the last one after Close also the end of the cache for the arbiter.
func (c *Cache[H]) leave() {
	if c.live.Add(-1) == 0 {
		c.detach()
	}
}
