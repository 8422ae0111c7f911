package testutil

import "sync"

// roleRace has a data race, for TestRaceDetectorIsOn.
func roleRace([]string) error {
	var wg sync.WaitGroup
	n := 0
	for range 2 {
		wg.Go(func() {
			for range 1000 {
				n++
			}
		})
	}
	wg.Wait()
	return nil
}
