package archtest

import (
	"go/ast"
	"go/build/constraint"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
)

// unsafeDirs are the packages that may use unsafe, in files called *_unsafe.go.
var unsafeDirs = []string{"internal/sys", "internal/shmem", "prov/ofi"}

// checkUnsafe keeps unsafe in its files.
func checkUnsafe(s *source) []finding {
	var found []finding
	for _, imp := range s.imports {
		if imp.path == "unsafe" && !(slices.Contains(unsafeDirs, s.dir()) && strings.HasSuffix(s.path, "_unsafe.go")) {
			found = append(found, s.at(imp.pos, "unsafe stands only in *_unsafe.go of %s", strings.Join(unsafeDirs, ", ")))
		}
	}
	return found
}

// vocabulary is what anybody may use of package syscall: the names of errors and signals, and types
// that the standard library's interfaces take. The rest is the kernel's.
var vocabulary = regexp.MustCompile(`^(E[A-Z0-9]+|SIG[A-Z0-9]+|Errno|Signal|SysProcAttr|Rusage|RawConn|Conn|Getenv)$`)

// rawCalls are what tests may not call either.
var rawCalls = []string{
	"Syscall", "Syscall6", "RawSyscall", "RawSyscall6", "AllThreadsSyscall", "AllThreadsSyscall6",
	"Mmap", "Munmap", "Mprotect", "Madvise", "Mlock", "Munlock", "ForkExec",
	"SendmsgN", "Sendmsg", "Recvmsg", "Socket", "Socketpair", "Bind", "Connect", "Listen", "Accept4",
	"EpollCreate1", "EpollCtl", "EpollWait", "Open", "Read", "Write", "Pipe2", "Dup3",
}

// judges are the files that look at processes by themselves, end them, and stand beside what they judge, with what each uses.
var judges = map[string][]string{
	"internal/testutil/process.go":   {"Kill"},
	"internal/testutil/main_test.go": {"Open", "Mmap"}, // leaks, on purpose
	"fabric/fabrictest/side.go":      {"Kill"},
	"fabric/fabrictest/usage.go":     {"Getrusage", "RUSAGE_SELF"},
	"fabric/fabrictest/scarce.go":    {"Rlimit", "RLIMIT_NOFILE", "Getrlimit", "Setrlimit"},
	"fabric/fabrictest/select.go":    {"FdSet", "NsecToTimeval", "Select"},
	"fabric/fabrictest/collect.go":   {"Dup", "CloseOnExec", "SetNonblock", "Close"},
	"bench/process.go":               {"Kill"},
}

// checkSyscalls keeps the kernel behind internal/sys. Tests may ask for limits, signals and the like.
func checkSyscalls(s *source) []finding {
	if !s.isGo() || s.in("internal/sys") {
		return nil
	}
	var found []finding
	for _, imp := range s.imports {
		if imp.path == "golang.org/x/sys/unix" {
			found = append(found, s.at(imp.pos, "golang.org/x/sys/unix is for internal/sys alone"))
		}
	}
	s.uses("syscall", func(name string, pos token.Pos, _ []ast.Node) {
		if !vocabulary.MatchString(name) && !slices.Contains(judges[s.path], name) && (!s.isTest() || slices.Contains(rawCalls, name)) {
			found = append(found, s.at(pos, "syscall.%s: the kernel is called in internal/sys alone", name))
		}
	})
	return found
}

// checkLinkname forbids the linker's back door.
func checkLinkname(s *source) []finding {
	var found []finding
	s.comments(func(c *ast.Comment) {
		if strings.HasPrefix(c.Text, "//go:linkname") {
			found = append(found, s.at(c.Pos(), "no go:linkname"))
		}
	})
	return found
}

// comments calls visit for each comment of a Go file.
func (s *source) comments(visit func(*ast.Comment)) {
	if !s.isGo() {
		return
	}
	for _, g := range s.ast.Comments {
		for _, c := range g.List {
			visit(c)
		}
	}
}

// tagOfC is the build tag behind which a folder's C stands: the real libfabric's, and that of test programs which other libraries of C are
// in. Without it nothing needs a C compiler, or their headers.
func tagOfC(s *source) string {
	switch {
	case s.dir() == "prov/ofi":
		return "ofi"
	case s.in("interop"):
		return "peers"
	}
	return ""
}

// checkC keeps C where its build tag turns it on.
func checkC(s *source) []finding {
	var found []finding
	tag := tagOfC(s)
	for _, imp := range s.imports {
		if imp.path != "C" {
			continue
		}
		if tag == "" {
			found = append(found, s.at(imp.pos, "C stands only in prov/ofi and interop"))
		} else if !s.needsTag(tag) {
			found = append(found, s.at(imp.pos, `C needs "//go:build %s" above it`, tag))
		}
	}
	return found
}

// needsTag reports whether the file is left out of a build that lacks the tag and has all others.
func (s *source) needsTag(tag string) bool {
	needs := false
	s.comments(func(c *ast.Comment) {
		if c.Pos() > s.ast.Package || !constraint.IsGoBuild(c.Text) {
			return
		}
		if expr, err := constraint.Parse(c.Text); err == nil {
			needs = !expr.Eval(func(t string) bool { return t != tag })
		}
	})
	return needs
}

// foreignFiles are the sources that are not Go elsewhere.
var foreignFiles = []string{"internal/sys/userfault_amd64.s", "internal/sys/userfault_arm64.s", "memmon/weft_memory_events.h"}

// checkForeign keeps sources of other compilers out: pure Go builds everywhere, and shared words
// are written by sync/atomic only. Programs of interop are peers, not parts. The thread that must not be Go is assembly
// (docs/decisions/0013), and C libraries of others include the header that says how to tell of memory events.
func checkForeign(s *source) []finding {
	switch path.Ext(s.path) {
	case ".s", ".S", ".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".syso":
		if s.dir() != "prov/ofi" && !s.in("interop") && !slices.Contains(foreignFiles, s.path) {
			return []finding{{s.path, 0, "assembly and C stand only in prov/ofi and interop"}}
		}
	}
	return nil
}

// checkInit allows func init where a package registers itself.
func checkInit(s *source) []finding {
	if !s.isGo() || s.isTest() || s.in("prov", "operator") {
		return nil
	}
	var found []finding
	for _, d := range s.ast.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
			found = append(found, s.at(f.Pos(), "func init is for providers and operators that register themselves"))
		}
	}
	return found
}

func isImport(d ast.Decl) bool {
	g, ok := d.(*ast.GenDecl)
	return ok && g.Tok == token.IMPORT
}
