package handlers_test

import (
	"context"
	"errors"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/access"
	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/history"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/views/htmlcheck"
)

// pastDomain is history in memory. Like the store, it answers for the teams that
// it is asked of, and knows nothing of who asks.
type pastDomain struct {
	began   time.Time
	classes map[string][]history.ClassStats // by team
	tasks   []history.Task
	steps   map[string][]history.Event
	held    map[history.SeriesKey]int64
	failure error
	queries []history.Query
	from    time.Time // that classes were asked from last
	asked   int
}

func (d *pastDomain) Since(context.Context) (time.Time, error) { return d.began, d.failure }

func (d *pastDomain) ClassStats(_ context.Context, teams []string, from, _ time.Time) (sums []history.ClassStats, _ error) {
	d.from = from
	d.asked++
	for team, of := range d.classes {
		if teams == nil || slices.Contains(teams, team) {
			sums = append(sums, of...)
		}
	}
	return sums, d.failure
}

func (d *pastDomain) Tasks(_ context.Context, q history.Query) (found []history.Task, _ error) {
	d.queries = append(d.queries, q)
	for _, t := range d.tasks {
		if (q.Teams == nil || slices.Contains(q.Teams, t.Team)) && (q.Name == "" || q.Name == t.Name && q.Namespace == t.Namespace && strings.EqualFold(q.Kind, t.Kind)) && (q.Limit == 0 || len(found) < q.Limit) {
			found = append(found, t)
		}
	}
	return found, d.failure
}

func (d *pastDomain) Timeline(_ context.Context, uid string) (history.Task, []history.Event, bool, error) {
	for _, t := range d.tasks {
		if t.UID == uid {
			return t, d.steps[uid], true, d.failure
		}
	}
	return history.Task{}, nil, false, d.failure
}

func (d *pastDomain) Series(_ context.Context, holders []history.SeriesKey, from, to time.Time, buckets int) (map[history.SeriesKey][]history.Point, error) {
	series := map[history.SeriesKey][]history.Point{}
	for _, holder := range holders {
		for i := range buckets {
			series[holder] = append(series[holder], history.Point{At: from.Add(to.Sub(from) / time.Duration(buckets) * time.Duration(i)), Value: float64(d.held[holder]), Known: i > 0})
		}
	}
	return series, d.failure
}

func (d *pastDomain) Totals(_ context.Context, holders []history.SeriesKey, from, to time.Time) (map[history.SeriesKey]history.Total, error) {
	totals := map[history.SeriesKey]history.Total{}
	for _, holder := range holders {
		totals[holder] = history.Total{Sum: big.NewInt(d.held[holder] * to.Sub(from).Milliseconds()), Known: to.Sub(from)}
	}
	return totals, d.failure
}

func (d *pastDomain) Gaps(context.Context, time.Time, time.Time) ([]history.Gap, error) {
	return nil, d.failure
}

var (
	noon     = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	mine     = access.ScopeOf("ns")
	gone     = history.Task{Namespace: "ns", Kind: "Job", Name: "train", UID: "u1", Team: "vision", PriorityClass: "dev-priority", Priority: 10, State: "Succeeded", Requests: map[string]int64{catalog.GPU: 4}, Pools: []string{h100}, SubmittedAt: noon, FinishedAt: noon.Add(2 * time.Hour), DeletedAt: noon.Add(3 * time.Hour), Preemptions: 1, RunTime: 75 * time.Minute}
	theirs   = history.Task{Namespace: "secret-ns", Kind: "Job", Name: "secret-job", UID: "u9", Team: "secret-team", PriorityClass: "secret-priority", State: "Failed", SubmittedAt: noon, FinishedAt: noon.Add(time.Hour)}
	goneLife = []history.Event{
		{At: noon, Type: "Submitted", Ran: -1},
		{WorkloadUID: "w1", At: noon.Add(10 * time.Minute), Type: "Admitted", Ran: -1},
		{WorkloadUID: "w1", At: noon.Add(40 * time.Minute), Type: "Preempted", Reason: "InCohortReclamation", Message: "path: /secret-cq", Ran: 30 * time.Minute, Preemptor: history.TaskRef{Namespace: "secret-ns", Kind: "Job", Name: "secret-job", UID: "u9", Team: "secret-team"}},
		{WorkloadUID: "w1", At: noon.Add(75 * time.Minute), Type: "Admitted", Ran: -1},
		{WorkloadUID: "w1", At: noon.Add(2 * time.Hour), Type: "Finished", Message: "hidden finished", Ran: -1},
	}
)

func past() *pastDomain {
	return &pastDomain{
		began: noon, tasks: []history.Task{gone, theirs}, steps: map[string][]history.Event{"u1": goneLife, "u9": {{At: noon, Type: "Submitted"}}},
		classes: map[string][]history.ClassStats{
			"vision":      {{Class: "dev-priority", Waits: 2, Runs: 2, WaitMillis: 90_000, RunMillis: 7_200_000, LongestWait: time.Minute, LongestRun: 90 * time.Minute}},
			"secret-team": {{Class: "secret-priority", Runs: 1, RunMillis: 1000, LongestRun: time.Second}},
		},
	}
}

// A task that is gone has its page still, with whom it was preempted by told to
// those who may know.
func TestTaskAfterItsDeletion(t *testing.T) {
	d := &domain{past: past(), scope: &mine}
	address := serve(t, d)
	for _, query := range []string{"", "?uid=u1"} {
		response, page := get(t, address+"/tasks/ns/job/train"+query)
		htmlcheck.Page(t, page)
		text := said(page.Find("main"))
		for _, want := range []string{"Succeeded", "deleted · Job · dev · requested 4 GPUs", "Waited 45 m 00 s in 2 waits; the longest was 35 m 00 s", "Ran 1 h 15 m in 2 runs", "Preempted once",
			"by another team Preempted another team reclaims its own quota; it had run for 30 m 00 s", "another team finished"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q: %s", query, want, text)
			}
		}
		if response.StatusCode != http.StatusOK || strings.Contains(text, "secret") {
			t.Errorf("%s answers %s, or tells of others: %s", query, response.Status, text)
		}
	}
	everything := access.Scope{All: true}
	d.scope = &everything
	if _, page := get(t, address+"/tasks/ns/job/train"); page.Find(`#task-timeline a[href="/tasks/secret-ns/job/secret-job?uid=u9"]`).Length() != 1 {
		t.Error("who sees all is not told who preempted it")
	}
}

// What somebody may not see is answered to the letter like what never was:
// another team's task, also by its UID beside an own address.
func TestPastOfOthersIsNotThere(t *testing.T) {
	address := serve(t, &domain{past: past(), scope: &mine})
	never, page := get(t, address+"/tasks/ns/job/never")
	want := said(page.Find("main"))
	for _, path := range []string{"/tasks/secret-ns/job/secret-job", "/tasks/secret-ns/job/secret-job?uid=u9", "/tasks/ns/job/train?uid=u9", "/tasks/ns/job/secret-job?uid=u9", "/tasks/ns/cronjob/train?uid=u1", "/tasks/ns/job/other?uid=u1"} {
		response, page := get(t, address+path)
		if got := said(page.Find("main")); response.StatusCode != never.StatusCode || got != want || never.StatusCode != http.StatusNotFound {
			t.Errorf("%s answers %s: %s", path, response.Status, got)
		}
	}
}

// Without history, and while it cannot be read, a task that is gone is told of
// as such.
func TestPastThatCannotBeRead(t *testing.T) {
	broken := past()
	broken.failure = errors.New("disk full at 10.0.0.7")
	d := &domain{past: broken, scope: &mine, teams: []string{"vision"}, capacity: capacityDomain{snapshot: aCluster()}}
	d.list.ByPriorityClass = []tasks.PriorityClassRow{{PriorityClass: "dev-priority", Running: 1}}
	address := serve(t, d)
	for path, want := range map[string]int{"/tasks/ns/job/train": 503, "/tasks/secret-ns/job/secret-job": 404, "/tasks": 200, "/tasks/past": 200, "/tasks/past.csv": 503, "/teams/vision": 200, "/teams/vision/usage.csv": 503} {
		response, page := get(t, address+path)
		if response.StatusCode != want || strings.Contains(page.Text(), "10.0.0.7") || want == 200 && !strings.Contains(page.Text(), "istory cannot be read now") && path != "/teams/vision" {
			t.Errorf("%s answers %s: %s", path, response.Status, said(page.Find("main")))
		}
	}
	off := serve(t, &domain{scope: &mine})
	if response, _ := get(t, off+"/tasks/ns/job/train"); response.StatusCode != http.StatusNotFound {
		t.Errorf("without history it answers %s", response.Status)
	}
	if _, page := get(t, off+"/tasks/past"); !strings.Contains(page.Text(), "No history is kept here") {
		t.Error("it is not said that there is no history")
	}
}

// Steps that the index forgot come from history, and none is told twice.
func TestTimelineIsCompletedFromHistory(t *testing.T) {
	by := tasks.Event{WorkloadUID: "w1", At: noon.Add(40*time.Minute + 300*time.Millisecond), Type: tasks.WasPreempted, Reason: "InCohortReclamation", Ran: -1}
	d := &domain{past: past(), items: []tasks.Item{{Task: &tasks.Task{Namespace: "ns", Kind: "Job", Name: "train", UID: "u1", State: tasks.Running, Submitted: noon, Evictions: 1}, Team: "vision"}}}
	d.more = func(detail *tasks.Detail) {
		detail.Omitted = 1
		detail.Timeline = []tasks.Event{{At: noon, Type: tasks.WasSubmitted}, {WorkloadUID: "w1", At: noon.Add(75 * time.Minute), Type: tasks.WasAdmitted, Ran: -1}}
	}
	address := serve(t, d) + "/tasks/ns/job/train"
	_, page := get(t, address)
	htmlcheck.Page(t, page)
	timeline := page.Find("#task-timeline")
	if lines := timeline.Find("li").Length(); lines != 5 || strings.Contains(said(timeline), "more, before") || timeline.Find(`a[href*="secret-job"]`).Length() != 1 {
		t.Errorf("%d lines: %s", lines, said(timeline))
	}
	d.more = func(detail *tasks.Detail) { detail.Timeline = []tasks.Event{by} }
	if _, page = get(t, address); page.Find("#task-timeline li").Length() != 5 || !strings.Contains(said(page.Find("#task-timeline")), "by Preempted secret-job another team reclaims its own quota; it had run for 30 m 00 s") {
		t.Errorf("it says %s", said(page.Find("#task-timeline")))
	}
	d.past = nil
	if _, page = get(t, serve(t, d)+"/tasks/ns/job/train"); page.Find("#task-timeline li").Length() != 1 {
		t.Error("history is told of that there is not")
	}
}

func TestPastTasks(t *testing.T) {
	p := past()
	again := gone
	again.UID, again.State, again.DeletedAt = "u2", "Pending", noon.Add(time.Minute)
	p.tasks = append(p.tasks, again)
	d := &domain{past: p, scope: &mine, teams: []string{"vision"}}
	address := serve(t, d)
	_, page := get(t, address+"/tasks/past?q=Tr&class=-&kind=Job&team=vision&from=2026-11-01&to=2026-11-30")
	htmlcheck.Page(t, page)
	if text := said(page.Find("#past-table tbody")); page.Find("#past-table tbody tr").Length() != 2 || !strings.Contains(text, "Deleted while pending") || strings.Contains(text, "secret") {
		t.Errorf("it lists %s", text)
	}
	if q := p.queries[len(p.queries)-1]; !slices.Equal(q.Teams, []string{"vision"}) || !slices.Equal(q.PriorityClasses, []string{""}) || q.Kind != "Job" || q.NameContains != "Tr" || !q.Finished || q.To.Sub(q.From) != 30*24*time.Hour {
		t.Errorf("asked is %+v", q)
	}
	for _, path := range []string{"/tasks/past", "/tasks/past?team=secret-team", "/tasks/past.csv", "/tasks/past.csv?team=secret-team", "/tasks/past?page=3"} {
		if _, page := get(t, address+path); strings.Contains(page.Text(), "secret-job") || strings.Contains(page.Text(), "secret-ns") {
			t.Errorf("%s tells of others: %s", path, page.Text())
		}
	}
	if text := file(t, address+"/tasks/past.csv"); !strings.Contains(text, "ns,Job,train,u1,vision,Succeeded,dev,10,4,0,0,0,"+h100+",2026-11-20T12:00:00Z,2026-11-20T14:00:00Z,2026-11-20T15:00:00Z,4500,1") {
		t.Errorf("the file is %s", text)
	}
	if response, page := get(t, address+"/tasks/past?from=yesterday"); response.StatusCode != 422 || page.Find("#days-error").Length() != 1 {
		t.Errorf("an odd day answers %s", response.Status)
	}
	if _, page := get(t, address+"/tasks/ns/job/train"); page.Find(`#same-name a[href="/tasks/ns/job/train?uid=u2"]`).Length() != 1 {
		t.Error("the other of the name is not linked")
	}
}

// Averages by class come from history: of the teams that the reader sees.
func TestClassesFromHistory(t *testing.T) {
	p := past()
	d := &domain{past: p, scope: &mine, teams: []string{"vision"}}
	d.list.ByPriorityClass = []tasks.PriorityClassRow{{PriorityClass: "dev-priority", Running: 1, RunningFor: 3 * time.Hour, Runs: 7, AverageRun: time.Second}, {PriorityClass: "", Pending: 1}}
	address := serve(t, d)
	_, page := get(t, address+"/tasks?range=30d")
	htmlcheck.Page(t, page)
	table := said(page.Find("#classes-table tbody"))
	if !strings.Contains(table, "1 h 00 m 45 s 3 h 00 m 1 m 00 s") || strings.Contains(table, "secret") {
		t.Errorf("the table is %s", table)
	}
	if page.Find(`#task-list a[href="/tasks/past"]`).Length() != 1 {
		t.Error("nothing leads to past tasks")
	}
	if note := page.Find("#classes .note").Text(); !strings.Contains(note, "20 Nov 2026, 12:00:00 UTC, when history begins") || !p.from.Equal(noon) {
		t.Errorf("it says %q, asked from %s", note, p.from)
	}
	if page.Find(`.ranges a[href="/tasks?range=1y"]`).Length() != 1 || page.Find(`.ranges [aria-current="true"]`).Text() != "30 d" {
		t.Error("the ranges are others")
	}
	asked := p.asked
	get(t, address+"/tasks?range=30d")
	if p.asked != asked {
		t.Error("history is asked again at once")
	}
	everything := access.Scope{All: true}
	d.scope = &everything
	if _, page := get(t, address+"/tasks"); !strings.Contains(said(page.Find("#classes-table tbody")), "secret") {
		t.Error("who sees all does not see all classes")
	}
}

func TestTeamUsage(t *testing.T) {
	p := past()
	holder := func(m history.Measure) history.SeriesKey {
		return history.SeriesKey{Team: "vision", Pool: h100, Resource: catalog.GPU, Measure: m}
	}
	p.held = map[history.SeriesKey]int64{holder(history.Used): 10, holder(history.Borrowed): 2, holder(history.Quota): 15}
	d := &domain{past: p, teams: []string{"vision"}, capacity: capacityDomain{snapshot: aCluster()}, changed: make(chan struct{}, 1)}
	for i, place := range []int{1, 2, 3} {
		d.items = append(d.items, tasks.Item{Task: &tasks.Task{UID: string(rune('a' + i)), Name: "job-" + string(rune('a'+i)), Namespace: "hyperpod-ns-vision", Kind: "Job", State: tasks.Pending, WaitingSince: noon}, Position: place, Brief: &explain.Verdict{Constraint: explain.Quota, Shortage: &explain.Shortage{FlavorResource: quota.FlavorResource{Flavor: h100, Resource: catalog.GPU}, Needed: 5, Available: 2}}})
	}
	d.waiting = 1200
	d.list.ByPriorityClass = []tasks.PriorityClassRow{{PriorityClass: "dev-priority", Running: 2, Pending: 3}}
	address := serve(t, d)
	_, page := get(t, address+"/teams/vision?range=24h&name=typed")
	htmlcheck.Page(t, page)
	for selector, wants := range map[string][]string{
		"#team-shares":       {"2 running", "3 waiting", h100 + " GPUs 15 8 1 without a node 8 0 2 5 53.33 %", "vCPU 0 4 0 4 0 0 –"},
		"#queue-table tbody": {"1st job-a 3 GPUs short.", "2nd job-b", "3rd job-c"},
		"#team-queue":        {"the first 3 of 1,200"},
		"#team-facts":        {"Members"},
		"#classes":           {"dev 2 3", "1 h 00 m"},
		"#team-history":      {"GPUs", "the last 24 hours", "Own", "Borrowed", "Quota"},
		"#team-past":         {"train Job Succeeded deleted"},
	} {
		text := said(page.Find(selector))
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q: %s", selector, want, text)
			}
		}
	}
	if page.Find("#team-usage #submit-form").Length() != 0 || page.Find("#submit-form #name").AttrOr("value", "") != "typed" {
		t.Error("the form is in what is live, or lost what was typed")
	}
	if stream := page.Find("body").AttrOr("data-stream", ""); stream != "/teams/vision/events?range=24h" {
		t.Errorf("the stream is %s", stream)
	}
	wait := events(t, address+"/teams/vision/events")
	wait(`id="team-usage"`)
	if text := file(t, address+"/teams/vision/usage.csv?from=2026-11-20T00:00&to=2026-11-20T10:00"); !strings.Contains(text, "vision,"+h100+",nvidia.com/gpu,GPU-hours,2026-11-20T00:00:00Z,2026-11-20T10:00:00Z,10.000,150.000,100.000,80.000,20.000") {
		t.Errorf("the file is %s", text)
	}
	hidden := &domain{past: p, capacity: capacityDomain{snapshot: aCluster()}}
	hidden.submits.hidden = true
	off := serve(t, hidden)
	for _, path := range []string{"/teams/vision", "/teams/vision/events", "/teams/vision/usage.csv"} {
		if response, page := get(t, off+path); response.StatusCode != http.StatusNotFound || strings.Contains(page.Text(), h100) {
			t.Errorf("%s answers %s", path, response.Status)
		}
	}
	if idle := page.Find("#shares-table tbody .meter-idle").First().AttrOr("width", ""); idle != "33.33%" {
		t.Errorf("5 idle of 15 are drawn over %q", idle)
	}
}
