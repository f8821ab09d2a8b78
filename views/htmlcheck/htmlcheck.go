// Package htmlcheck renders components for tests and checks the rules of all pages
// and fragments. Only tests import it. It must not know any page.
package htmlcheck

import (
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"github.com/a-h/templ"
)

// Render returns the rendered component as a document.
func Render(t *testing.T, component templ.Component) *goquery.Document {
	t.Helper()
	var html strings.Builder
	if err := component.Render(t.Context(), &html); err != nil {
		t.Fatalf("render: %v", err)
	}
	return Parse(t, html.String())
}

// Parse parses HTML as a browser does.
func Parse(t *testing.T, html string) *goquery.Document {
	t.Helper()
	doc, err := goquery.NewDocumentFromReader(strings.NewReader(html))
	if err != nil {
		t.Fatalf("parse: %v", err)
	}
	return doc
}

// Page checks a whole page: the rules of Fragment, heading, title and landmarks. A
// page without a user has no navigation and no cluster status.
func Page(t *testing.T, doc *goquery.Document) {
	t.Helper()
	Fragment(t, doc)
	known := doc.Find(".user").Length()
	for selector, want := range map[string]int{"h1": 1, "main": 1, "title": 1, "html[lang]": 1, "nav[aria-label]": known, "#cluster-status": known} {
		if got := doc.Find(selector).Length(); got != want {
			t.Errorf("page has %d %s, want %d", got, selector, want)
		}
	}
	if doc.Find("h1").Text() == "" || strings.HasPrefix(doc.Find("title").Text(), " ") {
		t.Error("page has no title")
	}
	doc.Find("script").Each(func(_ int, s *goquery.Selection) {
		if s.AttrOr("src", "") == "" || s.Text() != "" {
			t.Error("inline script")
		}
	})
	// A datalist may be outside the fragment that is sent while typing.
	doc.Find("input[list]").Each(func(_ int, s *goquery.Selection) {
		if id := s.AttrOr("list", ""); doc.Find("datalist#"+id).Length() != 1 {
			t.Errorf("input %q takes suggestions from %q, which does not exist", s.AttrOr("id", ""), id)
		}
	})
}

// Fragment checks a piece of HTML: nothing that the content security policy
// forbids, unique ids, references to existing ids, and accessible names of inputs
// and buttons.
func Fragment(t *testing.T, doc *goquery.Document) {
	t.Helper()
	ids := map[string]bool{}
	doc.Find("[id]").Each(func(_ int, s *goquery.Selection) {
		id := s.AttrOr("id", "")
		if id == "" || ids[id] {
			t.Errorf("id %q of <%s> is empty or not unique", id, goquery.NodeName(s))
		}
		ids[id] = true
	})

	doc.Find("*").Each(func(_ int, s *goquery.Selection) {
		for _, attribute := range s.Nodes[0].Attr {
			switch name := attribute.Key; {
			case name == "style", strings.HasPrefix(name, "on"):
				t.Errorf("<%s> has the attribute %s=%q, which the content security policy forbids", goquery.NodeName(s), name, attribute.Val)
			case name == "for", name == "data-dialog", name == "aria-labelledby", name == "aria-describedby", name == "aria-controls":
				references := strings.Fields(attribute.Val)
				if len(references) == 0 {
					t.Errorf("<%s> has an empty %s", goquery.NodeName(s), name)
				}
				for _, id := range references {
					if !ids[id] {
						t.Errorf("<%s %s=%q> refers to the id %q, which does not exist", goquery.NodeName(s), name, attribute.Val, id)
					}
				}
			}
		}
	})
	doc.Find(`a[href^="#"]`).Each(func(_ int, s *goquery.Selection) {
		if id := strings.TrimPrefix(s.AttrOr("href", ""), "#"); !ids[id] {
			t.Errorf("link %q leads to the id %q, which does not exist", strings.TrimSpace(s.Text()), id)
		}
	})

	doc.Find("input, select, textarea").Not("[type=hidden]").Each(func(_ int, s *goquery.Selection) {
		id := s.AttrOr("id", "")
		label := doc.Find("label").FilterFunction(func(_ int, l *goquery.Selection) bool { return l.AttrOr("for", "") == id })
		if strings.TrimSpace(label.Text()+s.AttrOr("aria-label", "")) == "" {
			t.Errorf("input %q has no label", id)
		}
		if s.AttrOr("name", "") == "" {
			t.Errorf("input %q has no name", id)
		}
		if s.AttrOr("aria-invalid", "") == "true" && !strings.Contains(s.AttrOr("aria-describedby", ""), id+"-error") {
			t.Errorf("input %q is invalid but not linked to its error", id)
		}
	})
	doc.Find("button, a[href]").Not("[aria-hidden]").Each(func(_ int, s *goquery.Selection) {
		if strings.TrimSpace(s.Text()+s.AttrOr("aria-label", "")) == "" {
			t.Errorf("<%s> has no text", goquery.NodeName(s))
		}
	})
}

// UnderBase checks that every address of the console on a page lies under a base path. Any
// attribute is an address if its value begins with a slash, but those with text of users.
func UnderBase(t *testing.T, doc *goquery.Document, base string) {
	t.Helper()
	doc.Find("*").Each(func(_ int, s *goquery.Selection) {
		for _, attribute := range s.Nodes[0].Attr {
			address := strings.TrimPrefix(attribute.Val, "0; url=") // of meta refresh
			switch attribute.Key {
			case "value", "placeholder", "title", "aria-label":
				continue
			}
			if strings.HasPrefix(address, "/") && !strings.HasPrefix(address, base+"/") {
				t.Errorf("<%s %s=%q> is not under %s", goquery.NodeName(s), attribute.Key, attribute.Val, base)
			}
		}
	})
}
