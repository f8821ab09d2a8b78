package kuota_test

import (
	"flag"
	"fmt"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the trees of docs/architecture.md")

// trees are the folders whose packages docs/architecture.md lists.
var trees = []string{"governance", "handlers", "views"}

// TestTrees compares the trees of docs/architecture.md with the packages and the first
// sentences of their documentation; make generate writes them.
func TestTrees(t *testing.T) {
	const file = "docs/architecture.md"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	packages, wanted := list(t), string(text)
	for _, root := range trees {
		var tree strings.Builder
		line := func(folder, sentence string) {
			fmt.Fprintln(&tree, strings.TrimRight(fmt.Sprintf("%-24s %s", strings.Repeat("  ", strings.Count(folder, "/"))+path.Base(folder), sentence), " "))
		}
		listed := map[string]bool{root: true}
		for _, p := range packages {
			folder := strings.TrimPrefix(p.ImportPath, module)
			if !within(folder, root) {
				continue
			}
			name := path.Base(folder)
			if strings.HasPrefix(p.Doc, "templ: ") { // the head of a generated file, which go list reads first
				p.Doc = synopsis(t, path.Join(folder, "doc.go"))
			}
			sentence, documented := strings.CutPrefix(p.Doc, "Package "+name+" ")
			if !documented {
				t.Errorf("%s: got %q, want a doc.go that begins with: Package %s …", folder, p.Doc, name)
			}
			if parent := path.Dir(folder); folder != root && !listed[parent] { // it has no package
				line(parent, "")
				listed[parent] = true
			}
			line(folder, strings.TrimSuffix(sentence, "."))
			listed[folder] = true
		}
		block := regexp.MustCompile("(?s)(<!-- " + root + ": make generate -->\n```\n).*?(```\n)")
		if !block.MatchString(wanted) {
			t.Errorf("%s has no tree of %s", file, root)
		}
		wanted = block.ReplaceAllStringFunc(wanted, func(old string) string {
			parts := block.FindStringSubmatch(old)
			return parts[1] + tree.String() + parts[2]
		})
	}
	if wanted == string(text) {
		return
	}
	if !*update {
		t.Fatalf("the trees in %s are old: make generate writes them", file)
	}
	if err := os.WriteFile(file, []byte(wanted), 0o644); err != nil {
		t.Fatal(err)
	}
}

// synopsis returns the first sentence of the package comment in a file.
func synopsis(t *testing.T, file string) string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly|parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return new(doc.Package).Synopsis(parsed.Doc.Text())
}
