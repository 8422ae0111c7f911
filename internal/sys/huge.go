package sys

// HugePool is what the system has of huge pages of one size.
type HugePool struct {
	Page  uint64 // bytes of a page
	Pages uint64 // reserved
	Free  uint64 // of these neither in use nor promised to somebody
}
