package handlerstest

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
)

// Text returns the text of a part of a page, with single spaces between words.
func Text(part *goquery.Selection) string {
	var texts []string
	part.Find("*").AddSelection(part).Contents().Each(func(_ int, s *goquery.Selection) {
		if goquery.NodeName(s) == "#text" {
			texts = append(texts, strings.Fields(s.Text())...)
		}
	})
	return strings.Join(texts, " ")
}

// ValuesIn returns the values that a browser posts for a form.
func ValuesIn(page *goquery.Document, selector string) url.Values {
	values := url.Values{}
	page.Find(selector).Find("input, select, textarea").Each(func(_ int, s *goquery.Selection) {
		kind, name := s.AttrOr("type", "text"), s.AttrOr("name", "")
		if _, checked := s.Attr("checked"); (kind == "radio" || kind == "checkbox") && !checked {
			return
		}
		value := s.AttrOr("value", "")
		if goquery.NodeName(s) == "select" {
			value = s.Find("option[selected]").AttrOr("value", s.Find("option").First().AttrOr("value", ""))
		}
		if goquery.NodeName(s) == "textarea" {
			value = strings.ReplaceAll(s.Text(), "\n", "\r\n")
		}
		values.Add(name, value)
	})
	return values
}

const ImportURL = "/policies/import"

// Download is what an address answers with.
func Download(t *testing.T, address string) string {
	t.Helper()
	response, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text := ReadAll(t, response)
	if response.StatusCode != http.StatusOK || !strings.HasPrefix(response.Header.Get("Content-Type"), "text/csv") {
		t.Fatalf("%s answers %s: %s", address, response.Status, text)
	}
	return text
}

func WithValues(values url.Values, pairs ...string) url.Values {
	changed := url.Values{}
	for name, v := range values {
		changed[name] = slices.Clone(v)
	}
	for i := 0; i < len(pairs); i += 2 {
		changed.Set(pairs[i], pairs[i+1])
	}
	return changed
}
