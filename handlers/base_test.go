package handlers_test

import (
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"

	"github.com/PuerkitoBio/goquery"
)

// Every page that links lead to under a base path has all its addresses there, as do
// redirects, streams and forms.
func TestPagesUnderBase(t *testing.T) {
	const base = "/apps/kuota"
	d := handlerstest.WithAllocations(handlerstest.FullAllocation())
	d.PolicyBackend.Policy, d.CapacityBackend.Snapshot, d.Past = handlerstest.RankedPolicy(), handlerstest.Cluster(), handlerstest.NewHistory()
	d.Items = []queries.Item{{Task: &tasks.Task{UID: "1", Namespace: "hyperpod-ns-vision", Kind: "Job", Name: "train", State: tasks.Running}, Team: "vision"}}
	root := strings.TrimSuffix(handlerstest.ServeUnder(t, d, base), base)
	unseen, seen := []string{base + "/"}, map[string]bool{}
	for len(unseen) > 0 && len(seen) < 300 {
		path := unseen[0]
		unseen = unseen[1:]
		address, _, _ := strings.Cut(path, "?")
		if seen[address] {
			continue
		}
		seen[address] = true
		response, err := http.DefaultTransport.RoundTrip(must(http.NewRequest(http.MethodGet, root+path, nil)))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if to := response.Header.Get("Location"); to != "" {
			if !strings.HasPrefix(to, base+"/") {
				t.Errorf("%s redirects to %s", path, to)
			}
			unseen = append(unseen, to)
		}
		kind := response.Header.Get("Content-Type")
		if strings.HasPrefix(kind, "text/event-stream") || response.StatusCode >= http.StatusInternalServerError {
			continue
		}
		text := handlerstest.ReadAll(t, response)
		if !strings.HasPrefix(kind, "text/html") {
			if outside := regexp.MustCompile(`"(/(tasks|teams|policies|queue|alerts)[^"]*)"`).FindString(text); outside != "" {
				t.Errorf("%s contains %s", path, outside)
			}
			continue
		}
		page := htmlcheck.Parse(t, text)
		htmlcheck.UnderBase(t, page, base)
		page.Find("[href], [action], [data-stream], [src]").Each(func(_ int, s *goquery.Selection) {
			for _, name := range []string{"href", "action", "data-stream", "src"} {
				if to := s.AttrOr(name, ""); strings.HasPrefix(to, base+"/") {
					unseen = append(unseen, to)
				}
			}
		})
	}
	for _, want := range []string{"/", "/tasks", "/queue", "/teams", "/policies", "/instances", "/usage", "/activity", "/alerts", "/events", "/tasks.csv", "/tasks/hyperpod-ns-vision/job/train", "/policies/allocations/vision/edit", "/policies/cluster/edit", "/static/js/kuota.js"} {
		if !seen[base+want] {
			t.Errorf("no link leads to %s; got %q", want, slices.Sorted(maps.Keys(seen)))
		}
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// A saved form leads to a page under the base path.
func TestSaveUnderBase(t *testing.T) {
	d := handlerstest.WithAllocations(handlerstest.FullAllocation())
	response, page := handlerstest.Post(t, handlerstest.ServeUnder(t, d, "/apps/kuota")+handlerstest.NewURL, handlerstest.AllocationForm("team", "kept", "action", "review"))
	to, err := url.Parse(response.Request.URL.String())
	if err != nil || !strings.HasPrefix(to.Path, "/apps/kuota/policies/") {
		t.Errorf("got %s at %s: %v", response.Status, to, err)
	}
	htmlcheck.UnderBase(t, page, "/apps/kuota")
}
