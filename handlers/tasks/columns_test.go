package tasks_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"

	"github.com/PuerkitoBio/goquery"
)

func oneTask() *handlerstest.Backend {
	return &handlerstest.Backend{Items: []queries.Item{{Task: &tasks.Task{UID: "1", Name: "train", Namespace: "ns", Kind: "RayJob", State: tasks.Running, Submitted: time.Now()}, Team: "vision"}}}
}

// heads returns the columns of the list on a page.
func heads(page *goquery.Document) (found []string) {
	page.Find("#tasks-table thead th").Each(func(_ int, th *goquery.Selection) { found = append(found, strings.Fields(th.Text())[0]) })
	return found
}

// The address contains the shown columns. Rows, links, the form, the stream and the
// CSV file use them.
func TestTaskColumns(t *testing.T) {
	address := handlerstest.Serve(t, oneTask())
	_, page := handlerstest.Get(t, address+"/tasks")
	htmlcheck.Page(t, page)
	all := heads(page)
	if len(all) != 11 || page.Find("#tasks-table tbody tr:first-child > *").Length() != 11 || page.Find(`.column-choices input[type="checkbox"][checked]`).Length() != 9 {
		t.Errorf("there are the columns %v", all)
	}
	response, page := handlerstest.Get(t, address+"/tasks?hide=kind&hide=pool&show=memory&hide=name&hide=unknown&show=team&sort=ran&order=desc")
	htmlcheck.Page(t, page)
	want := slices.Clone(all)
	want[slices.Index(want, "Pool")] = "Memory"
	if got := heads(page); response.StatusCode != http.StatusOK || !slices.Equal(got, want) {
		t.Errorf("with memory and without pool there are %v", got)
	}
	if cells := page.Find("#tasks-table tbody tr:first-child > *"); cells.Length() != len(want) || strings.Contains(cells.Text(), "RayJob") {
		t.Errorf("a row has %d cells: %s", cells.Length(), cells.Text())
	}
	for what, link := range map[string]string{
		"the stream": page.Find("body").AttrOr("data-stream", ""), "the CSV": page.Find(`a[href^="/tasks.csv"]`).AttrOr("href", ""),
		"a head": page.Find("#tasks-table thead a").First().AttrOr("href", ""),
	} {
		if !strings.Contains(link, "hide=pool") || !strings.Contains(link, "show=memory") || strings.Contains(link, "unknown") || strings.Contains(link, "=name&hide") || strings.Contains(link, "hide=kind") || strings.Contains(link, "show=team") {
			t.Errorf("%s leads to %s", what, link)
		}
	}
	csv, err := http.Get(address + "/tasks.csv?hide=kind&hide=memory&hide=class&hide=status")
	if err != nil {
		t.Fatal(err)
	}
	defer csv.Body.Close()
	text, err := io.ReadAll(csv.Body)
	if err != nil || !strings.HasPrefix(string(text), "namespace,name,team,status,reason,place,GPUs,Neuron devices,other resources,vCPU,pool,") || strings.Contains(string(text), "RayJob") {
		t.Errorf("the CSV is %s, %v", text, err)
	}
}

// The values of the form become an address as in links: as short as possible.
func TestTaskFormRedirectsToShortAddress(t *testing.T) {
	address := handlerstest.Serve(t, oneTask())
	_, page := handlerstest.Get(t, address+"/tasks")
	everything := "q=&team=&class=&status=&kind=&pool=&cols="
	page.Find(".column-choices input[type=checkbox][checked]").Each(func(_ int, box *goquery.Selection) { everything += "&cols=" + box.AttrOr("value", "") })
	for sent, want := range map[string]string{
		everything:           "/tasks",
		everything + "&q=ab": "/tasks?q=ab",
		"team=vision&sort=ran&order=desc&range=1h&cols=&" + everything[strings.Index(everything, "cols=&")+6:]: "/tasks?order=desc&range=1h&sort=ran&team=vision",
		everything + "&cols=kind&tab=finished":           "/tasks?show=kind&tab=finished",
		strings.ReplaceAll(everything, "&cols=pool", ""): "/tasks?hide=pool",
		"cols=": "/tasks?hide=team&hide=class&hide=place&hide=accelerators&hide=pool&hide=submitted&hide=waited&hide=ran&hide=preemptions",
	} {
		response, _ := handlerstest.Get(t, address+"/tasks?"+sent)
		if got := response.Header.Get("Location"); response.StatusCode != http.StatusSeeOther || got != want {
			t.Errorf("%s leads to %s (%s), want %s", sent, got, response.Status, want)
		}
	}
}

// Figures by priority class cover the range of the address, and show their real
// begin.
func TestTaskRange(t *testing.T) {
	started := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		query  string
		since  time.Time
		within time.Duration
		note   string
	}{
		"none":                            {"", started, 0, "averages since 21 Nov 2026, 09:00:00 UTC, when this console started"},
		"unknown":                         {"?range=7d", started, 0, "averages since 21 Nov 2026, 09:00:00 UTC, when this console started"},
		"an hour":                         {"?range=1h", started.Add(5 * time.Hour), time.Hour, "averages since 21 Nov 2026, 14:00:00 UTC"},
		"a day, of which it knows a part": {"?range=24h", started, 24 * time.Hour, "averages since 21 Nov 2026, 09:00:00 UTC, when this console started; earlier tasks are not counted"},
	} {
		t.Run(name, func(t *testing.T) {
			d := oneTask()
			d.List = queries.List{ByPriorityClass: []index.PriorityClassRow{{PriorityClass: "a", Running: 1}}, Since: tc.since, Started: started}
			_, page := handlerstest.Get(t, handlerstest.Serve(t, d)+"/tasks"+tc.query)
			htmlcheck.Page(t, page)
			if note := page.Find("#classes .note").Text(); d.Query.Within != tc.within || note != tc.note {
				t.Errorf("over %s it shows %q", d.Query.Within, note)
			}
			if current := page.Find(`.ranges [aria-current="true"]`); current.Length() != 1 || (tc.within == time.Hour) != (current.Text() == "1 h") {
				t.Errorf("%q is marked", current.Text())
			}
			if got := page.Find(`.filters input[name="range"]`).AttrOr("value", ""); tc.within > 0 && "?range="+got != tc.query || tc.within == 0 && got != "" {
				t.Errorf("the form keeps %q", got)
			}
		})
	}
}
