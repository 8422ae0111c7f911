#!/usr/bin/env bash
# fuzz.sh DURATION [PATTERN] fuzzes every target of the module, one after another, for DURATION each
# (5s, 10m). PATTERN, an extended regular expression, picks targets by "folder FuzzName".
# An input that fails is left in the package's testdata/fuzz: commit it with the fix.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

duration=${1:?usage: scripts/fuzz.sh DURATION [PATTERN]}
pattern=${2:-.}

# targets prints "folder FuzzName" for each fuzz target.
targets() {
	grep -rnE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*\(' . |
		sed -E 's|^(.*)/[^/]*_test\.go:[0-9]+:func (Fuzz[A-Za-z0-9_]*)\(.*|\1 \2|' |
		sort -u
}

# one FOLDER NAME LOG fuzzes one target and shows its output only if it fails.
one() {
	local log=$3
	go test -vet=off -run '^$' -fuzz "^$2\$" -fuzztime "$duration" -fuzzminimizetime 10x "$1" >"$log" 2>&1 ||
		time_up "$log"
}

# time_up says whether a failed run only reached its time: the engine at times reports the deadline
# that it set itself as a failure (golang/go#75804). It has executed inputs, and none of them failed:
# a failing one, a panic and a dead worker are all reported as a "Failing input".
time_up() {
	grep -qE '^ +context deadline exceeded$' "$1" && grep -qE 'execs: [1-9]' "$1" &&
		! grep -qE 'Failing input|panic:|hung or terminated' "$1"
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0 failed=0
while read -r folder name; do
	if one "$folder" "$name" "$log"; then
		printf 'ok   %s %s  %s\n' "$folder" "$name" "$(grep -oE 'execs: [0-9]+' "$log" | tail -n 1)"
		passed=$((passed + 1))
	else
		cat "$log"
		printf 'FAIL %s %s\n' "$folder" "$name"
		failed=$((failed + 1))
	fi
done < <(targets | grep -E -- "$pattern")

echo "fuzz targets: $passed passed, $failed failed, $duration each"
[ $((passed + failed)) -gt 0 ] || {
	echo "fuzz.sh: no target was found" >&2
	exit 1
}
[ "$failed" = 0 ]
