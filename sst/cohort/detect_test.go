package cohort

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDetect(t *testing.T) {
	const (
		ompi  = "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 PMIX_NAMESPACE=1530003457 "
		pmi   = "PMI_RANK=2 PMI_SIZE=3 PMI_FD=8 "
		step  = "SLURM_JOB_ID=77 SLURM_STEP_ID=2 SLURM_PROCID=3 SLURM_NTASKS=9 SLURM_STEP_NUM_TASKS=8 "
		batch = "SLURM_JOB_ID=77 SLURM_PROCID=0 SLURM_NTASKS=8 SLURM_NPROCS=8 "
		weft  = "WEFT_RANK=0 WEFT_SIZE=2 "
	)
	solo := Launch{Size: 1, Means: "none"}
	for _, c := range []struct {
		name, environ string
		want          Launch
		err           string // words of it
	}{
		{"nothing", "", solo, ""},
		{"other things", "HOME=/x SLURM_CONF=/etc/slurm WEFT_SOAK=1", solo, ""},
		{"empty variables", "WEFT_RANK= WEFT_SIZE= PMI_RANK=", solo, ""},

		{"Weft", weft, Launch{"Weft", 0, 2, "weft", "", "", "", "file"}, ""},
		{"Weft, a job", weft + "WEFT_JOB=x", Launch{"Weft", 0, 2, "x", "", "", "", "file"}, ""},
		{"Weft, a root", weft + "WEFT_ROOT=h:1 WEFT_TOKEN=x", Launch{"Weft", 0, 2, "weft", "h:1", "", "", "address"}, ""},
		{"Weft, an address", weft + "WEFT_ADDRESS=10.0.0.1", Launch{"Weft", 0, 2, "weft", "", "10.0.0.1", "", "file"}, ""},
		{"Weft, one rank", "WEFT_RANK=0 WEFT_SIZE=1", Launch{"Weft", 0, 1, "weft", "", "", "", "none"}, ""},
		{"Weft, one rank, a root", "WEFT_RANK=0 WEFT_SIZE=1 WEFT_ROOT=h:1", Launch{"Weft", 0, 1, "weft", "h:1", "", "", "none"}, ""},
		{"Weft, no size", "WEFT_RANK=0", Launch{}, "WEFT_RANK=0 WEFT_SIZE"},
		{"Weft, no rank", "WEFT_SIZE=3", Launch{}, "WEFT_SIZE=3 WEFT_RANK"},
		{"Weft, half, over Open MPI", "WEFT_RANK=0 " + ompi, Launch{}, "WEFT_RANK=0 WEFT_SIZE"},
		{"Weft, not a number", "WEFT_RANK=a WEFT_SIZE=3", Launch{}, `WEFT_RANK="a"`},
		{"Weft, negative", "WEFT_RANK=-1 WEFT_SIZE=3", Launch{}, `WEFT_RANK="-1"`},
		{"Weft, huge", "WEFT_RANK=1 WEFT_SIZE=99999999999", Launch{}, "WEFT_SIZE"},
		{"Weft, beyond", "WEFT_RANK=3 WEFT_SIZE=3", Launch{}, "WEFT_RANK=3 WEFT_SIZE=3"},
		{"Weft, no ranks", "WEFT_RANK=0 WEFT_SIZE=0", Launch{}, "WEFT_SIZE=0"},
		{"a root without ranks", "WEFT_ROOT=h:1 WEFT_TOKEN=x", Launch{}, "WEFT_ROOT=h:1 WEFT_RANK WEFT_SIZE"},
		{"a root without a token", weft + "WEFT_ROOT=h:1", Launch{}, "WEFT_ROOT=h:1 WEFT_TOKEN"},

		{"Open MPI", ompi, Launch{"Open MPI", 1, 4, "1530003457", "", "", "", "file"}, ""},
		{"Open MPI, root by Weft", ompi + "WEFT_ROOT=h:1 WEFT_TOKEN=x", Launch{"Open MPI", 1, 4, "1530003457", "h:1", "", "", "address"}, ""},
		{"Open MPI in salloc", ompi + step + batch, Launch{"Open MPI", 1, 4, "1530003457", "", "", "", "file"}, ""},
		{"Open MPI under a PMI", ompi + pmi, Launch{"Open MPI", 1, 4, "1530003457", "", "", "", "file"}, ""},
		{"Open MPI, no size", "OMPI_COMM_WORLD_RANK=1", Launch{}, "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE"},
		{"Weft in Open MPI", weft + ompi, Launch{"Weft", 0, 2, "weft", "", "", "", "file"}, ""},

		{"PMI", pmi, Launch{"PMI", 2, 3, "", "", "", "", "PMI"}, ""},
		{"PMI in Slurm", pmi + step, Launch{"PMI", 2, 3, "77.2", "", "", "", "PMI"}, ""},
		{"PMI, root by Weft", pmi + "WEFT_ROOT=h:1 WEFT_TOKEN=x", Launch{"PMI", 2, 3, "", "h:1", "", "", "address"}, ""},
		{"PMI without a manager", "PMI_RANK=2 PMI_SIZE=3", Launch{"PMI", 2, 3, "", "", "", "", "file"}, ""},
		{"PALS", "PMI_RANK=2 PMI_SIZE=3 PALS_APID=ab-1", Launch{"PMI", 2, 3, "ab-1", "", "", "", "file"}, ""},
		{"PMI, no size", "PMI_RANK=2 PMI_FD=8", Launch{}, "PMI_RANK=2 PMI_SIZE"},
		{"PMI by port", "PMI_PORT=h:1 PMI_ID=4", Launch{"PMI", -1, 0, "", "", "", "", "PMI"}, ""},
		{"PMI by port, no id", "PMI_PORT=h:1", Launch{}, "PMI_PORT=h:1 PMI_ID"},
		{"PMI by port, no port", "PMI_ID=1", Launch{}, "PMI_ID=1 PMI_PORT"},

		{"srun", step, Launch{"Slurm", 3, 8, "77.2", "", "", "", "file"}, ""},
		{"srun, old names", "SLURM_JOBID=77 SLURM_STEPID=2 SLURM_PROCID=3 SLURM_NTASKS=9 SLURMD_NODENAME=n1", Launch{"Slurm", 3, 9, "77.2", "", "", "n1", "file"}, ""},
		{"srun -n 1", "SLURM_JOB_ID=77 SLURM_STEP_ID=2 SLURM_PROCID=0 SLURM_NTASKS=1", Launch{"Slurm", 0, 1, "77.2", "", "", "", "none"}, ""},
		{"srun, no rank", "SLURM_JOB_ID=77 SLURM_STEP_ID=2 SLURM_NTASKS=9", Launch{}, "SLURM_NTASKS=9 SLURM_PROCID"},
		{"srun, no size", "SLURM_JOB_ID=77 SLURM_STEP_ID=2 SLURM_PROCID=1", Launch{}, "SLURM_PROCID=1 SLURM_NTASKS"},
		{"batch script", batch, solo, ""},
		{"batch script, its step", batch + "SLURM_STEP_ID=4294967291", solo, ""},
		{"shell of salloc", batch + "SLURM_STEP_ID=4294967290 SLURM_STEP_NUM_TASKS=1", solo, ""},
		{"salloc without a step", "SLURM_JOB_ID=77 SLURM_NTASKS=8", solo, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := Detect(strings.Fields(c.environ))
			if d := cmp.Diff(c.want, l); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			if (err != nil) != (c.err != "") {
				t.Fatalf("error %v, want one with %q", err, c.err)
			}
			if err != nil && !errors.Is(err, ErrConfig) {
				t.Errorf("%v is not ErrConfig", err)
			}
			for _, w := range strings.Fields(c.err) {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%v does not say %s", err, w)
				}
			}
			if l.String() == "" {
				t.Error("no words for it")
			}
		})
	}
}

// What launchers set: taken from processes of Open MPI 4.1.4 and MPICH 4.0.2, and
// from what others have published of Slurm; that of Open MPI 5 and of a batch
// script is written after their documentation.
func TestDetectSamples(t *testing.T) {
	for _, c := range []struct {
		file string
		want Launch
		text string
	}{
		{"openmpi-4.1.4", Launch{"Open MPI", 1, 2, "1530003457", "", "", "node1", "file"},
			"rank 1 of 2, launched by Open MPI, job 1530003457, rank 0 found by a file in the run folder"},
		{"openmpi-5", Launch{"Open MPI", 1, 4, "prterun-node1-4242@1", "", "", "node1", "file"},
			"rank 1 of 4, launched by Open MPI, job prterun-node1-4242@1, rank 0 found by a file in the run folder"},
		{"hydra-4.0.2", Launch{"PMI", 1, 2, "", "", "", "", "PMI"}, "rank 1 of 2, launched by PMI, rank 0 found by PMI"},
		{"hydra-4.0.2-port", Launch{"PMI", -1, 0, "", "", "", "", "PMI"}, "a rank that the process manager numbers, launched by PMI, rank 0 found by PMI"},
		{"slurm-step", Launch{"Slurm", 1, 2, "38749.1", "", "", "node97", "file"},
			"rank 1 of 2, launched by Slurm, job 38749.1, rank 0 found by a file in the run folder"},
		{"slurm-interactive", Launch{Size: 1, Means: "none"}, "one rank, no launcher"},
		{"slurm-batch", Launch{Size: 1, Means: "none"}, "one rank, no launcher"},
	} {
		t.Run(c.file, func(t *testing.T) {
			b, err := os.ReadFile(filepath.Join("testdata", "environ", c.file))
			if err != nil {
				t.Fatal(err)
			}
			l, err := Detect(strings.Split(strings.TrimSpace(string(b)), "\n"))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, l); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			if l.String() != c.text {
				t.Errorf("%q, want %q", l, c.text)
			}
		})
	}
}

func FuzzDetect(f *testing.F) {
	f.Add("PMI_RANK=1\x00PMI_SIZE=2\x00PMI_FD=3")
	f.Add("SLURM_JOB_ID=1\x00SLURM_STEP_ID=0\x00SLURM_PROCID=1\x00SLURM_NTASKS=2\x00WEFT_ROOT=h:1\x00WEFT_TOKEN=x")
	f.Fuzz(func(t *testing.T, text string) {
		l, err := Detect(strings.Split(text, "\x00"))
		if err != nil {
			return
		}
		if l.Means != meansPMI && (l.Size < 1 || l.Rank < 0 || l.Rank >= l.Size) {
			t.Errorf("%+v", l)
		}
	})
}
