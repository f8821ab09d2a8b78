package policy_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/policy"
	"kuota.dev/kuota/governance/spec/change"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"

	"github.com/PuerkitoBio/goquery"
)

// Idle compute that goes to who asks first can still be preempted by class: the
// review says so where that begins.
func TestReviewShowsWhatCanPreemptBorrowers(t *testing.T) {
	first := handlerstest.RankedPolicy()
	first.Spec.IdleCompute.Strategy = v1alpha1.IdleFirstComeFirstServe
	for name, tc := range map[string]struct {
		now    *v1alpha1.ClusterPolicy
		change []string
		want   bool
	}{
		"chosen now":             {handlerstest.RankedPolicy(), []string{"idle", "FirstComeFirstServe"}, true},
		"chosen before":          {first, []string{"class-0-description", "x"}, false},
		"chosen without classes": {handlerstest.RankedPolicy(), []string{"idle", "FirstComeFirstServe", "prioritization", "FirstComeFirstServe"}, false},
		"classes while it was chosen": {func() *v1alpha1.ClusterPolicy {
			p := first.DeepCopy()
			p.Spec.TaskPrioritization = v1alpha1.FirstComeFirstServe
			return p
		}(), []string{"prioritization", "TaskRanking"}, true},
		"fair share": {first, []string{"idle", "FairShare"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			address := handlerstest.Serve(t, &handlerstest.Backend{PolicyBackend: handlerstest.PolicyBackend{Policy: tc.now}}) + handlerstest.PolicyURL
			_, page := handlerstest.Get(t, address)
			_, page = handlerstest.Post(t, address, handlerstest.WithValues(handlerstest.ValuesIn(page, "#policy-form"), append(tc.change, "action", "review")...))
			htmlcheck.Page(t, page)
			if text := handlerstest.Text(page.Find("#review-borrowing")); strings.Contains(text, "can preempt lower-priority tasks of other teams that run on borrowed compute") != tc.want {
				t.Errorf("the review shows %q", text)
			}
		})
	}
}

// A review of nothing offers no save; one of what no list shows does.
func TestReviewOfLittle(t *testing.T) {
	d := &handlerstest.Backend{PolicyBackend: handlerstest.PolicyBackend{Policy: handlerstest.RankedPolicy()}}
	address := handlerstest.Serve(t, d) + handlerstest.PolicyURL
	_, page := handlerstest.Get(t, address)
	same := handlerstest.WithValues(handlerstest.ValuesIn(page, "#policy-form"), "action", "review")
	_, page = handlerstest.Post(t, address, same)
	if !strings.Contains(page.Find(".notice").Text(), "Saving changes nothing") || page.Find("[value=save]").Length() != 0 {
		t.Errorf("a review of nothing shows %q", page.Find(".notice").Text())
	}
	_, page = handlerstest.Post(t, address, handlerstest.WithValues(same, "class-0-description", "Planned"))
	if !strings.Contains(page.Find(".notice").Text(), "are not affected") || page.Find("[value=save]").Length() != 1 {
		t.Errorf("a review of a description shows %q", page.Find(".notice").Text())
	}
}

// The review says what saving does, with numbers, and leads back to the form
// as it was typed.
func TestPolicyReview(t *testing.T) {
	d := &handlerstest.Backend{PolicyBackend: handlerstest.PolicyBackend{Policy: handlerstest.RankedPolicy(), Tasks: map[string]int{"training": 120, "inference": 5}, ReviewResult: policy.Review{
		Settings: []change.Field{{Path: "Idle compute", Before: "Fair share", After: "First come, first served"}},
		Classes: []policy.ClassChange{
			{Name: "training", Before: new(int32(60)), After: new(int32(70)), Tasks: 1200},
			{Name: "inference", Before: new(int32(90)), Tasks: 5},
			{Name: "new", After: new(int32(1))},
		},
		Reranks: true, Restart: true, Patch: "waitForPodsReady:\n  enable: true\n", Unknown: "Kueue does not answer.",
		Objects: []change.Object{{Kind: "WorkloadPriorityClass", Name: "training-priority", Action: change.Changed, Fields: []change.Field{{Path: "value", Before: "60", After: "70"}}}},
		Pools:   []policy.PoolChange{{Name: "h100", NodesBefore: 1, NodesAfter: 2, Types: []string{"ml.p5.48xlarge"}}},
	}}}
	address := handlerstest.Serve(t, d) + handlerstest.PolicyURL
	_, page := handlerstest.Get(t, address)
	sent := handlerstest.WithValues(handlerstest.ValuesIn(page, "#policy-form"), "class-0-description", "a \"b\" <c>")
	response, page := handlerstest.Post(t, address, handlerstest.WithValues(sent, "action", "review"))
	if response.StatusCode != http.StatusOK {
		t.Fatal(response.Status)
	}
	htmlcheck.Page(t, page)
	for id, want := range map[string]string{
		"#review-settings":        "First come, first served",
		"#review-class-training":  "1,200 tasks",
		"#review-class-inference": "deleted",
		"#review-pools":           "ml.p5.48xlarge",
		"#review-rerank":          "1,200 tasks get their new priority one by one, which takes about 30 to 60 seconds",
		"#review-restart":         "submitting a job fails",
		"#review-patch-text":      "enable: true",
		"#review-objects":         "training-priority",
		".notice":                 "Kueue does not answer.",
	} {
		if text := page.Find(id).Text(); !strings.Contains(text, want) {
			t.Errorf("%s shows %q, want %q", id, text, want)
		}
	}
	if page.Find("input[name=drop]").Length() != 1 || page.Find("#drop-inference").Length() != 1 {
		t.Error("not exactly the class that goes is asked about")
	}

	back := handlerstest.WithValues(handlerstest.ValuesIn(page, "#policy-review"), "action", "back", "drop", "inference")
	_, form := handlerstest.Post(t, address, back)
	again := handlerstest.ValuesIn(form, "#policy-form")
	if got := again["drop"]; !slices.Equal(got, []string{"inference"}) {
		t.Errorf("back in the form, what was ticked is %v", got)
	}
	again.Del("drop")
	for _, values := range []url.Values{again, sent} {
		values.Del("submitted")
		values.Del("action")
	}
	if !reflect.DeepEqual(again, sent) {
		t.Errorf("back in the form:\ngot  %v\nwant %v", again, sent)
	}
}

// One button saves, and shows the review first where saving interrupts tasks, restarts Kueue
// or may do so.
func TestPolicySavedAtOnce(t *testing.T) {
	running := queries.Effects{Listed: []queries.TaskEffect{{Task: &tasks.Task{Name: "a"}}}}
	for name, tc := range map[string]struct {
		review  policy.Review
		preview func(context.Context) (queries.Preview, error)
		asks    bool
	}{
		"no effect":          {preview: func(context.Context) (queries.Preview, error) { return queries.Preview{Started: running}, nil }},
		"preempts":           {preview: func(context.Context) (queries.Preview, error) { return queries.Preview{Preempted: running}, nil }, asks: true},
		"not simulated":      {preview: func(context.Context) (queries.Preview, error) { return queries.Preview{}, errors.New("busy") }, asks: true},
		"no simulation here": {asks: true},
		"restarts Kueue": {
			review: policy.Review{Restart: true}, asks: true,
			preview: func(context.Context) (queries.Preview, error) { return queries.Preview{}, nil },
		},
		"a class that tasks use": {
			review: policy.Review{Classes: []policy.ClassChange{{Name: "inference", Before: new(int32(90)), Tasks: 1}}}, asks: true,
			preview: func(context.Context) (queries.Preview, error) { return queries.Preview{}, nil },
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := &handlerstest.Backend{PolicyBackend: handlerstest.PolicyBackend{Policy: handlerstest.RankedPolicy(), ReviewResult: tc.review}}
			d.PreviewBackend.Previewed = tc.preview
			address := handlerstest.Serve(t, d) + handlerstest.PolicyURL
			_, page := handlerstest.Get(t, address)
			_, page = handlerstest.Post(t, address, handlerstest.WithValues(handlerstest.ValuesIn(page, "#policy-form"), "class-0-weight", "65", "action", "apply"))
			if review, saved := page.Find("#policy-review").Length() == 1, len(d.PolicyBackend.Saved) == 1; review != tc.asks || saved == tc.asks {
				t.Errorf("shows a review: %v, saved: %v; asks: want %v", review, saved, tc.asks)
			}
		})
	}
}

// A deleted class that tasks name is confirmed by name. A class that was added again
// must be confirmed again.
func TestClassesThatAreDropped(t *testing.T) {
	before := handlerstest.RankedPolicy()
	before.Annotations[v1alpha1.AnnotationDropClasses] = "long-gone,training"
	d := &handlerstest.Backend{PolicyBackend: handlerstest.PolicyBackend{Policy: before}}
	address := handlerstest.Serve(t, d) + handlerstest.PolicyURL
	_, page := handlerstest.Get(t, address)
	values := handlerstest.WithValues(handlerstest.ValuesIn(page, "#policy-form"), "action", "save", "class-1-name", "", "class-1-weight", "", "class-1-limit", "", "class-1-longest", "", "class-1-description", "", "drop", "inference")
	if response, _ := handlerstest.Post(t, address, values); response.StatusCode != http.StatusSeeOther {
		t.Fatal(response.Status)
	}
	if got := d.PolicyBackend.Saved[0].Annotations; !reflect.DeepEqual(got, map[string]string{"note": "kept", v1alpha1.AnnotationDropClasses: "inference,long-gone"}) {
		t.Errorf("annotations are %v", got)
	}
	if before.Annotations[v1alpha1.AnnotationDropClasses] != "long-gone,training" {
		t.Error("what the cache shares was changed")
	}
}

// The second of two admins gets both versions, and can keep their own.
func TestPolicyConflict(t *testing.T) {
	d := &handlerstest.Backend{PolicyBackend: handlerstest.PolicyBackend{Policy: handlerstest.RankedPolicy()}}
	address := handlerstest.Serve(t, d) + handlerstest.PolicyURL
	_, page := handlerstest.Get(t, address)
	mine := handlerstest.WithValues(handlerstest.ValuesIn(page, "#policy-form"), "class-0-weight", "65", "gang-timeout", "10m", "drop", "inference")
	theirs := handlerstest.RankedPolicy()
	theirs.ResourceVersion, theirs.Generation = "8", 4
	theirs.Spec.IdleCompute.ShareUnallocated = false
	theirs.Spec.PriorityClasses = append(theirs.Spec.PriorityClasses, v1alpha1.PriorityClass{Name: "late", Weight: new(int32(5))})
	d.PolicyBackend.Policy = theirs

	for _, action := range []string{"review", "save"} {
		response, page := handlerstest.Post(t, address, handlerstest.WithValues(mine, "action", action))
		if response.StatusCode != http.StatusConflict {
			t.Fatalf("%s answers %s", action, response.Status)
		}
		htmlcheck.Page(t, page)
		differs := page.Find("#conflict tbody th").Map(func(_ int, s *goquery.Selection) string { return handlerstest.Text(s) })
		if want := []string{"Lend unallocated compute", "Gang scheduling", "Priority class training", "Priority class late"}; !slices.Equal(differs, want) {
			t.Errorf("what differs is %q, want %q", differs, want)
		}
		if text := page.Find(".notice").Text(); !strings.Contains(text, "4 values differ") {
			t.Errorf("the page shows %q", text)
		}
		response, page = handlerstest.Post(t, address, handlerstest.WithValues(handlerstest.ValuesIn(page, "#conflict-form"), "action", "review"))
		if response.StatusCode != http.StatusOK || page.Find("#policy-review").Length() != 1 {
			t.Fatalf("keeping mine answers %s", response.Status)
		}
		if response, _ := handlerstest.Post(t, address, handlerstest.WithValues(handlerstest.ValuesIn(page, "#policy-review"), "action", "save")); response.StatusCode != http.StatusSeeOther {
			t.Fatalf("saving mine answers %s", response.Status)
		}
		kept := d.PolicyBackend.Saved[len(d.PolicyBackend.Saved)-1]
		if kept.ResourceVersion != "8" || *kept.Spec.PriorityClasses[0].Weight != 65 || kept.Spec.GangScheduling.Timeout.Duration != 10*time.Minute || len(kept.Spec.PriorityClasses) != 2 {
			t.Errorf("saved is %+v", kept)
		}
	}

	d.PolicyBackend.Policy = nil
	response, page := handlerstest.Post(t, address, handlerstest.WithValues(mine, "action", "save"))
	if response.StatusCode != http.StatusConflict || !strings.Contains(page.Find(".notice").Text(), "deleted the cluster policy") {
		t.Errorf("a deleted policy answers %s: %s", response.Status, page.Find(".notice").Text())
	}
	if got := page.Find("[name=resource-version]"); got.Length() != 1 || got.AttrOr("value", "") != "" {
		t.Error("keeping mine would not create it again")
	}
}

// A write of the status is no conflict, however long the form was open; a policy that
// was created again is one.
func TestPolicyStatusIsNoConflict(t *testing.T) {
	for _, action := range []string{"review", "save"} {
		d := &handlerstest.Backend{PolicyBackend: handlerstest.PolicyBackend{Policy: handlerstest.RankedPolicy()}}
		address := handlerstest.Serve(t, d) + handlerstest.PolicyURL
		_, page := handlerstest.Get(t, address)
		mine := handlerstest.WithValues(handlerstest.ValuesIn(page, "#policy-form"), "class-0-weight", "65", "action", action)
		now := handlerstest.RankedPolicy()
		now.ResourceVersion, now.Annotations["note"] = "900", "theirs"
		d.PolicyBackend.Policy = now
		response, page := handlerstest.Post(t, address, mine)
		if response.StatusCode == http.StatusConflict {
			t.Fatalf("%s answers a change of the status with a conflict", action)
		}
		taken := append(d.PolicyBackend.Saved, d.PolicyBackend.Reviewed...)
		last := taken[len(taken)-1]
		if last.ResourceVersion != "900" || *last.Spec.PriorityClasses[0].Weight != 65 || last.Annotations["note"] != "theirs" {
			t.Errorf("%s took %+v", action, last)
		}
		if action == "review" {
			if got := handlerstest.ValuesIn(page, "#policy-review").Get("resource-version"); got != "900" {
				t.Errorf("the review goes on from version %s", got)
			}
		}
		recreated := handlerstest.RankedPolicy()
		recreated.ResourceVersion, recreated.UID = "901", "recreated"
		d.PolicyBackend.Policy = recreated
		if response, _ := handlerstest.Post(t, address, mine); response.StatusCode != http.StatusConflict {
			t.Errorf("%s over a policy that was created again answers %s", action, response.Status)
		}
	}
}
