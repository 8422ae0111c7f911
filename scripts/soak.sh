#!/usr/bin/env bash
# soak.sh [LINE...] runs the tests with their full counts, hours of them, in one go: for each promise
# of the staging engine a line, then whatever else is called TestSoak... It goes on after a line that
# fails, and ends with a summary. The logs are left in a folder that it names.
#
#   matrix     every kind of writer against every kind of reader, every type and shape
#   launchers  weft pipe under mpirun, Hydra, and with the variables of others
#   histories  random histories of the machines against a model
#   deaths     kill -9 of every role, stops, resets, contact files that go
#   cycles     attach, read, kill: nothing grows
#   native     the native plane between processes: who is beside it and out of its reach, deaths with views held, nothing grows, idle
#   streams    many streams between two processes, under load, with the race detector
#   releases   two releases of ADIOS2 at once, and weft pipe between them
#   law        the law for providers of package fabric, with full counts: loop, and shm over one, two and four processes
#   conformance  the law in small counts, 20 times with the race detector: under hooks, without features of the kernel, in
#              sandboxes, for other users, in other namespaces; in each of these the groups that it could matter to
#   surroundings  the same, once, with all groups in each of these
#   shmdeaths  kill -9 and stops of either side of shm at random moments
#   closes     close during everything; waits that nobody satisfies
#   computes   remote memory access while the target computes
#   hostile    peers that shake hands and then do harm
#   idle       what does nothing uses nothing
#   registration  memory registration: what goes stale, through proofs, the cache and a fabric; userfaultfd for 40 minutes, its
#              reader killed; a storm of memory events
#   reports    the tests that answer reports of users, by number
#   rest       all other tests called TestSoak...
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
all=(matrix launchers histories deaths cycles native streams releases law conformance surroundings shmdeaths closes computes hostile idle registration reports rest)

# What each line runs: packages, and a pattern for go test -run.
declare -A packages=(
	[matrix]=./interop [launchers]=./interop [histories]=./sst/internal/cp [deaths]="./interop ./sst/cohort"
	[cycles]=./interop [native]="./interop ./sst" [streams]="./interop ./sst" [releases]=./interop [reports]=./...
	[law]="./fabric/fabrictest ./prov/shm" [conformance]="./fabric/fabrictest ./prov/shm ./prov/hook"
	[surroundings]="./fabric/fabrictest ./prov/shm ./prov/hook"
	[shmdeaths]=./prov/shm [closes]="./fabric/fabrictest ./prov/shm" [computes]="./fabric/fabrictest ./prov/shm"
	[hostile]="./internal/shmem ./prov/shm" [idle]="./fabric/fabrictest ./prov/shm"
	[registration]="./memmon ./internal/mrcache ./internal/pinnic ./interop"
	[rest]=./...
)
# law are the TestSoak... of package fabric's law for providers, in its packages.
law='^TestSoak(Conformance|Without|F38|Forced|Across|OrdinaryUser)'
declare -A pattern=(
	[matrix]='^TestSoak(Matrix|F04)'
	[launchers]='^TestLaunched'
	[histories]='^TestSoak.*Histor'
	[deaths]='^Test(SoakKill|SoakF22|SoakDeath|SoakFormAndDie|SoakReaderLeaves|SoakInterrupted|ReaderRankStopped|ConnectionReset|ContactFile|LauncherKillsJob|F25|F32)'
	[cycles]='^TestSoakAttachCycles$'
	[native]='^Test(Soak)?Native'
	[streams]='^Test(Soak)?F05'
	[releases]='^TestSoak(Releases|PipeBetween|Newer|Sid|LateActivation)'
	[law]='^Test(SoakConformance|Loop)$'
	[conformance]="$law|^TestLoop$"
	[surroundings]="$law|^TestLoop$"
	[shmdeaths]='^TestSoakConformance$/^procs=2$/./^(exit|death|one-dies|kill|stop|names|stale|viewer-dies|view-outlives)|^TestF31'
	[closes]='^TestSoakConformance$/^procs=1$/./^(wait-ends|close-|never|cycles)|^TestLoop$/./^(wait-ends|close-|never|cycles)'
	[computes]='^TestSoakConformance$/^procs=2$/./^(compute-|first)|^TestLoop$/./^(compute-|first)'
	[hostile]='Hostile|^TestBad|Garbage|Quota|Unknown'
	[idle]='^TestSoakConformance$/^procs=2$/./^(idle|goroutines)|^TestLoop$/./^(idle|goroutines)'
	[registration]='^Test(Soak(Stale|Storm|UserfaultHang|Regist|EventsCrowd|Company|F6[0-9])|UserfaultWindow|Beside$|Histories$)'
	[reports]='^TestFieldsAreAnswered$|F[0-9][0-9]'
	[rest]='^TestSoak'
)

# elsewhere are the TestSoak... of the lines before the rest; what the reports run again they run with
# other reports.
elsewhere='^TestSoak(Matrix|F04|F05|F22|Kill|Death|FormAndDie|ReaderLeaves|Interrupted|AttachCycles|Native|Releases|PipeBetween|Newer|Sid|LateActivation|.*Histor|Stale|Storm|UserfaultHang|Regist|EventsCrowd|Company|F6[0-9]|Hostile$)'

export GORACE="atexit_sleep_ms=10 ${GORACE:-}" # else each process of a test lingers for a second

# run LINE writes the log of a line. Tests that mostly wait, for programs that start and for deaths
# that are noticed, run several at a time, more than there are processors.
run() {
	local soak=1 flags=(-count=1 -timeout 0 -v -run "${pattern[$1]}")
	case $1 in
	matrix | deaths | native) flags+=(-parallel $((2 * $(nproc) + 1))) ;;
	streams | closes | hostile) flags+=(-race) ;;
	conformance) flags+=(-race -count=20) soak= ;;
	surroundings) flags+=(-race) soak=wide ;;
	reports) flags+=(-skip "$elsewhere") ;;
	rest) flags+=(-skip "$elsewhere|$law") ;;
	esac
	# shellcheck disable=SC2086 # a list of packages
	WEFT_SOAK=$soak go test "${flags[@]}" ${packages[$1]}
}

# count WORD LOG counts the outcomes of tests and subtests.
count() { grep -aEc "^ *--- $1" "$2"; }

logs=$(mktemp -d "${TMPDIR:-/tmp}/weft-soak.XXXXXX")
echo "logs: $logs"
summary=() failed=0
lines=("$@")
[ $# -gt 0 ] || lines=("${all[@]}")
for line in "${lines[@]}"; do
	[ -n "${packages[$line]:-}" ] || {
		echo "soak.sh: no line $line; there are: ${all[*]}" >&2
		exit 2
	}
	printf '\n== %s\n' "$line"
	began=$SECONDS log=$logs/$line.log
	if run "$line" >"$log" 2>&1; then
		verdict=ok
		# A line that ran nothing has shown nothing.
		[ "$(count PASS "$log")" -gt 0 ] || verdict=EMPTY
	else
		verdict=FAIL
		grep -aE '^ *--- FAIL|^FAIL|panic:|DATA RACE' "$log" | head -n 40
	fi
	[ $verdict = ok ] || failed=$((failed + 1))
	# What a test says it has measured, recorded or left out.
	grep -aE '(killed|ADIOS2), .*times$|NOT RUN|NOT TESTED|after [0-9]+ cycles|rounds of [0-9]+ streams|registration: ' "$log"
	summary+=("$(printf '%-5s %-10s %4d passed, %d failed, %d skipped  %d s' "$verdict" "$line" \
		"$(count PASS "$log")" "$(count FAIL "$log")" "$(count SKIP "$log")" $((SECONDS - began)))")
done

printf '\nsoak, %d s:\n' $SECONDS
printf '%s\n' "${summary[@]}"
[ $failed = 0 ]
