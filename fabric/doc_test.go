package fabric

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

func parsed(t *testing.T, name string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// typeDocs gives the comment of each type of a file.
func typeDocs(f *ast.File) map[string]string {
	docs := map[string]string{}
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.TYPE {
			continue
		}
		for _, s := range g.Specs {
			if s := s.(*ast.TypeSpec); s.Doc != nil {
				docs[s.Name.Name] = s.Doc.Text()
			} else {
				docs[s.Name.Name] = g.Doc.Text()
			}
		}
	}
	return docs
}

// What stands for a word of package provider says by itself what its fields are: a reader need not look there.
func TestAliasesNameTheirFields(t *testing.T) {
	docs := typeDocs(parsed(t, "vocabulary.go"))
	types := map[string]reflect.Type{}
	for _, v := range []any{
		Completion{}, Segment{}, RemoteSegment{}, Op{}, Atomic{}, Info{}, Feature{}, Limits{}, MemoryMode{}, Hints{}, DomainConfig{}, CQConfig{},
		Tracer{}, Stats{}, PeerStats{}, OpError{}, TruncatedError{}, Caps(0), Flags(0), Access(0), Progress(0), Kind(0), CompletionFlags(0),
		Peer(0), Key(0), Address(""), AtomicCode(0), DataType(0),
	} {
		types[reflect.TypeOf(v).Name()] = reflect.TypeOf(v)
	}
	for name, doc := range docs {
		typ := types[name]
		if typ == nil {
			t.Errorf("%s is not looked at here", name)
			continue
		}
		if typ.Kind() != reflect.Struct {
			continue
		}
		told := map[string]bool{}
		for _, line := range regexp.MustCompile(`(?m)^\t(\w+(?:, \w+)*)  +\S`).FindAllStringSubmatch(doc, -1) {
			for _, field := range strings.Split(line[1], ", ") {
				told[field] = true
			}
		}
		for i := range typ.NumField() {
			if field := typ.Field(i).Name; !told[field] {
				t.Errorf("the doc of %s says nothing of %s", name, field)
			}
			delete(told, typ.Field(i).Name)
		}
		for field := range told {
			t.Errorf("the doc of %s speaks of %s, which it does not have", name, field)
		}
	}
	if len(docs) != len(types) {
		t.Errorf("%d types have a doc, of %d", len(docs), len(types))
	}
}

// Each constant and error says what it means; only the element types say it by their names.
func TestAliasesSayWhatTheyMean(t *testing.T) {
	for _, d := range parsed(t, "vocabulary.go").Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok == token.TYPE || g.Tok == token.IMPORT || strings.Contains(g.Doc.Text(), "element types") {
			continue
		}
		for _, s := range g.Specs {
			if s := s.(*ast.ValueSpec); s.Comment == nil && s.Doc == nil {
				t.Errorf("%s has no comment", s.Names[0].Name)
			}
		}
	}
}

// The table of flags at Endpoint is what a post is checked by.
func TestFlagsAtEndpoint(t *testing.T) {
	names := map[string]Flags{
		"RemoteData": RemoteData, "Inject": Inject, "DeliveryComplete": DeliveryComplete, "Directed": Directed, "Multi": Multi, "Peek": Peek,
		"Claim": Claim, "Discard": Discard, "Fence": Fence,
	}
	kinds := map[string]Kind{
		"Send": SendDone, "SendTagged": TSendDone, "Recv": RecvDone, "RecvTagged": TRecvDone, "Read": ReadDone, "Write": WriteDone, "Atomic": AtomicDone,
	}
	doc := typeDocs(parsed(t, "endpoint.go"))["Endpoint"]
	rows := regexp.MustCompile(`(?m)^\t(\w+(?:, \w+)*)  +(\S.*)$`).FindAllStringSubmatch(doc, -1)
	for _, row := range rows {
		flags := Quiet | More
		for _, name := range strings.Split(regexp.MustCompile(` \([^)]*\)`).ReplaceAllString(row[2], ""), ", ") {
			if names[name] == 0 {
				t.Errorf("%q is no flag", name)
			}
			flags |= names[name]
		}
		for _, call := range strings.Split(row[1], ", ") {
			if want := kinds[call].Flags(); flags != want {
				t.Errorf("%s: the table has %v, the check %v", call, flags, want)
			}
			delete(kinds, call)
		}
	}
	if len(kinds) != 0 {
		t.Errorf("not in the table: %v", kinds)
	}
}
