package usage_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// recorded is a pool of 64 GPUs of which three teams use 10, 20 and 3, one of them deleted.
func recorded() *handlerstest.HistoryBackend {
	past := handlerstest.NewHistory()
	past.Held = map[history.SeriesKey]int64{}
	for _, of := range []struct {
		team    string
		measure history.Measure
		amount  int64
	}{
		{"", history.Physical, 64}, {"", history.OwnBound, 24}, {"", history.BorrowedBound, 10}, {"", history.Outside, 4}, {"", history.Unhealthy, 8}, {"", history.Idle, 18},
		{"vision", history.OwnBound, 8}, {"vision", history.BorrowedBound, 2}, {"vision", history.Growth, 3}, {"vision", history.OwnGrowth, 1},
		{"secret-team", history.OwnBound, 12}, {"secret-team", history.BorrowedBound, 8}, {"secret-team", history.LentToCohort, 2},
		{"secret-old", history.OwnBound, 3},
	} {
		past.Held[history.SeriesKey{Team: of.team, Pool: handlerstest.H100, Resource: catalog.GPU, Measure: of.measure}] = of.amount
	}
	return past
}

const days = "?from=2026-11-20&to=2026-11-21" // history is known from noon of the first

func row(t *testing.T, page *goquery.Document, id string) string {
	t.Helper()
	var parts []string
	for _, part := range page.Find("#" + id + " > *").EachIter() {
		parts = append(parts, strings.Join(strings.Fields(part.Text()), " "))
	}
	return strings.Join(parts, " ")
}

// A reader of all teams sees lines that add up to the capacity, on the page and in files.
func TestUsage(t *testing.T) {
	past := recorded()
	d := &handlerstest.Backend{Past: past, UserScope: &access.Scope{All: true}}
	d.Teams = []string{"vision", "secret-team"}
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+"/usage"+days)
	htmlcheck.Page(t, page)
	for id, want := range map[string]string{
		"usage-team-vision":     "vision 288 72 360 108 0",
		"usage-team-secret-old": "secret-old deleted 108 0 108 0 0",
		"usage-no":              "Queues without a team 36 0 36 0 0",
		"usage-id":              "Idle – – 648 – –",
		"usage-sum":             "All 864 360 2,304 108 72",
	} {
		if got := row(t, page, id); got != want {
			t.Errorf("#%s is %q, want %q", id, got, want)
		}
	}
	for id, want := range map[string]string{"usage-capacity": "2,304 hours", "usage-used": "of the capacity", "usage-recovered": "396 hours", "usage-unknown": "12 hours"} {
		if got := row(t, page, id); !strings.Contains(got, want) {
			t.Errorf("#%s is %q, want %q", id, got, want)
		}
	}
	if got := row(t, page, "usage-used"); strings.Contains(got, "before") {
		t.Errorf("nothing is known of the days before: got %q", got)
	}
	_, page = handlerstest.Get(t, address+"/usage?from=2026-11-21&to=2026-11-21")
	if got, want := row(t, page, "usage-used"), "53.1 % of the capacity; 53.1 % in the 1 day before"; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	response, file := handlerstest.Get(t, address+"/usage.csv"+days)
	lines, err := csv.NewReader(strings.NewReader(file.Text())).ReadAll()
	if err != nil || response.Header.Get("Content-Type") != "text/csv; charset=utf-8" {
		t.Fatalf("the file is %s: %v", response.Header.Get("Content-Type"), err)
	}
	sum := new(big.Rat)
	for _, line := range lines[1:] {
		if line[5] == "unknown" {
			continue
		}
		seconds, ok := new(big.Rat).SetString(line[7])
		if !ok {
			t.Fatalf("%q is no number", line[7])
		}
		sum.Add(sum, seconds)
	}
	if want := big.NewRat(64*36*3600, 1); sum.Cmp(want) != 0 {
		t.Errorf("the lines of the file add up to %s s, want %s", sum.FloatString(3), want.FloatString(3))
	}
	var reports []struct {
		UnknownSeconds json.Number
		Lines          []struct {
			Kind, Team string
			Seconds    json.Number
		}
	}
	_, file = handlerstest.Get(t, address+"/usage.json"+days)
	if err := json.Unmarshal([]byte(file.Text()), &reports); err != nil || len(reports) != 2 || len(reports[0].Lines) != 7 || reports[0].Lines[0].Team != "secret-old" || reports[0].Lines[0].Seconds != "129600" {
		t.Errorf("the JSON is %+v: %v", reports, err)
	}
}

// TestByDepartment sums up teams by the departments that they are in now: the highest ones, or those
// directly below the one that the filter selects. The rows add up to the same.
func TestByDepartment(t *testing.T) {
	team := func(name, department string) v1alpha1.ComputeAllocation {
		return v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ComputeAllocationSpec{Department: department}}
	}
	d := handlerstest.WithAllocations(team("vision", "sight"), team("secret-team", "research"))
	d.Past, d.UserScope, d.Teams = recorded(), &access.Scope{All: true}, []string{"vision", "secret-team"}
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+"/usage"+days)
	if page.Find("#rows option[value=department]").Length() != 0 {
		t.Error("departments are a choice of rows without any")
	}
	d.Departments.List = []v1alpha1.Department{handlerstest.Department("research", "", 40), handlerstest.Department("sight", "research", 10)}
	for filter, want := range map[string]map[string]string{
		"":                     {"usage-department-research": "research 720 360 1,080 108 72", "usage-department-": "Teams without a department 108 0 108 0 0", "usage-sum": "All 864 360 2,304 108 72"},
		"&department=research": {"usage-department-sight": "sight 288 72 360 108 0", "usage-department-": "Teams directly in it 432 288 720 0 72", "usage-sum": "All 720 360 1,080 108 72"},
	} {
		_, page := handlerstest.Get(t, address+"/usage"+days+"&rows=department"+filter)
		htmlcheck.Page(t, page)
		for id, want := range want {
			if got := row(t, page, id); got != want {
				t.Errorf("%s: #%s is %q, want %q", filter, id, got, want)
			}
		}
	}
	_, page = handlerstest.Get(t, address+"/usage"+days+"&rows=department")
	if link := page.Find("#usage-department-research a").AttrOr("href", ""); link != "/usage?department=research&from=2026-11-20&rows=department&to=2026-11-21" {
		t.Errorf("a department leads to %q", link)
	}
	_, file := handlerstest.Get(t, address+"/usage.csv"+days)
	if text := file.Text(); !strings.Contains(text, ",sight\n") || !strings.HasSuffix(strings.SplitN(text, "\n", 2)[0], ",currency,department") {
		t.Errorf("the file lacks the departments: %s", text)
	}
}

// byTasks adds to what was recorded the runs of tasks: they have 60 hours less than
// the quota that teams used, of which 36 had no node.
func byTasks(past *handlerstest.HistoryBackend) {
	total := func(key string, hours, lost int64) history.TaskUsageTotal {
		const hour = 3_600_000
		return history.TaskUsageTotal{Pool: handlerstest.H100, Key: key, Sum: big.NewInt(hours * hour), Preempted: big.NewInt(lost * hour)}
	}
	past.Records = []history.Task{{UID: "t1", Namespace: "vision", Kind: "Job", Name: "train", Team: "vision"}}
	past.Held[history.SeriesKey{Pool: handlerstest.H100, Resource: catalog.GPU, Measure: history.Unplaced}] = 1
	past.UsageTotals = map[history.UsageKey][]history.TaskUsageTotal{
		history.UsageByClass: {total("high-priority", 1000, 40), total("", 200, 0)},
		history.UsageByKind:  {total("Job", 1200, 40)},
		history.UsageByTask:  {total("t1", 1000, 40), total("gone", 200, 0)},
	}
}

// A page shows that a value of its address is none of the choices, and a file is refused.
// The label of a choice selects it.
func TestUnknownChoices(t *testing.T) {
	past := recorded()
	byTasks(past)
	address := handlerstest.Serve(t, &handlerstest.Backend{Past: past, UserScope: &access.Scope{All: true}})
	_, page := handlerstest.Get(t, address+"/usage"+days+"&rows=folk&by=hour&pool=none&resource=foo")
	htmlcheck.Page(t, page)
	for id, want := range map[string]string{
		"rows":     `Rows: "folk" is none of the choices, which are Teams, Priority classes, Kinds, People, Tasks.`,
		"by":       `Periods: "hour" is none of the choices, which are Days, Weeks, Months.`,
		"pool":     `Pool: "none" is none of the choices, which are All pools, ml.p5.48xlarge.`,
		"resource": `Resource: "foo" is none of the choices, which are GPUs`,
	} {
		if got := handlerstest.Text(page.Find("#" + id + "-hint")); !strings.HasPrefix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for _, file := range []string{"/usage.csv", "/usage.json"} {
		response, err := http.Get(address + file + days + "&rows=folk")
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%s: got status %d, want 422", file, response.StatusCode)
		}
	}
	if _, page = handlerstest.Get(t, address+"/usage"+days+"&rows=people"); page.Find("#rows option[selected]").AttrOr("value", "") != "person" || page.Find("#rows-hint").Length() != 0 {
		t.Error("the label does not select the rows")
	}
}

// Rows by priority class, kind and task add up to the quota that teams used, on the page and in the
// file.
func TestUsageByTasks(t *testing.T) {
	past := recorded()
	byTasks(past)
	d := &handlerstest.Backend{Past: past, UserScope: &access.Scope{All: true}}
	address := handlerstest.Serve(t, d)
	for rows, want := range map[string][]string{
		"class": {"high 1,000 79.4 % 40", "No priority class 200 15.9 % 0"},
		"kind":  {"Job 1,200 95.2 % 40"},
		"task":  {"train Job in vision 1,000 79.4 % 40", "gone 200 15.9 % 0"},
	} {
		want = append(want, "Not in a task record 60 4.8 % –", "Quota used by teams 36 without a node 1,260 100.0 % 40")
		_, page := handlerstest.Get(t, address+"/usage"+days+"&rows="+rows)
		htmlcheck.Page(t, page)
		var got []string
		for _, tr := range page.Find("#usage-team-table tbody tr, #usage-team-table tfoot tr").EachIter() {
			got = append(got, row(t, page, tr.AttrOr("id", "")))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("rows of %s (-want +got):\n%s", rows, diff)
		}
		_, file := handlerstest.Get(t, address+"/usage.csv"+days+"&rows="+rows)
		lines, err := csv.NewReader(strings.NewReader(file.Text())).ReadAll()
		if err != nil || len(lines) < 1+2*(len(want)-2) {
			t.Fatalf("the file by %s has %d lines: %v", rows, len(lines), err)
		}
		sum := new(big.Rat)
		for _, line := range lines[1:] {
			seconds, _ := new(big.Rat).SetString(line[11])
			sum.Add(sum, seconds)
		}
		_, text := handlerstest.Get(t, address+"/usage.json"+days+"&rows="+rows)
		var reports []struct {
			Lines []struct {
				Row, Class, TaskKind, UID, Task string
				Seconds                         json.Number
			}
		}
		if err := json.Unmarshal([]byte(text.Text()), &reports); err != nil || len(reports) != 2 {
			t.Fatalf("the JSON by %s has %d periods: %v", rows, len(reports), err)
		}
		inJSON := new(big.Rat)
		for _, report := range reports {
			for _, l := range report.Lines {
				seconds, _ := new(big.Rat).SetString(string(l.Seconds))
				inJSON.Add(inJSON, seconds)
				if l.Row == "tasks" && l.UID == "t1" && l.Task != "train" || l.Row == "tasks" && rows == "kind" && l.TaskKind != "Job" {
					t.Errorf("the JSON by %s has the line %+v", rows, l)
				}
			}
		}
		if sum.Cmp(inJSON) != 0 {
			t.Errorf("the JSON by %s adds up to %s s, and the CSV to %s", rows, inJSON.FloatString(3), sum.FloatString(3))
		}
		if want := big.NewRat(2*1200*3600, 1); sum.Cmp(want) != 0 {
			t.Errorf("the file by %s adds up to %s s, want %s", rows, sum.FloatString(3), want.FloatString(3))
		}
	}
	d.UserScope, d.Teams = &handlerstest.OwnScope, []string{"vision"}
	for _, path := range []string{"/usage", "/usage.csv", "/usage.json"} {
		past.UsageOf = history.TaskUsageQuery{}
		if _, page := handlerstest.Get(t, address+path+days+"&rows=task&team=secret-team"); past.UsageOf.Teams == nil || len(past.UsageOf.Teams) > 0 || strings.Contains(page.Find("#usage-team-table").Text(), "secret") {
			t.Errorf("%s of another team reads %v", path, past.UsageOf.Teams)
		}
		if handlerstest.Get(t, address+path+days+"&rows=task"); !cmp.Equal(past.UsageOf.Teams, []string{"vision"}) {
			t.Errorf("%s reads %v, want the own team", path, past.UsageOf.Teams)
		}
	}
}

// A printed report says what it is of.
func TestUsageOnPaper(t *testing.T) {
	d := &handlerstest.Backend{Past: recorded(), UserScope: &access.Scope{All: true}}
	_, page := handlerstest.Get(t, handlerstest.Serve(t, d)+"/usage"+days+"&team=vision&pool="+handlerstest.H100)
	if got := page.Find(".print-only").Text(); !strings.Contains(got, ", team vision, pool "+handlerstest.H100+". Data until ") {
		t.Errorf("got %q", got)
	}
	if n := page.Find(".ranges a").Length(); n != 3 {
		t.Errorf("got %d links to other days", n)
	}
	for _, link := range page.Find(".ranges a").EachIter() { // another month is of the same filters, and of the same resource
		if href := link.AttrOr("href", ""); !strings.Contains(href, "team=vision") || !strings.Contains(href, "pool=") || !strings.Contains(href, "resource=nvidia.com%2Fgpu") {
			t.Errorf("%s leads to %s", link.Text(), href)
		}
	}
	if got := handlerstest.Text(page.Find("#usage-chart-table tbody th").Last()); got != "20 Nov 2026" {
		t.Errorf("the first day is %q", got)
	}
}

// Prices of the policy apply from their second on, and own and borrowed ones differ.
func TestUsageCost(t *testing.T) {
	d := &handlerstest.Backend{Past: recorded(), UserScope: &access.Scope{All: true}}
	d.PolicyBackend.Policy = handlerstest.RankedPolicy()
	d.PolicyBackend.Policy.Spec.Prices = &v1alpha1.Prices{Currency: "EUR", Hourly: []v1alpha1.HourlyPrice{
		{Pool: handlerstest.H100, Resource: catalog.GPU, From: "2026-11-20T18:00:00Z", Own: "2.50", Borrowed: "1"}, {Pool: handlerstest.H100, Resource: catalog.GPU, From: "2026-11-21T00:00:01Z", Own: "3"},
	}}
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+"/usage"+days)
	htmlcheck.Page(t, page)
	// Six hours and one second at the first price, and the rest of the second day: 8 own, 2 borrowed.
	if got := row(t, page, "usage-team-vision"); !strings.HasSuffix(got, " 852.00") { // 22 × 6 + 22/3600 + 30 × 24 - 30/3600
		t.Errorf("the row is %q, want a cost of 852.00", got)
	}
	if got := page.Find("#usage-summary").Text(); !strings.Contains(got, "Costs are in EUR") || page.Find(`#usage-summary a[href="/usage/prices"]`).Length() != 1 {
		t.Errorf("the summary is %q", got)
	}
	_, file := handlerstest.Get(t, address+"/usage.csv"+days)
	if !strings.Contains(file.Text(), ",719.997778,EUR") {
		t.Errorf("the second day of vision does not cost 719.997778: %s", file.Text())
	}
	d.PolicyBackend.Reader = true
	if _, page := handlerstest.Get(t, address+"/usage"+days); page.Find("#usage-summary a").Length() != 0 {
		t.Error("a reader who cannot change prices is offered to")
	}
}

// A member sees lines of their teams only, and nothing that others can be computed from.
func TestUsageOfMember(t *testing.T) {
	d := &handlerstest.Backend{Past: recorded(), UserScope: &handlerstest.OwnScope}
	d.Teams = []string{"vision"}
	address := handlerstest.Serve(t, d)
	for _, query := range []string{days, days + "&team=secret-team", days + "&team=vision"} {
		for _, path := range []string{"/usage", "/usage.csv", "/usage.json"} {
			_, page := handlerstest.Get(t, address+path+query)
			text := strings.ReplaceAll(page.Find("#usage").Text(), "secret-team", "")
			if path != "/usage" {
				text = page.Text()
			}
			for _, other := range []string{"secret", "Idle", ",idle,", `"idle"`, "Capacity", "Outside", "outside", "no team", "2,304"} {
				if strings.Contains(strings.SplitN(text, "What these figures mean", 2)[0], other) {
					t.Errorf("%s shows %q of others", path+query, other)
				}
			}
			if vision := strings.Contains(text, "vision"); vision == strings.HasSuffix(query, "secret-team") {
				t.Errorf("%s shows the own team: %v", path+query, vision)
			}
		}
	}
	_, page := handlerstest.Get(t, address+"/usage"+days)
	if got := row(t, page, "usage-sum"); got != "All 288 72 360 108 0" {
		t.Errorf("the sum of the own teams is %q", got)
	}
}

// A wrong value gets a sentence and is kept, and history that is away or off is said.
func TestUsageTrouble(t *testing.T) {
	past := recorded()
	d := &handlerstest.Backend{Past: past, UserScope: &access.Scope{All: true}}
	address := handlerstest.Serve(t, d)
	for path, want := range map[string]string{
		"?from=yesterday":                   "Write days from 2000 on as YYYY-MM-DD.",
		"?from=2026-11-02&to=2026-11-01":    "The first day is after the last.",
		"?from=2020-01-01&to=2026-11-01":    "Choose at most 400 days.",
		"?from=2999-01-01&to=2999-01-02":    "The first day is in the future.",
		"?zone=Mars/Base&from=2026-11-20":   "There is no such time zone.",
		"?zone=Local&from=2026-11-20&by=no": "There is no such time zone.",
	} {
		response, page := handlerstest.Get(t, address+"/usage"+path)
		htmlcheck.Page(t, page)
		if response.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(page.Find("form .error").Text(), want) {
			t.Errorf("%s answers %s, want %q", path, response.Status, want)
		}
		if response, _ := handlerstest.Get(t, address+"/usage.csv"+path); response.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%s answers %s as a file", path, response.Status)
		}
	}
	if _, page := handlerstest.Get(t, address+"/usage?zone=Mars/Base"); page.Find("#zone").AttrOr("value", "") != "Mars/Base" {
		t.Error("the time zone that was typed is lost")
	}
	past.Failure = fmt.Errorf("disk full at 10.0.0.7")
	if response, page := handlerstest.Get(t, address+"/usage"+days); response.StatusCode != http.StatusOK || !strings.Contains(page.Text(), "istory cannot be read now") || strings.Contains(page.Text(), "10.0.0.7") {
		t.Errorf("without the database it answers %s", response.Status)
	}
	for _, file := range []string{"/usage.csv", "/usage.json"} {
		if response, _ := handlerstest.Get(t, address+file+days); response.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("without the database %s answers %s", file, response.Status)
		}
	}
}

// Periods are days of the time zone that is asked for.
func TestUsageZone(t *testing.T) {
	d := &handlerstest.Backend{Past: recorded(), UserScope: &access.Scope{All: true}}
	_, file := handlerstest.Get(t, handlerstest.Serve(t, d)+"/usage.csv"+days+"&zone=Asia/Kolkata")
	zone, err := time.LoadLocation("Asia/Kolkata")
	if err != nil {
		t.Fatal(err)
	}
	if want := time.Date(2026, 11, 21, 0, 0, 0, 0, zone).Format(time.RFC3339); !strings.Contains(file.Text(), "\n"+want+",") {
		t.Errorf("no period begins at %s", want)
	}
}
