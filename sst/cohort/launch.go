package cohort

import (
	"fmt"
	"strconv"
	"strings"
)

// Launch is what the environment of a process says about its cohort.
type Launch struct {
	// Launcher is who started the process: "Weft" for WEFT_ variables, "Open MPI",
	// "PMI" (MPICH and others with Hydra, Flux, srun --mpi=pmi2), "Slurm", or ""
	// for nobody: one rank.
	Launcher string
	// Rank and Size are -1 and 0 if only the process manager can tell, behind
	// PMI_PORT.
	Rank, Size int
	// Job tells this job apart from others that use the same run folder; "" if the
	// environment has nothing of the kind.
	Job string
	// Root is the address of rank 0, from WEFT_ROOT; "" if it is to be found out.
	Root string
	// Address is the host, or "host:port", under which rank 0 is to be found, from
	// WEFT_ADDRESS; "" lets rank 0 guess.
	Address string
	// Node is the name that the launcher has for this host; "" if none.
	Node string
	// Means is how the ranks meet: "none" (one rank), "address" (Root), "PMI" (over
	// the process manager), or "file" (in the run folder).
	Means string
}

// String says it in one line, without secrets: there are none in a Launch.
func (l Launch) String() string {
	if l.Launcher == "" {
		return "one rank, no launcher"
	}
	who := fmt.Sprintf("rank %d of %d", l.Rank, l.Size)
	if l.Size == 0 {
		who = "a rank that the process manager numbers"
	}
	text := fmt.Sprintf("%s, launched by %s", who, l.Launcher)
	if l.Job != "" {
		text += ", job " + l.Job
	}
	switch l.Means {
	case meansAddress:
		text += ", rank 0 at " + l.Root
	case meansPMI:
		text += ", rank 0 found by PMI"
	case meansFile:
		text += ", rank 0 found by a file in the run folder"
	}
	return text
}

// Means of a Launch.
const (
	meansNone    = "none"
	meansAddress = "address"
	meansPMI     = "PMI"
	meansFile    = "file"
)

// Variables that Weft reads whoever the launcher is.
const (
	envRank    = "WEFT_RANK"
	envSize    = "WEFT_SIZE"
	envRoot    = "WEFT_ROOT"
	envToken   = "WEFT_TOKEN"
	envJob     = "WEFT_JOB"
	envAddress = "WEFT_ADDRESS"
)

// Detect reads an environment, as os.Environ returns it, and says what it means.
// It looks at nothing else.
//
// The first of these counts, because each may have been started inside of those
// after it:
//
//   - WEFT_RANK and WEFT_SIZE: somebody has said so by hand.
//   - Open MPI: OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE.
//   - PMI: PMI_RANK and PMI_SIZE, or PMI_PORT and PMI_ID.
//   - Slurm: SLURM_PROCID and SLURM_STEP_NUM_TASKS (else SLURM_NTASKS), in a step
//     that srun has started. A batch script, and a shell of salloc, have the
//     variables of the whole job, but are one process: one rank.
//   - nothing: one rank.
//
// WEFT_ROOT, WEFT_JOB and WEFT_ADDRESS add to each of them. A variable that is
// empty is not set. An error wraps ErrConfig and names the variables that are
// wrong.
func Detect(environ []string) (Launch, error) {
	env := parseEnviron(environ)
	l, err := detectRank(env)
	if err != nil {
		return Launch{}, err
	}
	l.Root = env[envRoot]
	l.Address = env[envAddress]
	if env[envJob] != "" {
		l.Job = env[envJob]
	}
	switch {
	case l.Launcher == "" && l.Root != "":
		return Launch{}, fmt.Errorf("%w: %s=%s is set, but neither %s and %s nor the variables of a launcher",
			ErrConfig, envRoot, l.Root, envRank, envSize)
	case l.Size == 1:
		l.Means = meansNone
	case l.Root != "":
		l.Means = meansAddress
	case env["PMI_FD"] != "" && l.Launcher == launcherPMI || env["PMI_PORT"] != "" && l.Launcher == launcherPMI:
		l.Means = meansPMI
	default:
		l.Means = meansFile
	}
	if l.Root != "" && l.Size != 1 && env[envToken] == "" {
		return Launch{}, fmt.Errorf("%w: %s=%s is set, but not %s, the secret that the ranks share", ErrConfig, envRoot, l.Root, envToken)
	}
	return l, nil
}

// Names of launchers.
const (
	launcherWeft  = "Weft"
	launcherOMPI  = "Open MPI"
	launcherPMI   = "PMI"
	launcherSlurm = "Slurm"
)

// environment is a parsed environ; a variable without a value is not in it.
type environment map[string]string

func parseEnviron(environ []string) environment {
	env := make(environment, len(environ))
	for _, e := range environ {
		if name, value, ok := strings.Cut(e, "="); ok && name != "" && value != "" {
			env[name] = value
		}
	}
	return env
}

// detectRank finds launcher, rank, size, job and node.
func detectRank(env environment) (Launch, error) {
	switch {
	case env.has(envRank, envSize):
		l, err := env.launch(launcherWeft, envRank, envSize)
		l.Job = "weft" // the run folder alone tells jobs apart
		return l, err
	case env.has("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"):
		l, err := env.launch(launcherOMPI, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")
		// Open MPI 5 has the first only, with host and process of prterun in it; 4
		// has both, the same number.
		l.Job = env.first("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid")
		l.Node = env["PMIX_HOSTNAME"]
		return l, err
	case env.has("PMI_RANK", "PMI_SIZE"):
		l, err := env.launch(launcherPMI, "PMI_RANK", "PMI_SIZE")
		// Hydra names no job. Cray's PALS and Flux do.
		l.Job = env.first("PALS_APID", "FLUX_JOB_ID")
		if l.Job == "" {
			l.Job = env.slurmStep()
		}
		return l, err
	case env.has("PMI_PORT", "PMI_ID"):
		return env.launchByPort()
	}
	return env.launchBySlurm()
}

// has reports whether any of the variables is set.
func (e environment) has(names ...string) bool { return e.first(names...) != "" }

// first returns the first of the variables that is set, or "".
func (e environment) first(names ...string) string {
	for _, n := range names {
		if e[n] != "" {
			return e[n]
		}
	}
	return ""
}

// launch reads rank and size.
func (e environment) launch(launcher, rank, size string) (Launch, error) {
	l := Launch{Launcher: launcher}
	var err error
	switch {
	case e[rank] == "":
		return l, fmt.Errorf("%w: %s=%s is set, but not %s", ErrConfig, size, e[size], rank)
	case e[size] == "":
		return l, fmt.Errorf("%w: %s=%s is set, but not %s", ErrConfig, rank, e[rank], size)
	}
	if l.Rank, err = e.number(rank); err != nil {
		return l, err
	}
	if l.Size, err = e.number(size); err != nil {
		return l, err
	}
	if l.Rank >= l.Size {
		return l, fmt.Errorf("%w: %s=%d and %s=%d: ranks are counted from 0", ErrConfig, rank, l.Rank, size, l.Size)
	}
	return l, nil
}

// number reads a count that fits what frames can name.
func (e environment) number(name string) (int, error) {
	n, err := strconv.ParseInt(e[name], 10, 32)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%w: %s=%q is not a number of ranks", ErrConfig, name, e[name])
	}
	return int(n), nil
}

// launchByPort is PMI without a descriptor: the manager tells rank and size.
func (e environment) launchByPort() (Launch, error) {
	for _, p := range [][2]string{{"PMI_PORT", "PMI_ID"}, {"PMI_ID", "PMI_PORT"}} {
		if e[p[0]] == "" {
			return Launch{}, fmt.Errorf("%w: %s=%s is set, but not %s", ErrConfig, p[1], e[p[1]], p[0])
		}
	}
	return Launch{Launcher: launcherPMI, Rank: -1}, nil
}

// launchBySlurm knows Slurm's steps. A process outside of a step that srun has
// started is one rank, whatever the variables of the job say.
func (e environment) launchBySlurm() (Launch, error) {
	if e.slurmStep() == "" {
		return Launch{Rank: 0, Size: 1}, nil
	}
	size := "SLURM_STEP_NUM_TASKS"
	if e[size] == "" {
		size = "SLURM_NTASKS"
	}
	l, err := e.launch(launcherSlurm, "SLURM_PROCID", size)
	l.Job = e.slurmStep()
	l.Node = e["SLURMD_NODENAME"]
	return l, err
}

// slurmStep returns "job.step" of a process that srun has started, else "". The
// highest numbers are no such steps: 4294967291 is the batch script, 4294967290
// the shell of salloc.
func (e environment) slurmStep() string {
	job, step := e.first("SLURM_JOB_ID", "SLURM_JOBID"), e.first("SLURM_STEP_ID", "SLURM_STEPID")
	const special = 0xfffffff0
	if n, err := strconv.ParseUint(step, 10, 32); job == "" || step == "" || err == nil && n >= special {
		return ""
	}
	return job + "." + step
}
