package kuota_test

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// TestLinks checks that every relative link and anchor in the Markdown files of
// the repository exists. It does not check links to other sites.
func TestLinks(t *testing.T) {
	out, err := exec.Command("git", "ls-files", "-z", "-co", "--exclude-standard", "*.md").Output()
	if err != nil {
		t.Fatal(err)
	}
	files := strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
	if len(files) < 10 {
		t.Fatalf("found only %d Markdown files", len(files))
	}
	for _, file := range files {
		if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
			continue // deleted, but not in the index yet
		}
		for _, problem := range brokenLinks(file) {
			t.Errorf("%s: %s", file, problem)
		}
	}
}

func TestBrokenLinks(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(folder, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	write("other.md", "# Pools & quota\n\n## `kuota doctor`: what it _does_\n\n## Twice\n\n## Twice\n\n<a id=\"by-hand\"></a>\n\n```\n# no heading\n```\n")
	for name, tc := range map[string]struct {
		text, want string // want is a part of the only problem; empty for none
	}{
		"a file":                        {"[a](other.md)", ""},
		"a folder":                      {"[a](.)", ""},
		"another site":                  {"[a](https://example.com/none) <https://example.com/none> [b](mailto:a@example.com)", ""},
		"anchors":                       {"[a](other.md#pools--quota) [b](other.md#kuota-doctor-what-it-does) [c](other.md#twice-1) [d](other.md#by-hand)", ""},
		"an anchor of the file itself":  {"# Here\n\n[a](#here)", ""},
		"a link in code":                {"`[a](none.md)`\n\n```\n[a](none.md)\n```\n", ""},
		"a missing file":                {"[a](none.md)", "none.md does not exist"},
		"a missing image":               {"![a](none.png)", "none.png does not exist"},
		"a missing image in HTML":       {"<img src=\"none.png\">", "none.png does not exist"},
		"a missing file of a reference": {"[a][b]\n\n[b]: none.md", "none.md does not exist"},
		"a missing file in a table":     {"| a |\n|---|\n| [a](none.md) |\n", "none.md does not exist"},
		"a missing anchor":              {"[a](other.md#twice-2)", "other.md has no heading #twice-2"},
		"an anchor that is code":        {"[a](other.md#no-heading)", "other.md has no heading #no-heading"},
		"a missing anchor of the file":  {"[a](#none)", "has no heading #none"},
		"an absolute path":              {"[a](/docs/other.md)", "/docs/other.md is absolute"},
	} {
		t.Run(name, func(t *testing.T) {
			got := brokenLinks(write("page.md", tc.text))
			if tc.want == "" && len(got) > 0 || tc.want != "" && (len(got) != 1 || !strings.Contains(got[0], tc.want)) {
				t.Errorf("got problems %q, want %q", got, tc.want)
			}
		})
	}
}

// TestNamedTests checks that the tests exist that documents name.
func TestNamedTests(t *testing.T) {
	out, err := exec.Command("git", "grep", "-hoE", `^func (Test|Fuzz)[A-Za-z0-9]+\(`, "--", "*_test.go").Output()
	if err != nil {
		t.Fatal(err)
	}
	for document, least := range map[string]int{"docs/architecture.md": 25, "docs/asvs.md": 100, "docs/privileges.md": 2} {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		named := regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9]+)`").FindAllStringSubmatch(string(text), -1)
		if len(named) < least {
			t.Errorf("%s names only %d tests", document, len(named))
		}
		for _, name := range named {
			if !strings.Contains(string(out), "func "+name[1]+"(\n") {
				t.Errorf("%s names %s, which does not exist", document, name[1])
			}
		}
	}
}

// brokenLinks returns a sentence for each relative link of a Markdown file whose
// target does not exist.
func brokenLinks(file string) (problems []string) {
	links, _, err := readMarkdown(file)
	if err != nil {
		return []string{err.Error()}
	}
	for _, link := range links {
		target, err := url.Parse(link)
		if err != nil {
			problems = append(problems, fmt.Sprintf("%q: %v", link, err))
			continue
		}
		if target.Scheme != "" || target.Host != "" {
			continue
		}
		if strings.HasPrefix(target.Path, "/") {
			problems = append(problems, link+" is absolute: write it relative to the file")
			continue
		}
		path := file
		if target.Path != "" {
			path = filepath.Join(filepath.Dir(file), target.Path)
		}
		if _, err := os.Stat(path); err != nil {
			problems = append(problems, link+" does not exist")
			continue
		}
		if target.Fragment == "" || filepath.Ext(path) != ".md" {
			continue
		}
		if _, anchors, err := readMarkdown(path); err != nil || !slices.Contains(anchors, target.Fragment) {
			problems = append(problems, fmt.Sprintf("%s has no heading #%s", path, target.Fragment))
		}
	}
	return problems
}

// htmlReference and htmlAnchor match attributes of HTML in Markdown.
var (
	htmlReference = regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	htmlAnchor    = regexp.MustCompile(`(?:id|name)="([^"]*)"`)
)

// readMarkdown returns the targets of all links and images of a file, and its
// anchors, as GitHub names them.
func readMarkdown(file string) (links, anchors []string, err error) {
	source, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	used := map[string]int{}
	html := func(segments *text.Segments) {
		raw := string(segments.Value(source))
		for _, match := range htmlReference.FindAllStringSubmatch(raw, -1) {
			links = append(links, match[1])
		}
		for _, match := range htmlAnchor.FindAllStringSubmatch(raw, -1) {
			anchors = append(anchors, match[1])
		}
	}
	document := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(source))
	err = ast.Walk(document, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := node.(type) {
		case *ast.Link:
			links = append(links, string(n.Destination))
		case *ast.Image:
			links = append(links, string(n.Destination))
		case *ast.RawHTML:
			html(n.Segments)
		case *ast.HTMLBlock:
			html(n.Lines())
		case *ast.Heading:
			slug := slugOf(plainText(n, source))
			if used[slug]++; used[slug] > 1 {
				slug = fmt.Sprintf("%s-%d", slug, used[slug]-1)
			}
			anchors = append(anchors, slug)
		}
		return ast.WalkContinue, nil
	})
	return links, anchors, err
}

// plainText returns the text of a node without markup.
func plainText(node ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(node, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := n.(*ast.Text); ok && entering {
			b.Write(t.Segment.Value(source))
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// slugOf returns the anchor that GitHub gives a heading: lower case, spaces become
// hyphens, and punctuation is dropped.
func slugOf(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}
