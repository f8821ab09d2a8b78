package strange_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/PuerkitoBio/goquery"
	"golang.org/x/net/html"
)

// pagesOfSeed bounds how many addresses are read for each seed.
const pagesOfSeed = 150

// reader reads the console as the admin's browser does.
type reader struct {
	client  *http.Client
	console string

	mu   sync.Mutex
	took []time.Duration // of all answers
}

type answer struct {
	status int
	kind   string // of its content
	body   []byte
}

func (r *reader) get(ctx context.Context, path string) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.console+path, nil)
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("Accept", "text/html, application/json, text/csv")
	began := time.Now()
	response, err := r.client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.took = append(r.took, time.Since(began))
	return answer{response.StatusCode, response.Header.Get("Content-Type"), body}, err
}

// json reads a file into value.
func (r *reader) json(ctx context.Context, path string, value any) error {
	a, err := r.get(ctx, path)
	if err != nil {
		return err
	}
	if a.status != http.StatusOK {
		return fmt.Errorf("%s: %d: %s", path, a.status, a.body)
	}
	return json.Unmarshal(a.body, value)
}

// starts are the addresses from which all others are found.
var starts = []string{
	"/", "/tasks", "/queue", "/teams", "/usage", "/activity", "/alerts", "/policies", "/settings",
	"/tasks.json", "/queue.json", "/teams.json", "/usage.json", "/activity.json", "/alerts.json", "/tasks.csv", "/usage.csv",
}

// crawl reads what the console links to: addresses without a query that differ in more
// than their names are read once, those with the prefix each. It returns what is wrong.
func (r *reader) crawl(ctx context.Context, prefix string, gone func(path string) bool) (read int, wrong []string) {
	queue, seen, shapes, linkedBy := slices.Clone(starts), map[string]bool{}, map[string]int{}, map[string]string{}
	for len(queue) > 0 && read < pagesOfSeed {
		path := queue[0]
		queue = queue[1:]
		shape := shapeOf(path)
		if seen[path] || shapes[shape] >= 3 && !strings.Contains(path, prefix) || shapes[shape] >= 12 {
			continue
		}
		seen[path] = true
		shapes[shape]++
		read++
		a, err := r.get(ctx, path)
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("%s: %v", path, err))
			continue
		}
		if a.status != http.StatusOK {
			if a.status != http.StatusNotFound || !gone(path) {
				wrong = append(wrong, fmt.Sprintf("%s, a link of %s: status %d", path, linkedBy[path], a.status))
			}
			continue
		}
		switch {
		case strings.HasPrefix(a.kind, "text/html"):
			links, texts := readPage(a.body)
			for _, link := range links {
				if linkedBy[link] == "" {
					linkedBy[link] = path
				}
			}
			queue = append(queue, links...)
			for _, text := range texts {
				wrong = append(wrong, fmt.Sprintf("%s: %s", path, text))
			}
		case strings.HasPrefix(a.kind, "application/json"):
			var value any
			if err := json.Unmarshal(a.body, &value); err != nil {
				wrong = append(wrong, fmt.Sprintf("%s: %v", path, err))
			}
			for _, text := range negativeIn("", value) {
				wrong = append(wrong, fmt.Sprintf("%s: %s", path, text))
			}
		}
	}
	return read, wrong
}

var numbers = regexp.MustCompile(`\d+`)

// shapeOf returns what addresses of one page have in common.
func shapeOf(path string) string {
	u, err := url.Parse(path)
	if err != nil {
		return path
	}
	parts := strings.Split(u.Path, "/")
	if len(parts) > 3 { // names
		parts = append(parts[:2], parts[len(parts)-1])
	}
	var keys []string
	for key := range u.Query() {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return numbers.ReplaceAllString(strings.Join(parts, "/"), "0") + "?" + strings.Join(keys, "&")
}

// amountBelowZero matches an amount: a minus that is not a part of a name, a range or a
// time.
var amountBelowZero = regexp.MustCompile(`(^|[\s(:])[-−]\s?\d`)

// signed matches the texts in which a number below zero is right.
var signed = regexp.MustCompile(`(?i)priority|weight|change`)

// readPage returns the links of a page, its texts with an amount below zero, and that
// history cannot be read.
func readPage(body []byte) (links, wrong []string) {
	page, err := goquery.NewDocumentFromReader(strings.NewReader(string(body)))
	if err != nil {
		return nil, []string{err.Error()}
	}
	page.Find("a[href], [data-stream], [data-src]").Each(func(_ int, a *goquery.Selection) {
		href := a.AttrOr("href", "")
		if u, err := url.Parse(href); err == nil && u.Host == "" && strings.HasPrefix(u.Path, "/") && !strings.HasPrefix(u.Path, "/auth") {
			u.Fragment = ""
			links = append(links, u.String())
		}
	})
	page.Find("script, style, code, pre, textarea, [data-difference]").Remove()
	if text := strings.Join(strings.Fields(page.Find("main").Text()), " "); strings.Contains(text, "History cannot be read") {
		wrong = append(wrong, text)
	}
	page.Find("main *").Each(func(_ int, s *goquery.Selection) {
		for _, n := range s.Nodes {
			for c := n.FirstChild; c != nil; c = c.NextSibling {
				if c.Type == html.TextNode && amountBelowZero.MatchString(c.Data) && !signed.MatchString(s.Text()) && !signed.MatchString(s.Parent().Text()) {
					wrong = append(wrong, fmt.Sprintf("amount below zero: %q in %q", strings.TrimSpace(c.Data), strings.Join(strings.Fields(s.Parent().Text()), " ")))
				}
			}
		}
	})
	return links, wrong
}

// negativeIn returns the numbers below zero in a JSON value, but for priorities.
func negativeIn(at string, value any) (found []string) {
	switch v := value.(type) {
	case float64:
		if v < 0 && !strings.HasSuffix(at, ".priority") {
			found = append(found, fmt.Sprintf("%s is %v", at, v))
		}
	case map[string]any:
		for key, of := range v {
			found = append(found, negativeIn(at+"."+key, of)...)
		}
	case []any:
		for _, of := range v {
			found = append(found, negativeIn(at, of)...)
		}
	}
	return found
}
