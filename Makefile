# Thin: each target is one command that can be typed as well. CONTRIBUTING.md says what is when.

GOLANGCI = github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

# How long each fuzz target runs; make fuzz FUZZTIME=10m
FUZZTIME ?= 30s

.PHONY: build test race lint fuzz soak bench bench-go interop tidy golangci

# Leaves bin/weft. It is static: with cgo, the packages of Go that look up hosts and users take it from C's library.
build:
	CGO_ENABLED=0 go build ./...
	CGO_ENABLED=0 go build -o bin/ ./cmd/weft

# All that CI checks, with reduced counts: half an hour on two cores.
test:
	scripts/test.sh

# The unit tests in full under the race detector.
race:
	scripts/test.sh race-full

lint: tidy golangci

tidy:
	go mod tidy -diff

golangci:
	go run $(GOLANGCI) run --allow-parallel-runners

fuzz:
	scripts/fuzz.sh $(FUZZTIME)

# The tests with full counts instead of the few of make test, with a summary for each promise;
# hours. make soak LINES="deaths cycles"
soak:
	scripts/soak.sh $(LINES)

# Steps over sockets and within a node against the real ADIOS2, operations over shared memory against
# libfabric, what a step costs with what is in it, what the cache of registrations costs; 40 minutes.
# make bench TABLES=shm BENCHFLAGS='-only "8 B"'
# docs/performance.md is made by make bench TABLES=growth BENCHFLAGS='-docs docs'
TABLES ?= sockets shm steps growth registrations
bench:
	for table in $(TABLES); do go run ./bench -table $$table $(BENCHFLAGS) || exit; done

# The benchmarks of single packages.
bench-go:
	go test -run '^$$' -bench . -benchmem ./...

# Against the real ADIOS2, in a root that is made at the first time (needs to be root).
interop:
	scripts/test.sh interop
