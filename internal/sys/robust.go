package sys

// What a word of a RobustOwner holds: the number of a thread with OwnerWaits while the owner lives, 0 after its
// Close, OwnerDied (maybe with OwnerWaits) when its process has died. Peers look at nothing else in it.
const (
	OwnerWaits uint32 = 1 << 31 // FUTEX_WAITERS: the kernel wakes at death
	OwnerDied  uint32 = 1 << 30 // FUTEX_OWNER_DIED
)
