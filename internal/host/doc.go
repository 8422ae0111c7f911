// Package host reads what of this machine bounds communication and is no
// provider's: the kernel, limits of the process, room in its memory cgroup, huge
// pages. It reads files of /proc and /sys, and asks the kernel nothing else, so that tests give it files of
// their own.
//
// It is not a judge: what a missing thing means is said by the provider that
// would use it, and by package doctor.
//
// Its functions keep no state and are safe for concurrent use.
package host
