package previews_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/kueue/simulate"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/spec/textdiff"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"

	"github.com/PuerkitoBio/goquery"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

var gpu = quota.FlavorResource{Flavor: "p5", Resource: "nvidia.com/gpu"}

var license = quota.FlavorResource{Flavor: "p5", Resource: "example.com/license"}

func gpus(n resources.Amount) quota.FlavorResourceQuantities {
	return quota.FlavorResourceQuantities{gpu: n}
}

func task(name string) *tasks.Task { return &tasks.Task{Namespace: "ns", Kind: "Job", Name: name} }

// full is a preview with all that a page can show.
var full = queries.Preview{
	Time: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC), VersionNote: "The cluster runs Kueue v0.18.3, and this is simulated with v0.19.2, which can decide differently.", OneOrder: true, Omitted: []simulate.Omission{simulate.OmittedTopology, simulate.OmittedChecks},
	Started: queries.Effects{
		Listed: []queries.TaskEffect{{Task: task("a"), Team: "vision", Workload: "job-a", Usage: gpus(8)}, {Task: task("b"), Team: "vision", Workload: "job-b", Usage: gpus(1), Anyway: true}},
		More:   3, Rest: gpus(3), Others: gpus(5),
	},
	Preempted: queries.Effects{Listed: []queries.TaskEffect{{Task: task("c"), Workload: "job-c", Usage: gpus(2), By: "a", Reason: kueue.InCohortReclamationReason, Tied: true}}},
	Missed:    queries.Effects{Listed: []queries.TaskEffect{{Task: task("d"), Workload: "job-d", Usage: quota.FlavorResourceQuantities{gpu: 2, license: 1, {Flavor: "p5", Resource: "cpu"}: 1000}}}},
	Exceeding: queries.Effects{Listed: []queries.TaskEffect{{Task: task("e"), Workload: "job-e"}}},
	Teams: []queries.TeamEffect{
		{Team: "vision", Figures: []queries.TeamFigure{
			{FlavorResource: gpu, Allocated: queries.BeforeAfter{Before: 4, After: 8}, Used: queries.BeforeAfter{Before: 4, After: 9}, Borrowed: queries.BeforeAfter{After: 1}},
			{FlavorResource: quota.FlavorResource{Flavor: "p5", Resource: "cpu"}, Used: queries.BeforeAfter{After: 1000}}, // which follows from the GPUs
			{FlavorResource: license, Used: queries.BeforeAfter{After: 2}},
		}},
		{Figures: []queries.TeamFigure{{FlavorResource: gpu, Used: queries.BeforeAfter{Before: 3, After: 1}}}},
	},
	MoreTeams: 2, MoreObjects: 3,
	Objects: []queries.ObjectDiff{{Kind: "ClusterQueue", Name: "q", Lines: []textdiff.Line{{Text: "spec:"}, {Text: "old", Removed: true}, {Text: "new", Added: true}}}},
}

// stream opens a page that previews, reads its stream until the preview is computed,
// and returns that part of the page.
func stream(t *testing.T, d *handlerstest.Backend, path string) *goquery.Document {
	t.Helper()
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+path)
	htmlcheck.Page(t, page)
	if page.Find("#preview [data-state=computing]").Length() == 0 || page.Find("#preview tr").Length() > 0 {
		t.Fatalf("the page waits for its preview: %s", handlerstest.Text(page.Find("#preview")))
	}
	from, _ := page.Find("body").Attr("data-stream")
	var part *goquery.Document
	handlerstest.EventsUntil(t, address+from, func(html string) bool {
		document, err := goquery.NewDocumentFromReader(strings.NewReader(html))
		if err != nil {
			t.Fatal(err)
		}
		part = document
		return document.Find("#preview").Length() == 1 && document.Find("#preview [data-state=computing]").Length() == 0
	})
	return part
}

func TestPreview(t *testing.T) {
	d := handlerstest.WithAllocations(handlerstest.FullAllocation())
	d.PreviewBackend.Previewed = func(context.Context) (queries.Preview, error) { return full, nil }
	part := stream(t, d, "/policies/allocations/vision/delete")
	for selector, want := range map[string]string{
		".preview-summary": "4 tasks would start, 1 task would be preempted, 1 task would wait instead of starting, 1 task could no longer start. Preview again",
		`tr[data-effect=started][data-task="ns/job-a"]`: "Starts a vision 8 GPUs of p5",
		`tr[data-effect=started][data-anyway]`:          "Starts b vision 1 GPU of p5 also without this change",
		`tr[data-effect=started][data-task=""]`:         "Starts and 3 smaller tasks 3 GPUs of p5 Starts Tasks of other teams 5 GPUs of p5",
		`tr[data-effect=preempted][data-tied]`:          "Preempted c 2 GPUs of p5 for a: its team borrows what another reclaims depends on a tie",
		`tr[data-effect=missed]`:                        "Waits d 2 GPUs · 1 example.com/license of p5 starts without this change",
		`tr[data-effect=exceeding]`:                     "Cannot start e requests more than its team can ever get",
		`tr[data-pool][data-team=vision]`:               "vision p5 GPUs 4 → , with this change 8 4 → , with this change 9 0 → , with this change 1 vision p5 example.com/license 0 0 → , with this change 2 0",
		`tr[data-pool][data-team="Other teams"]`:        "Other teams p5 GPUs 0 3 → , with this change 1 0",
		`.section-note`:                                 "and 2 more teams",
		`.objects summary`:                              "YAML of 4 objects",
		`.objects .hint`:                                "and 3 more objects",
		`ins.yaml-line`:                                 "Added: + new",
	} {
		if got := handlerstest.Text(part.Find(selector)); got != want {
			t.Errorf("%s shows %q, want %q", selector, got, want)
		}
	}
	notes := handlerstest.Text(part.Find(".preview-note"))
	for _, want := range []string{"not ended within a minute", "Placement by topology is not simulated", "Admission checks count as passed", "what depends on a tie is not marked", "The cluster runs Kueue v0.18.3, and this is simulated with v0.19.2, which can decide differently."} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes lack %q: %s", want, notes)
		}
	}
}

// TestHangingPreview has a preview that ends only after the one behind it.
func TestHangingPreview(t *testing.T) {
	d := handlerstest.WithAllocations(handlerstest.FullAllocation())
	d.DepartureResult.Running = []allocations.Task{{Name: "runs"}}
	var previews atomic.Int32
	behind := make(chan struct{})
	d.PreviewBackend.Previewed = func(context.Context) (queries.Preview, error) {
		if previews.Add(1) > 1 {
			close(behind)
			return full, nil
		}
		select {
		case <-behind:
		case <-time.After(time.Minute):
			t.Error("the preview behind is not computed")
		}
		return queries.Preview{}, errors.New("hanging")
	}
	part := stream(t, d, "/policies/allocations/vision/hold")
	if n := part.Find("#preview [data-state=unverified]").Length(); n != 1 {
		t.Errorf("%d previews are not verified, want one", n)
	}
}

// TestPreviewFails has previews that fail in every way: the page says so.
func TestPreviewFails(t *testing.T) {
	for name, tc := range map[string]struct {
		preview func(context.Context) (queries.Preview, error)
		want    string
	}{
		"not verified": {
			preview: func(context.Context) (queries.Preview, error) {
				return queries.Preview{}, &governance.Error{Kind: governance.Unavailable, Message: "The simulation needed too much memory."}
			},
			want: "The simulation needed too much memory. Not verified. Preview again",
		},
		"a defect": {
			preview: func(context.Context) (queries.Preview, error) { return queries.Preview{}, errors.New("secret") },
			want:    "The simulation failed. Not verified. Preview again",
		},
		"a panic": {
			preview: func(context.Context) (queries.Preview, error) { panic("secret") },
			want:    "The simulation failed. Not verified. Preview again",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := handlerstest.WithAllocations(handlerstest.FullAllocation())
			d.PreviewBackend.Previewed = tc.preview
			part := stream(t, d, "/policies/allocations/vision/hold")
			if got := handlerstest.Text(part.Find("#preview [data-state=unverified]")); !strings.HasPrefix(got, tc.want) {
				t.Errorf("the page shows %q, want %q", got, tc.want)
			}
		})
	}
}
