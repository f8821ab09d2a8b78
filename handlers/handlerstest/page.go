package handlerstest

import (
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
)

func Pointer[T any](n T) *T { return &n }

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
			value = s.Text()
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
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || !strings.HasPrefix(response.Header.Get("Content-Type"), "text/csv") {
		t.Fatalf("%s answers %s: %s, %v", address, response.Status, text, err)
	}
	return string(text)
}

func Ptr[N any](n N) *N { return &n }

// FormValues are the values that a browser would send of the form on a page.
func FormValues(page *goquery.Document, id string) url.Values {
	values := url.Values{}
	page.Find(id + " input, " + id + " select, " + id + " textarea").Each(func(_ int, s *goquery.Selection) {
		name, value := s.AttrOr("name", ""), s.AttrOr("value", "")
		if kind := s.AttrOr("type", ""); kind == "radio" || kind == "checkbox" {
			if _, ticked := s.Attr("checked"); !ticked {
				return
			}
		}
		switch goquery.NodeName(s) {
		case "select":
			value = s.Find("option[selected]").AttrOr("value", "")
		case "textarea":
			value = strings.ReplaceAll(s.Text(), "\n", "\r\n") // as browsers send it
		}
		values.Add(name, value)
	})
	return values
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
