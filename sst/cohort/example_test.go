package cohort_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/weft-fabric/weft/sst/cohort"
)

// counter adds up what comes in, and says when all have been heard.
type counter struct {
	missing int
	sum     int
	done    chan int
}

func (c *counter) Message(_ int, msg []byte) {
	c.sum += len(msg)
	if c.missing--; c.missing == 0 {
		c.done <- c.sum
	}
}

func (c *counter) Lost(rank int, err error) { fmt.Println("lost", rank, err) }

// Rank 0 gathers something of each other rank.
func ExampleLocal() {
	ranks := cohort.Local(4)
	sum := &counter{missing: 3, done: make(chan int, 1)}
	root, _ := ranks[0].Join("numbers", sum)

	var wg sync.WaitGroup
	for _, c := range ranks[1:] {
		wg.Go(func() {
			ch, _ := c.Join("numbers", &counter{})
			_ = ch.Send(0, make([]byte, 10*c.Rank()))
			_ = ch.Close()
			_ = c.Close()
		})
	}
	fmt.Println("sum:", <-sum.done)
	wg.Wait()
	_ = root.Close()
	_ = ranks[0].Close()
	// Output: sum: 60
}

// A process that may have been started by mpirun, srun, or by nobody.
func ExampleFromLauncher() {
	c, err := cohort.FromLauncher(context.Background(), cohort.LauncherConfig{
		Environ: []string{"HOME=/home"}, // nil for that of the process
		Name:    "writers",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("rank %d of %d\n", c.Rank(), c.Size())
	_ = c.Close()
	// Output: rank 0 of 1
}

// What the environment says, before anybody connects.
func ExampleDetect() {
	l, err := cohort.Detect([]string{"OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_SIZE=4", "PMIX_NAMESPACE=1530003457"})
	fmt.Println(l, err)
	_, err = cohort.Detect([]string{"WEFT_RANK=2"})
	fmt.Println(err)
	// Output:
	// rank 2 of 4, launched by Open MPI, job 1530003457, rank 0 found by a file in the run folder <nil>
	// cohort: bad configuration: WEFT_RANK=2 is set, but not WEFT_SIZE
}
