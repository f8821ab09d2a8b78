package allocations_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/record/revisions"
	"kuota.dev/kuota/governance/spec/textdiff"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"
)

// The notice that the session ended stays while the script renders the form again, and is gone
// after a review.
func TestResumedFormIsPreviewed(t *testing.T) {
	address := handlerstest.Serve(t, &handlerstest.Backend{}) + "/policies/allocations/new"
	for action, want := range map[string]bool{"preview": true, "review": false} {
		_, page := handlerstest.Post(t, address, handlerstest.AllocationForm("action", action, "resumed", "true", "row-0-accelerators", "x"), "X-Requested-With", "fetch")
		if got := strings.Contains(page.Text(), "Your session ended"); got != want {
			t.Errorf("%s: the notice is shown: %t, want %t: %s", action, got, want, page.Text())
		}
	}
}

// preempting is a preview in which a task is preempted.
var preempting = queries.Preview{Settled: true, Preempted: queries.Effects{Listed: []queries.TaskEffect{{Task: &tasks.Task{Namespace: "ns", Kind: "Job", Name: "victim"}, Team: "speech"}}}}

// The effect is beside the form: what is missing, then the simulation, which the script asks
// for.
func TestEffectBesideTheForm(t *testing.T) {
	d := handlerstest.WithAllocations()
	d.PreviewBackend.Previewed = func(context.Context) (queries.Preview, error) { return preempting, nil }
	address := handlerstest.Serve(t, d) + handlerstest.NewURL
	_, page := handlerstest.Get(t, address)
	if text := page.Find("#effect").Text(); !strings.Contains(text, "Name the team and give it quota") || page.Find("[data-verify]").Length() > 0 {
		t.Errorf("an empty form: got %q, want what is missing", text)
	}
	_, page = handlerstest.Post(t, address, handlerstest.AllocationForm("action", "preview"), "X-Requested-With", "fetch")
	if page.Find("#effect[data-verify]").Length() != 1 || strings.Contains(page.Find("#effect").Text(), "victim") {
		t.Errorf("a filled form: got %q, want one that asks for the simulation", page.Find("#effect").Text())
	}
	_, page = handlerstest.Post(t, address, handlerstest.AllocationForm("action", "verify"), "X-Requested-With", "fetch")
	if text := handlerstest.Text(page.Find("#effect")); !strings.Contains(text, "1 task would be preempted. Preempted victim speech") || page.Find("[data-verify]").Length() > 0 {
		t.Errorf("a verified form: got %q, want the preempted task", text)
	}
	_, page = handlerstest.Post(t, address, handlerstest.AllocationForm("action", "verify", "row-0-accelerators", "x"), "X-Requested-With", "fetch")
	if text := page.Find("#effect").Text(); !strings.Contains(text, "not valid") {
		t.Errorf("a wrong form: got %q, want that it is not valid", text)
	}
	// So is a form that the policy does not allow, while it is typed.
	d.Policy = handlerstest.RankedPolicy()
	d.Policy.Spec.OverAllocationLimits = []v1alpha1.OverAllocationLimit{{Pool: v1alpha1.AllPools, Percent: new(int32)}}
	_, page = handlerstest.Post(t, address, handlerstest.AllocationForm("action", "preview", "row-0-accelerators", "9000"), "X-Requested-With", "fetch")
	if text, wrong := page.Find("#effect").Text(), page.Find("#row-0-error").Text(); !strings.Contains(text, "not valid") || !strings.Contains(wrong, "More than the cluster policy lets all teams have") {
		t.Errorf("a form over the limit: got %q and the error %q", text, wrong)
	}
	d.Policy = nil

	_, page = handlerstest.Get(t, handlerstest.Serve(t, handlerstest.WithAllocations(handlerstest.FullAllocation()))+handlerstest.EditURL)
	if text := page.Find("#effect").Text(); !strings.Contains(text, "Nothing is changed yet") {
		t.Errorf("an unchanged form: got %q, want that nothing is changed", text)
	}
}

// A save that interrupts nothing needs no review. Others are reviewed, and say why.
func TestApply(t *testing.T) {
	objects := queries.Preview{Settled: true, Objects: []queries.ObjectDiff{{Kind: "ClusterQueue", Name: "q", Lines: []textdiff.Line{{Text: "spec:", Added: true}}}}}
	for name, tc := range map[string]struct {
		preview queries.Preview
		err     error
		asks    string // empty for a save
	}{
		"nothing is interrupted":      {preview: objects},
		"a task is preempted":         {preview: preempting, asks: "Saving interrupts running tasks"},
		"it is preempted in any case": {preview: queries.Preview{Preempted: queries.Effects{Listed: []queries.TaskEffect{{Task: preempting.Preempted.Listed[0].Task, Anyway: true}}}}},
		"a hidden task is preempted":  {preview: queries.Preview{Evicted: queries.Effects{Others: quota.FlavorResourceQuantities{{Flavor: "p5", Resource: "nvidia.com/gpu"}: 1}}}, asks: "Saving interrupts running tasks"},
		"the simulation fails":        {err: errors.New("no answer"), asks: "Effects on running tasks are not known."},
	} {
		t.Run(name, func(t *testing.T) {
			d := handlerstest.WithAllocations()
			d.PreviewBackend.Previewed = func(context.Context) (queries.Preview, error) { return tc.preview, tc.err }
			address := handlerstest.Serve(t, d) + handlerstest.NewURL
			response, page := handlerstest.Post(t, address, handlerstest.AllocationForm("action", "apply"))
			if tc.asks == "" {
				if response.StatusCode != http.StatusSeeOther || len(d.Created) != 1 {
					t.Fatalf("got %s and %d teams, want one that was created: %s", response.Status, len(d.Created), page.Find("main").Text())
				}
				return
			}
			if len(d.Created) != 0 || !strings.Contains(page.Find(".notice").Text(), tc.asks) {
				t.Fatalf("got %d teams and %q, want none, and %q", len(d.Created), page.Find("main").Text(), tc.asks)
			}
			htmlcheck.Page(t, page)
			values := handlerstest.ValuesIn(page, "#review-form")
			values.Set("action", "save")
			if response, page := handlerstest.Post(t, address, values); response.StatusCode != http.StatusSeeOther || len(d.Created) != 1 {
				t.Errorf("confirmed: got %s and %d teams, want one: %s", response.Status, len(d.Created), page.Find("main").Text())
			}
		})
	}
}

// What would be saved is what was shown: otherwise nothing is saved, and the page says so.
func TestApplyAfterTheEffectChanged(t *testing.T) {
	line := "nominalQuota: 2"
	d := handlerstest.WithAllocations()
	d.PreviewBackend.Previewed = func(context.Context) (queries.Preview, error) {
		return queries.Preview{Objects: []queries.ObjectDiff{{Kind: "ClusterQueue", Name: "q", Lines: []textdiff.Line{{Text: line, Added: true}}}}}, nil
	}
	address := handlerstest.Serve(t, d) + handlerstest.NewURL
	_, page := handlerstest.Post(t, address, handlerstest.AllocationForm("action", "preview"), "X-Requested-With", "fetch")
	values := handlerstest.ValuesIn(page, "#allocation-form")
	values.Set("action", "verify")
	_, page = handlerstest.Post(t, address, values, "X-Requested-With", "fetch")
	values = handlerstest.ValuesIn(page, "#allocation-form")
	values.Set("action", "apply")
	line = "nominalQuota: 3"
	_, page = handlerstest.Post(t, address, values)
	if text := page.Find("#effect").Text(); len(d.Created) != 0 || !strings.Contains(text, "Nothing is saved: what saving does has changed") {
		t.Fatalf("got %d teams and %q, want none, and that the effect has changed", len(d.Created), text)
	}
	values = handlerstest.ValuesIn(page, "#allocation-form")
	values.Set("action", "verify")
	_, page = handlerstest.Post(t, address, values, "X-Requested-With", "fetch")
	if text := page.Find("#effect").Text(); !strings.Contains(text, "Nothing is saved") || !strings.Contains(text, "nominalQuota: 3") {
		t.Errorf("once simulated: got %q, want what was not saved, and the new effect", text)
	}
	values = handlerstest.ValuesIn(page, "#allocation-form")
	values.Set("action", "apply")
	if response, _ := handlerstest.Post(t, address, values); response.StatusCode != http.StatusSeeOther || len(d.Created) != 1 {
		t.Errorf("once more: got %s and %d teams, want one", response.Status, len(d.Created))
	}
}

// Another user's save is merged with what was typed. Only what both changed is asked.
func TestMerge(t *testing.T) {
	for name, tc := range map[string]struct {
		typed  map[string]string
		theirs func(*v1alpha1.ComputeAllocation)
		asks   string // what differs; empty for a merged form
		want   func(spec v1alpha1.ComputeAllocationSpec) bool
	}{
		"other values": {
			typed:  map[string]string{"weight": "77"},
			theirs: func(a *v1alpha1.ComputeAllocation) { a.Spec.Budget, a.Spec.Description = nil, "Theirs" },
			want: func(s v1alpha1.ComputeAllocationSpec) bool {
				return s.FairShareWeight == 77 && s.Budget == nil && s.Description == "Theirs" && len(s.Windows) == 2
			},
		},
		"the same value": {
			typed:  map[string]string{"weight": "77", "display-name": "Mine"},
			theirs: func(a *v1alpha1.ComputeAllocation) { a.Spec.FairShareWeight, a.Spec.Description = 11, "Theirs" },
			asks:   "Fair-share weight 11 77",
			want: func(s v1alpha1.ComputeAllocationSpec) bool {
				return s.FairShareWeight == 77 && s.DisplayName == "Mine" && s.Description == "Theirs"
			},
		},
		"another row": {
			typed:  map[string]string{"display-name": "Mine"},
			theirs: func(a *v1alpha1.ComputeAllocation) { a.Spec.Quota = a.Spec.Quota[1:] },
			want: func(s v1alpha1.ComputeAllocationSpec) bool {
				return len(s.Quota) == 3 && s.DisplayName == "Mine"
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			base := handlerstest.FullAllocation()
			base.UID = "u"
			d := handlerstest.WithAllocations(base)
			d.Versions = map[revisions.Owner][]revisions.Version{revisions.AllocationOwner("vision"): {{Revision: revisions.Revision{Number: 1, UID: "u", Generation: 3}, Allocation: base.Spec.DeepCopy()}}}
			address := handlerstest.Serve(t, d) + handlerstest.EditURL
			_, page := handlerstest.Get(t, address)
			values := handlerstest.ValuesIn(page, "#allocation-form")
			for field, text := range tc.typed {
				values.Set(field, text)
			}
			values.Set("action", "save")
			d.Change("vision", tc.theirs)
			_, page = handlerstest.Post(t, address, values)
			form := "#allocation-form"
			if tc.asks != "" {
				form = "#conflict-form"
				if got := handlerstest.Text(page.Find("#conflict tbody tr")); got != tc.asks {
					t.Errorf("what differs: got %q, want %q", got, tc.asks)
				}
			} else {
				values := handlerstest.ValuesIn(page, form)
				values.Set("action", "verify")
				_, page = handlerstest.Post(t, address, values, "X-Requested-With", "fetch")
				if text := page.Find(".notice").Text(); !strings.Contains(text, "The form has both changes") {
					t.Errorf("got %q, want a merged form, also once it is simulated", page.Text())
				}
			}
			values = handlerstest.ValuesIn(page, form)
			values.Set("action", "save")
			if response, page := handlerstest.Post(t, address, values); response.StatusCode != http.StatusSeeOther {
				t.Fatalf("got %s: %s", response.Status, page.Find("main").Text())
			}
			if got := d.Updated[0].Spec; !tc.want(got) {
				t.Errorf("saved %+v", got)
			}
			if tc.asks == "" {
				return
			}
			if theirs := handlerstest.ValuesIn(page, "#theirs-form"); theirs.Get("weight") != "11" || theirs.Get("display-name") != "Mine" {
				t.Errorf("theirs: got weight %s and name %s, want 11 and Mine", theirs.Get("weight"), theirs.Get("display-name"))
			}
		})
	}
}

// The form has a row for each pool that exists. Those without amounts are no quota.
func TestRowsOfPools(t *testing.T) {
	d := handlerstest.WithAllocations()
	address := handlerstest.Serve(t, d) + handlerstest.NewURL
	_, page := handlerstest.Get(t, address)
	values := handlerstest.ValuesIn(page, "#allocation-form")
	row := page.Find(`.row:has(input[value="ml.g6.12xlarge"])`)
	if rows := page.Find(".row").Length(); rows < 2 || row.Length() != 1 || !strings.Contains(handlerstest.Text(row), "L4 ml.g6.12xlarge 2 instances · 8 GPUs, 8 not allocated") {
		t.Fatalf("got %d rows, with %q, want one for each pool", rows, handlerstest.Text(page.Find("#rows-section")))
	}
	for name, text := range map[string]string{"team": "vision", row.AttrOr("id", "") + "-accelerators": "2", "action": "preview"} {
		values.Set(name, text)
	}
	_, page = handlerstest.Post(t, address, values, "X-Requested-With", "fetch")
	if got := handlerstest.Text(page.Find("#" + row.AttrOr("id", "") + "-rest summary")); got != "24 vCPU · 96 GiB" {
		t.Errorf("got %q, want vCPU and memory of two accelerators", got)
	}
	values.Set("action", "save")
	if response, page := handlerstest.Post(t, address, values); response.StatusCode != http.StatusSeeOther {
		t.Fatalf("got %s: %s", response.Status, page.Find("#form-errors").Text())
	}
	if quota := d.Created[0].Spec.Quota; len(quota) != 1 || quota[0].InstanceType != "ml.g6.12xlarge" || d.Created[0].Spec.Preemption.WithinTeam != v1alpha1.PreemptLowerPriority {
		t.Errorf("saved %+v, want one row", d.Created[0].Spec)
	}
	values.Set(row.AttrOr("id", "")+"-accelerators", "x")
	if _, page := handlerstest.Post(t, address, values); !strings.Contains(page.Find("#form-errors").Text(), "ml.g6.12xlarge, accelerators: ") {
		t.Errorf("got %q, want the pool of the error", page.Find("#form-errors").Text())
	}
	values.Del("team")
	values.Set(row.AttrOr("id", "")+"-accelerators", "0") // no quota, as nothing is
	if _, page := handlerstest.Post(t, address, values); !strings.Contains(page.Find("#form-errors").Text(), "at least one pool") {
		t.Errorf("got %q, want that quota is missing", page.Find("#form-errors").Text())
	}
}

// Members are chosen from names that were seen before; others, and a team without members,
// are warned of.
func TestMembersThatWereNotSeen(t *testing.T) {
	d := handlerstest.WithAllocations(handlerstest.FullAllocation())
	address := handlerstest.Serve(t, d) + handlerstest.NewURL
	_, page := handlerstest.Post(t, address, handlerstest.AllocationForm("action", "preview", "team", "audio", "member-0-kind", "Group", "member-0-name", "vision-team", "member-1-kind", "Group", "member-1-name", "vison-team"), "X-Requested-With", "fetch")
	if text := handlerstest.Text(page.Find(".member .remark")); strings.Count(text, "Not seen before") != 1 || page.Find(".member").Last().Find(".remark").Length() != 1 {
		t.Errorf("got %q, want a warning about the second member", text)
	}
	_, page = handlerstest.Post(t, address, handlerstest.AllocationForm("action", "preview", "team", "audio"), "X-Requested-With", "fetch")
	if text := page.Find(".members .remark").Text(); !strings.Contains(text, "Without members") {
		t.Errorf("got %q, want a warning about a team without members", text)
	}
	_, page = handlerstest.Get(t, address)
	if page.Find(`#known-members option[value="vision-team"]`).Length() != 1 {
		t.Error("got no option vision-team, want members of other teams")
	}
}
