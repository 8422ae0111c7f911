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

# one FOLDER NAME fuzzes one target and shows its output only if it fails.
one() {
	local log=$3
	go test -vet=off -run '^$' -fuzz "^$2\$" -fuzztime "$duration" -fuzzminimizetime 10x "$1" >"$log" 2>&1
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0 failed=0
while read -r folder name; do
	if one "$folder" "$name" "$log" ||
		# The engine sometimes reports its own deadline as a failure when the time is up
		# (golang/go#75804): no failing input, so one more try tells.
		{ grep -q 'context deadline exceeded' "$log" && ! grep -q 'Failing input' "$log" && one "$folder" "$name" "$log"; }; then
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
