package archtest

import (
	"errors"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// check applies all rules to a tree.
func check(tree []*source) []finding {
	var found []finding
	sleeps := make(map[string]bool)
	for _, s := range tree {
		found = append(found, checkImports(table, s)...)
		found = append(found, checkSleep(maySleep, sleeps, s)...)
		for _, rule := range []func(*source) []finding{
			checkBlank, checkUnsafe, checkSyscalls, checkLinkname, checkC, checkForeign, checkInit, checkEnv, checkWords,
		} {
			found = append(found, rule(s)...)
		}
	}
	return append(found, unused(maySleep, sleeps)...)
}

// The module itself keeps all rules.
func TestModule(t *testing.T) {
	root := moduleRoot(t)
	tree, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(tree) < 20 {
		t.Fatalf("only %d files found below %s: the rules see nothing", len(tree), root)
	}
	for _, f := range check(tree) {
		t.Error(f)
	}
}

// What judges may use they use.
func TestJudges(t *testing.T) {
	root := moduleRoot(t)
	for name, allowed := range judges {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Error(err)
			continue
		}
		s, err := parse(name, text)
		if err != nil {
			t.Fatal(err)
		}
		used := make(map[string]bool)
		s.uses("syscall", func(name string, _ token.Pos, _ []ast.Node) { used[name] = true })
		for _, a := range allowed {
			if !used[a] {
				t.Errorf("%s does not use syscall.%s", name, a)
			}
		}
	}
}

// The table's rows that no package matches yet are fine; a row that a row above hides is not.
func TestTableRowsAreReachable(t *testing.T) {
	for i, r := range table {
		pkg := strings.NewReplacer("/...", "/x", "/*", "/x").Replace(r.pkg)
		got, ok := rowOf(table, pkg)
		if !ok || got.pkg != r.pkg {
			t.Errorf("row %d, %s: %s is matched by %q", i, r.pkg, pkg, got.pkg)
		}
	}
}

func moduleRoot(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for !exists(filepath.Join(dir, "go.mod")) {
		if dir == filepath.Dir(dir) {
			t.Fatal(errors.New("no go.mod above the test"))
		}
		dir = filepath.Dir(dir)
	}
	return dir
}

// breach is a source and what the rules must say to it; "" means nothing.
type breach struct {
	name string
	path string
	text string
	want string // a regular expression
}

func TestRules(t *testing.T) {
	const m = module
	for _, b := range []breach{
		// imports
		{"down", "sst/x.go", `package sst; import "` + m + `/step"`, ""},
		{"up", "step/x.go", `package step; import "` + m + `/sst"`, `^step/x.go:1: step may not import sst`},
		{"provider to provider", "prov/tcp/x.go", `package tcp; import "` + m + `/prov/shm"`, "prov/tcp may not import prov/shm"},
		{"provider to facade", "prov/tcp/x.go", `package tcp; import "` + m + `/fabric"`, "may not import fabric"},
		{"provider's test to the suite", "prov/tcp/x_test.go", `package tcp_test; import "` + m + `/fabric/fabrictest"`, ""},
		{"link to provider", "prov/link/x.go", `package link; import "` + m + `/prov/shm"`, ""},
		{"facade to provider", "fabric/x.go", `package fabric; import _ "` + m + `/prov/shm"`, "fabric may not import prov/shm"},
		{"wire to data", "internal/wire/cm/x.go", `package cm; import "` + m + `/step"`, "may not import step"},
		{"wire to wire", "internal/wire/bp5/x.go", `package bp5; import "` + m + `/internal/wire/ffs"`, ""},
		{"wire to others", "internal/wire/bp5/x.go", `package bp5; import "golang.org/x/sync/errgroup"`, "may not link golang.org/x/sync/errgroup"},
		{"plane to wire", "sst/internal/cp/x.go", `package cp; import "` + m + `/internal/wire/cm"`, ""},
		{"step to casts", "step/x.go", `package step; import "` + m + `/internal/shmem"`, ""},
		{"bp to casts", "bp/x.go", `package bp; import "` + m + `/internal/shmem"`, "may not import internal/shmem"},
		{"testutil in product code", "cmd/weft/x.go", `package main; import "` + m + `/internal/testutil"`, "may not import internal/testutil"},
		{"testutil in a test", "cmd/weft/x_test.go", `package main; import "` + m + `/internal/testutil"`, ""},
		{"invariants", "internal/shmem/x.go", `package shmem; import "` + m + `/internal/invariants"`, ""},
		{"own package in an external test", "step/x_test.go", `package step_test; import "` + m + `/step"`, ""},
		{"codec in the core", "step/x.go", `package step; import "github.com/klauspost/compress/zstd"`, "may not link github.com/klauspost/compress/zstd"},
		{"codec in its operator", "operator/zstd/x.go", `package zstd; import "github.com/klauspost/compress/zstd"`, ""},
		{"codec in the registry", "operator/x.go", `package operator; import "github.com/klauspost/compress/zstd"`, "may not link"},
		{"module of a similar name", "operator/zstd/x.go", `package zstd; import "github.com/klauspost/compressor"`, "may not link"},
		{"cobra in the core", "sst/x.go", `package sst; import "github.com/spf13/cobra"`, "may not link"},
		{"test library in product code", "sst/x.go", `package sst; import "github.com/google/go-cmp/cmp"`, "may not link"},
		{"test library in a test", "sst/x_test.go", `package sst; import "github.com/google/go-cmp/cmp"`, ""},
		{"internals in an example", "examples/hello/x.go", `package main; import "` + m + `/internal/sys"`, "may not import internal/sys"},
		{"a package without a row", "newthing/x.go", `package newthing`, "newthing/x.go: its package has no row"},
		{"root to anything", "x.go", `package weft; import "` + m + `/sst"`, `\. may not import sst`},
		{"the root itself", "sst/x.go", `package sst; import "` + m + `"`, `sst may not import \.`},
		// prov/all
		{"all: blank", "prov/all/x.go", `package all; import _ "` + m + `/prov/shm"`, ""},
		{"all: named", "prov/all/x.go", `package all; import "` + m + `/prov/shm"`, "blank imports only"},
		{"all: code", "prov/all/x.go", `package all; var X int`, "blank imports only"},
		// unsafe
		{"unsafe in its file", "internal/shmem/word_unsafe.go", `package shmem; import "unsafe"`, ""},
		{"unsafe in another file", "internal/shmem/word.go", `package shmem; import "unsafe"`, "unsafe stands only in"},
		{"unsafe in another package", "step/cast_unsafe.go", `package step; import "unsafe"`, "unsafe stands only in"},
		{"unsafe below the package", "internal/sys/x/y_unsafe.go", `package x; import "unsafe"`, "unsafe stands only in"},
		{"unsafe in a test", "internal/shmem/word_unsafe_test.go", `package shmem; import "unsafe"`, "unsafe stands only in"},
		// syscalls
		{"unix behind the fence", "internal/sys/x.go", `package sys; import "golang.org/x/sys/unix"`, ""},
		{"unix elsewhere", "prov/shm/x.go", `package shm; import "golang.org/x/sys/unix"`, "is for internal/sys alone"},
		{"unix in a test", "prov/shm/x_test.go", `package shm; import "golang.org/x/sys/unix"`, "is for internal/sys alone"},
		{"raw syscall", "prov/shm/x.go", "package shm\nimport \"syscall\"\nfunc f() { syscall.RawSyscall(0, 0, 0, 0) }", `:3: syscall.RawSyscall: the kernel`},
		{"raw syscall renamed", "prov/shm/x.go", "package shm\nimport k \"syscall\"\nvar f = k.Mmap", `:3: syscall.Mmap`},
		{"any other call", "prov/shm/x.go", "package shm\nimport \"syscall\"\nvar f = syscall.Getrusage", `syscall.Getrusage: the kernel`},
		{"a call in a test", "prov/shm/x_test.go", "package shm\nimport \"syscall\"\nvar f = syscall.Kill", ""},
		{"raw syscall in a test", "prov/shm/x_test.go", "package shm\nimport \"syscall\"\nvar f = syscall.Mmap", `syscall.Mmap`},
		{"a judge", "fabric/fabrictest/usage.go", "package fabrictest\nimport \"syscall\"\nvar f = syscall.Getrusage", ""},
		{"another call of a judge", "fabric/fabrictest/usage.go", "package fabrictest\nimport \"syscall\"\nvar f = syscall.Dup", `syscall.Dup: the kernel`},
		{"beside a judge", "fabric/fabrictest/x.go", "package fabrictest\nimport \"syscall\"\nvar f = syscall.Getrusage", `syscall.Getrusage: the kernel`},
		{"raw syscall in bench", "bench/bare.go", "package main\nimport \"syscall\"\nvar f = syscall.Write", `syscall.Write: the kernel`},
		{"errno", "prov/shm/x.go", "package shm\nimport \"syscall\"\nvar e = syscall.ENOENT", ""},
		{"raw connection", "prov/tcp/x.go", "package tcp\nimport \"syscall\"\nvar c syscall.RawConn", ""},
		// linkname
		{"linkname", "internal/sys/x.go", "package sys\n\n//go:" + "linkname f runtime.f\nfunc f()", "no go:linkname"},
		{"linkname in prose", "internal/sys/x.go", "package sys\n\n// We do not use go:linkname.\n", ""},
		// C
		{"C behind its tag", "prov/ofi/x.go", "//go:build ofi && linux\n\npackage ofi\nimport \"C\"", ""},
		{"C without the tag", "prov/ofi/x.go", "package ofi\nimport \"C\"", "needs \"//go:build ofi\""},
		{"C with a weak tag", "prov/ofi/x.go", "//go:build ofi || linux\n\npackage ofi\nimport \"C\"", "needs \"//go:build ofi\""},
		{"C with the tag reversed", "prov/ofi/x.go", "//go:build !ofi\n\npackage ofi\nimport \"C\"", "needs \"//go:build ofi\""},
		{"C elsewhere", "prov/shm/x.go", "//go:build ofi\n\npackage shm\nimport \"C\"", "C stands only in prov/ofi and interop"},
		{"C in a test program", "interop/hosts/x.go", "//go:build peers\n\npackage main\nimport \"C\"", ""},
		{"C in a test program without the tag", "interop/hosts/x.go", "package main\nimport \"C\"", "needs \"//go:build peers\""},
		// foreign
		{"assembly", "internal/shmem/store_amd64.s", "TEXT", "assembly and C stand only in"},
		{"C source", "prov/ofi/shim.c", "int x;", ""},
		{"C++ peer", "interop/peer/w.cc", "int x;", ""},
		// init
		{"init in an operator", "operator/zstd/x.go", "package zstd\nfunc init() {}", ""},
		{"init elsewhere", "sst/x.go", "package sst\nfunc init() {}", "x.go:2: func init is for"},
		{"method called init", "sst/x.go", "package sst\ntype T int\nfunc (T) init() {}", ""},
		// environment
		{"Getenv", "sst/x.go", "package sst\nimport \"os\"\nfunc f() { os.Getenv(\"X\") }", "os.Getenv outside of a function FromEnv"},
		{"LookupEnv as a value", "sst/x.go", "package sst\nimport \"os\"\nvar f = os.LookupEnv", "os.LookupEnv outside"},
		{"Getenv of syscall", "sst/x.go", "package sst\nimport \"syscall\"\nvar f = syscall.Getenv", "syscall.Getenv outside"},
		{"FromEnv", "sst/x.go", "package sst\nimport \"os\"\nfunc FromEnv() { func() { os.Getenv(\"X\") }() }", ""},
		{"method FromEnv", "sst/x.go", "package sst\nimport \"os\"\nfunc (c *Config) FromEnvOf(n string) { os.LookupEnv(n) }", ""},
		{"Getenv in the command", "cmd/weft/internal/cli/x.go", "package cli\nimport \"os\"\nvar x = os.Getenv(\"X\")", ""},
		{"Getenv in a test", "sst/x_test.go", "package sst\nimport \"os\"\nvar x = os.Getenv(\"X\")", ""},
		{"Getenv of something else", "sst/x.go", "package sst\nimport \"os\"\nvar _ = os.Args\nvar x = env.Getenv(\"X\")", ""},
		// sleep
		{"sleep", "sst/x.go", "package sst\nimport \"time\"\nfunc f() { time.Sleep(1) }", "time.Sleep: wait for an event"},
		{"sleep in a test", "sst/x_test.go", "package sst\nimport \"time\"\nfunc f() { time.Sleep(1) }", "time.Sleep: wait for an event"},
		{"sleep in a bubble", "sst/x_test.go", "package sst\nimport (\n\"time\"\n\"testing/synctest\"\n)\nfunc f() { synctest.Test(t, func() { time.Sleep(1) }) }", ""},
		{"sleep beside a bubble", "sst/x_test.go", "package sst\nimport (\n\"time\"\n\"testing/synctest\"\n)\nfunc f() { synctest.Test(t, g); time.Sleep(1) }", "time.Sleep: wait"},
		{"other Test", "sst/x_test.go", "package sst\nimport \"time\"\nfunc f() { other.Test(t, func() { time.Sleep(1) }) }", "time.Sleep: wait"},
		// words
		{"unfinished", "sst/x.go", "package sst\n\n// TO" + "DO: more\n", `x.go:3: "TO.O": unfinished`},
		{"unfinished in a script", "scripts/x.sh", "# FIX" + "ME\n", "unfinished"},
		{"a word that holds it", "sst/x.go", "package sst\n\n// maxTO" + "DOs\n", ""},
		{"promise", "sst/x.go", "package sst\n\n// Good enough for" + " now.\n", "a comment says what is"},
		{"promise in a page", "docs/x.md", "for" + " now\n", ""},
		{"a machine", "docs/x.md", "see /wo" + "rk/x\n", "a path of one machine"},
		{"a merge", "docs/x.md", "<<<<" + "<<< HEAD\n", "a merge"},
	} {
		t.Run(b.name, func(t *testing.T) {
			s, err := parse(b.path, []byte(b.text))
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for _, f := range check([]*source{s}) {
				lines = append(lines, f.String())
			}
			got := strings.Join(lines, "\n")
			if b.want == "" && got != "" || !regexp.MustCompile(b.want).MatchString(got) {
				t.Errorf("the rules say %q, want a match of %q", got, b.want)
			}
		})
	}
}

func TestSleepExceptions(t *testing.T) {
	s, err := parse("sst/x.go", []byte("package sst\nimport \"time\"\nfunc poll() { time.Sleep(1) }"))
	if err != nil {
		t.Fatal(err)
	}
	used := make(map[string]bool)
	allowed := map[string]string{"sst/x.go poll": "file systems tell nothing"}
	if f := checkSleep(allowed, used, s); len(f) != 0 {
		t.Errorf("an exception does not hold: %v", f)
	}
	if f := unused(allowed, used); len(f) != 0 {
		t.Errorf("a used exception counts as unused: %v", f)
	}
	allowed["sst/y.go poll"] = ""
	if f := unused(allowed, used); len(f) != 2 {
		t.Errorf("an exception without sleep and reason: %v", f)
	}
	s.path = "sst/x_test.go"
	allowed["sst/x_test.go poll"] = "no test may"
	if f := checkSleep(allowed, used, s); len(f) != 1 {
		t.Errorf("a test has an exception: %v", f)
	}
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		pkg, pattern string
		want         bool
	}{
		{"a", "a", true}, {"a/b", "a", false}, {"ab", "a", false},
		{"a/b", "a/*", true}, {"a", "a/*", false}, {"a/b/c", "a/*", false},
		{"a", "a/...", true}, {"a/b/c", "a/...", true}, {"ab", "a/...", false},
		{".", ".", true},
	} {
		if got := matches(c.pkg, []string{"never", c.pattern}); got != c.want {
			t.Errorf("%s with %s: %v", c.pkg, c.pattern, got)
		}
	}
}

// load must see what the rules are about, and no more.
func TestLoad(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":               "module x",
		"a/a.go":               "package a",
		".ci/run":              "#!/bin/sh",
		".golangci.yml":        "x: y",
		"a/testdata/bad.go":    "not Go",
		"vendor/v/v.go":        "package v",
		".git/config":          "x",
		"_old/o.go":            "package o",
		"nested/go.mod":        "module y",
		"nested/n.go":          "package n",
		"a/capture.bin":        "\x00\x01",
		"a/latin1.txt":         "\xe9",
		"docs/page.md":         "text",
		"nested2/deep/page.md": "text",
	} {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range tree {
		got = append(got, s.path)
	}
	slices.Sort(got)
	want := []string{".ci/run", ".golangci.yml", "a/a.go", "docs/page.md", "go.mod", "nested2/deep/page.md"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if err := os.WriteFile(filepath.Join(root, "a", "b.go"), []byte("package"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := load(root); err == nil {
		t.Error("a file that does not parse went by")
	}
}
