#!/usr/bin/env bash
# test.sh [STAGE...] runs the named checks, or all that CI runs. It goes on after a check that fails
# and says at the end which did. With WEFT_REQUIRE_PEERS=1 a test that skips for want of a peer is a
# failure.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

all=(format build vet archtest race invariants fuzz interop tree)

# units lists the packages whose tests need no foreign peer.
units() { go list ./... | grep -vE '/interop(/|$)'; }

format() {
	local wrong
	wrong=$(gofmt -l .) || return
	[ -z "$wrong" ] || {
		echo "gofmt would change:"
		echo "$wrong"
		return 1
	}
}

# One static binary for both machines: nothing may need C.
build() {
	local arch
	for arch in amd64 arm64; do
		CGO_ENABLED=0 GOOS=linux GOARCH=$arch go build ./... || return
	done
}

# vet compiles the tests as well.
vet() {
	local arch
	for arch in amd64 arm64; do
		CGO_ENABLED=0 GOOS=linux GOARCH=$arch go vet ./... || return
	done
	go vet -tags invariants ./...
}

archtest() { go test ./internal/archtest; }

# race_run ARGS... runs the unit tests under the race detector and proves that it was on: a test
# that is built only with -race writes the marker. Processes that tests start need not linger for a
# second at their end, as the race detector has them do.
export GORACE="atexit_sleep_ms=10 ${GORACE:-}"
race_run() {
	local marker status
	marker=$(mktemp)
	units | WEFT_RACE_MARKER=$marker xargs go test -race -shuffle=on -timeout 20m "$@"
	status=$?
	if [ $status = 0 ] && ! grep -q 'race detector: on' "$marker"; then
		echo "the run passed, but the race detector was off"
		status=1
	fi
	[ $status != 0 ] || cat "$marker"
	rm -f "$marker"
	return $status
}

race() { race_run -short; }
race-full() { race_run -count=1; }

# The same tests at full length, with assertions compiled in.
invariants() { units | xargs go test -tags invariants -shuffle=on -timeout 20m; }

fuzz() { scripts/fuzz.sh 5s; }

interop() {
	local log status
	log=$(mktemp)
	go test -v -count=1 -timeout 30m ./interop/... 2>&1 | tee "$log"
	status=$?
	if [ "${WEFT_REQUIRE_PEERS:-}" = 1 ] && grep -E '^ *--- SKIP' "$log"; then
		echo "the tests above were skipped, and WEFT_REQUIRE_PEERS=1 forbids it"
		status=1
	fi
	rm -f "$log"
	return $status
}

# The tests leave the tree as it was. Only CI can tell: nobody else works in its checkout.
tree() {
	[ "${CI:-}" = true ] || return 0
	local now
	now=$(git status --porcelain) || return
	[ "$now" = "$tree_before" ] || {
		echo "the tests changed the tree:"
		echo "$now"
		return 1
	}
}
tree_before=$(git status --porcelain 2>/dev/null || true)

stages=("$@")
[ $# -gt 0 ] || stages=("${all[@]}")
failed=()
for stage in "${stages[@]}"; do
	declare -F "$stage" >/dev/null || {
		echo "test.sh: no stage $stage; there are: ${all[*]} race-full" >&2
		exit 2
	}
	printf '\n== %s\n' "$stage"
	began=$SECONDS
	"$stage" || failed+=("$stage")
	printf -- '-- %s: %d s\n' "$stage" $((SECONDS - began))
done

printf '\nstages: %d passed, %d failed %s(%d s)\n' \
	$((${#stages[@]} - ${#failed[@]})) ${#failed[@]} "${failed[*]:+[${failed[*]}] }" $SECONDS
[ ${#failed[@]} = 0 ]
