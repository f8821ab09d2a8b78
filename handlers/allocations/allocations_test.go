package allocations_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/record/revisions"
	"kuota.dev/kuota/governance/spec/change"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Opened and saved with nothing touched, an allocation is what it was, to the
// byte, through the form and through the review.
func TestEditingNothingChangesNothing(t *testing.T) {
	for name, through := range map[string]bool{"saved from the form": false, "saved from the review": true} {
		t.Run(name, func(t *testing.T) {
			d := handlerstest.WithAllocations(handlerstest.FullAllocation())
			address := handlerstest.Serve(t, d)
			reads := func(request string, want int32) {
				t.Helper()
				if got := d.States.Swap(0); got != want {
					t.Errorf("%s: got %d reads of the state, want %d", request, got, want)
				}
			}
			_, page := handlerstest.Get(t, address+handlerstest.EditURL)
			reads("the form", 1)
			htmlcheck.Page(t, page)
			if page.Find("#effect button[value=apply][data-unchanged]").Length() != 1 {
				t.Error("the form offers to save what is not changed")
			}
			values, selector := handlerstest.ValuesIn(page, "#allocation-form"), "#review-form"
			if through {
				values.Set("action", "review")
				response, review := handlerstest.Post(t, address+handlerstest.EditURL, values)
				htmlcheck.Page(t, review)
				reads("the review and the address that it leads to", 2)
				if response.StatusCode != http.StatusOK || review.Find(selector).Length() != 1 {
					t.Fatalf("the review answers %s: %s", response.Status, review.Find("main").Text())
				}
				values = handlerstest.ValuesIn(review, selector)
			}
			values.Set("action", "save")
			response, _ := handlerstest.Post(t, address+handlerstest.EditURL, values)
			reads("the save", 1)
			if response.StatusCode != http.StatusSeeOther || response.Header.Get("Location") != "/policies/allocations/vision?unchanged=true" {
				t.Fatalf("the answer is %s to %s", response.Status, response.Header.Get("Location"))
			}
			if _, page = handlerstest.Get(t, address+response.Header.Get("Location")); !strings.Contains(page.Find(".notice-info").Text(), "Nothing was changed.") {
				t.Errorf("after the save, the page says %q", page.Find(".notice").Text())
			}
			if diff := cmp.Diff(handlerstest.FullAllocation().Spec, d.Updated[0].Spec); diff != "" {
				t.Errorf("the spec changed (-was +is):\n%s", diff)
			}
			if d.User.Name != "ada" || d.Updated[0].ResourceVersion != "7" {
				t.Errorf("saved as %+v from version %s", d.User, d.Updated[0].ResourceVersion)
			}
		})
	}
}

// A page in between keeps all that was typed, rows and pools to be made too.
func TestReviewLeadsBackToWhatWasTyped(t *testing.T) {
	address := handlerstest.Serve(t, handlerstest.WithAllocations()) + handlerstest.NewURL
	typed := handlerstest.AllocationForm("action", "review", "display-name", "<b>Vision</b>", "description", " two  spaces ", "namespace", "research", "ceiling", "true", "default-queue", "true",
		"member-0-kind", "User", "member-0-name", "ada", "row-1-type", "ml.p4d.24xlarge", "row-1-profile", "mig-1g.5gb", "row-1-count", "3",
		"row-2-type", "ml-g5", "row-2-accelerators", "1", "new-pool-0-name", "ml-g5", "new-pool-0-kind", "instanceFamily", "new-pool-0-value", "ml.g5",
		"limit-0-type", "h100", "limit-0-accelerators", "2")
	_, review := handlerstest.Post(t, address, typed)
	values := handlerstest.ValuesIn(review, "#review-form")
	values.Set("action", "back")
	response, page := handlerstest.Post(t, address, values)
	if response.StatusCode != http.StatusOK || page.Find("#form-errors").Length() != 0 {
		t.Fatalf("going back answers %s: %s", response.Status, page.Find("#form-errors").Text())
	}
	again := handlerstest.ValuesIn(page, "#allocation-form")
	for name := range typed {
		if name != "action" && again.Get(name) != typed.Get(name) {
			t.Errorf("%s was %q and is %q", name, typed.Get(name), again.Get(name))
		}
	}
}

// What saving would do is said with its figures, and done only when asked.
func TestReviewShowsWhatWouldChange(t *testing.T) {
	d := handlerstest.WithAllocations(handlerstest.FullAllocation())
	figures := func(gpus resources.Amount) quota.Resources {
		return quota.Resources{catalog.GPU: gpus, catalog.Memory: gpus * catalog.GiB}
	}
	d.ReviewResult = allocations.Review{
		Pools:    []allocations.PoolChange{{Pool: "ml.g6.12xlarge", Before: figures(6), After: figures(2), BorrowingLimitBefore: figures(3), BorrowingLimitAfter: nil}},
		Settings: []change.Field{{Path: "Fair-share weight", Before: "0", After: "10"}},
		Objects:  []change.Object{{Kind: "ClusterQueue", Name: "q", Action: change.Changed, Fields: []change.Field{{Path: "spec.fairSharing.weight", Before: "0", After: "10"}}}},
		Capacity: []allocations.CapacityChange{{Pool: "ml.g6.12xlarge", Resource: catalog.GPU, Physical: 8, Before: 7, After: 9}},
		Unknown:  "Kueue does not answer.",
	}
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+handlerstest.EditURL)
	same := map[string]string{
		"#review-capacity": "GPUs 8 7 9 1 GPU",
		"#review-objects":  "ClusterQueue q Field Now After saving spec.fairSharing.weight 0 10", ".notice-warn": "Kueue does not answer.",
	}
	for _, place := range []struct {
		address    string
		FormValues url.Values
		says       map[string]string
	}{
		{address + handlerstest.NewURL, handlerstest.AllocationForm("action", "review"), map[string]string{ // there is no "now" of a new team
			"#review-quota": "ml.g6.12xlarge GPUs 2 No limit", "#review-settings": "Fair-share weight 10", "#review-form button[value=save]": "Create allocation",
		}},
		{address + handlerstest.EditURL, handlerstest.ValuesIn(page, "#allocation-form"), map[string]string{
			"#review-quota": "ml.g6.12xlarge GPUs 6 2 3 No limit", "#review-settings": "Fair-share weight 0 10", "#review-form button[value=save]": "Save changes",
		}},
	} {
		place.FormValues.Set("action", "review")
		response, page := handlerstest.Post(t, place.address, place.FormValues)
		if response.StatusCode != http.StatusOK || len(d.Created)+len(d.Updated) != 0 {
			t.Fatalf("the review answers %s and saves %d", response.Status, len(d.Created)+len(d.Updated))
		}
		htmlcheck.Page(t, page)
		maps.Copy(place.says, same)
		for selector, want := range place.says {
			if text := handlerstest.Text(page.Find(selector)); !strings.Contains(text, want) {
				t.Errorf("%s: %s shows %q, want %q", place.address, selector, text, want)
			}
		}
	}
}

// Draining is no harmless change: the review counts and names what it stops,
// and says nowhere that nothing is stopped.
func TestReviewShowsWhichTasksStop(t *testing.T) {
	task := func(n int) allocations.Task { return allocations.Task{Kind: "Job", Name: fmt.Sprint("train-", n)} }
	many := make([]allocations.Task, 23)
	for i := range many {
		many[i] = task(i)
	}
	stuck := []allocations.Unadmittable{{Task: allocations.Task{Kind: "Job", Name: "resnet"}, Resource: catalog.GPU, Requests: 8, Max: 6}}
	for name, tc := range map[string]struct {
		review   allocations.Review
		want     []string
		unwanted string
	}{
		"many tasks": {
			allocations.Review{Evicted: many},
			[]string{"23 running tasks will be stopped and requeued. Unsaved work is lost.", "Job train-19 and 3 more"},
			"could not start again",
		},
		"one task": {allocations.Review{Evicted: many[:1]}, []string{"1 running task will be stopped", "Job train-0"}, "more"},
		"tasks that the reader may not see": {
			allocations.Review{Evicted: make([]allocations.Task, 2)}, []string{"2 running tasks will be stopped"}, "and 2 more",
		},
		"a task that cannot come back": {
			allocations.Review{Unadmittable: stuck},
			[]string{"resnet requests 8 GPUs; quota and borrow limit add up to 6. Once stopped, it cannot start again."},
			"will be stopped",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := handlerstest.WithAllocations(handlerstest.FullAllocation())
			d.ReviewResult = tc.review
			address := handlerstest.Serve(t, d) + handlerstest.EditURL
			_, page := handlerstest.Get(t, address)
			values := handlerstest.ValuesIn(page, "#allocation-form")
			values.Set("action", "review")
			_, page = handlerstest.Post(t, address, values)
			htmlcheck.Page(t, page)
			text := handlerstest.Text(page.Find("main .notice"))
			for _, want := range tc.want {
				if !strings.Contains(text, want) {
					t.Errorf("the review shows %q, want %q", text, want)
				}
			}
			if strings.Contains(text, tc.unwanted) {
				t.Errorf("the review shows %q", text)
			}
		})
	}
}

// After a save the page says what becomes of tasks, in each activation.
func TestSavedNoticeIsTrue(t *testing.T) {
	for activation, want := range map[v1alpha1.Activation]string{
		v1alpha1.Active: "Saved. Applies to new admissions; borrowed quota can be reclaimed.",
		v1alpha1.Hold:   "running tasks continue, and none start",
		v1alpha1.Drain:  "running tasks are stopped",
	} {
		a := handlerstest.FullAllocation()
		a.Spec.Activation = activation
		_, page := handlerstest.Get(t, handlerstest.Serve(t, handlerstest.WithAllocations(a))+"/policies/allocations/vision?saved=true")
		if text := handlerstest.Text(page.Find(".notice-ok")); !strings.Contains(text, want) {
			t.Errorf("%s: the page shows %q", activation, text)
		}
	}
}

// While the condition is of the state before a save, the page has the capacity of one state.
func TestCapacityOfOneState(t *testing.T) {
	a := handlerstest.FullAllocation()
	a.Spec.Quota = []v1alpha1.QuotaRow{{InstanceType: "ml.g6.12xlarge", Quantities: v1alpha1.Quantities{Accelerators: new(int64(9))}}}
	a.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionWithinCapacity, Status: metav1.ConditionFalse, Message: "ml.g6.12xlarge: 10 of 8 GPUs allocated; tasks beyond the capacity wait"}}
	_, page := handlerstest.Get(t, handlerstest.Serve(t, handlerstest.WithAllocations(a))+"/policies/allocations/vision")
	if text := handlerstest.Text(page.Find("#detail-status")); !strings.Contains(text, "9 of 8 GPUs") || strings.Contains(text, "10 of 8") || strings.Count(text, "of 8 GPUs") != 1 {
		t.Errorf("the page says %q", text)
	}
}

// After another user's save, the page compares both versions, and the typed values
// can be reviewed against the saved ones.
func TestConflict(t *testing.T) {
	for _, action := range []string{"save", "review"} {
		t.Run(action, func(t *testing.T) {
			d := handlerstest.WithAllocations(handlerstest.FullAllocation())
			address := handlerstest.Serve(t, d) + handlerstest.EditURL
			_, page := handlerstest.Get(t, address)
			values := handlerstest.ValuesIn(page, "#allocation-form")
			values.Set("weight", "77")
			values.Set("action", action)
			d.Change("vision", func(now *v1alpha1.ComputeAllocation) { now.Spec.FairShareWeight, now.Spec.DisplayName = 11, "Theirs" })
			response, conflict := handlerstest.Post(t, address, values)
			htmlcheck.Page(t, conflict)
			if response.StatusCode != http.StatusConflict || len(d.Updated) != 0 {
				t.Fatalf("the answer is %s, %d saved", response.Status, len(d.Updated))
			}
			text := handlerstest.Text(conflict.Find("#conflict tbody tr"))
			if !strings.Contains(text, "Fair-share weight 11 77") || !strings.Contains(text, "Display name Theirs Vision") || conflict.Find("#conflict tbody tr").Length() != 2 {
				t.Errorf("what differs is %q", text)
			}
			if !strings.Contains(conflict.Find(".notice").Text(), "grace@example.com") {
				t.Error("who saved it is not named")
			}
			mine := handlerstest.ValuesIn(conflict, "main form")
			mine.Set("action", "review")
			_, review := handlerstest.Post(t, address, mine)
			kept := handlerstest.ValuesIn(review, "#review-form")
			kept.Set("action", "save")
			if response, page := handlerstest.Post(t, address, kept); response.StatusCode != http.StatusSeeOther {
				t.Fatalf("keeping mine answers %s: %s", response.Status, page.Find("main").Text())
			}
			if got := d.Updated[0].Spec; got.FairShareWeight != 77 || got.DisplayName != "Vision" {
				t.Errorf("saved is %+v", got)
			}
		})
	}
}

// The page of a conflict names the user only if the API server records users:
// otherwise everyone who may change the allocation can write the name.
func TestConflictNamesRecordedUsersOnly(t *testing.T) {
	for _, unrecorded := range []bool{false, true} {
		d := handlerstest.WithAllocations(handlerstest.FullAllocation())
		d.UsersUnrecorded = unrecorded
		address := handlerstest.Serve(t, d) + handlerstest.EditURL
		_, page := handlerstest.Get(t, address)
		values := handlerstest.ValuesIn(page, "#allocation-form")
		values.Set("action", "save")
		d.Change("vision", func(now *v1alpha1.ComputeAllocation) { now.Spec.FairShareWeight = 11 })
		_, conflict := handlerstest.Post(t, address, values)
		text := conflict.Find(".notice").Text()
		if strings.Contains(text, "grace@example.com") == unrecorded || strings.Contains(text, "Someone else") != unrecorded {
			t.Errorf("unrecorded %t: the page shows %q", unrecorded, text)
		}
	}
}

// A write of the status is no conflict.
func TestStatusIsNoConflict(t *testing.T) {
	d := handlerstest.WithAllocations(handlerstest.FullAllocation())
	address := handlerstest.Serve(t, d) + handlerstest.EditURL
	_, page := handlerstest.Get(t, address)
	values := handlerstest.ValuesIn(page, "#allocation-form")
	values.Set("weight", "77")
	values.Set("action", "save")
	d.Touch("vision")
	if response, page := handlerstest.Post(t, address, values); response.StatusCode != http.StatusSeeOther || d.Updated[0].Spec.FairShareWeight != 77 {
		t.Errorf("the answer is %s: %s", response.Status, page.Find("main").Text())
	}
}

// A change that fails shows the form with the typed values.
func TestEditRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		err  *governance.Error
		want int
		says string
	}{
		"wrong":        {&governance.Error{Kind: governance.Invalid, Fields: []governance.FieldError{{Path: "spec.quota[1].pool", Message: "there is no such pool"}}}, 422, "h100, instance type: there is no such pool"},
		"not allowed":  {&governance.Error{Kind: governance.Forbidden, Message: "You may not do this."}, 403, "You may not do this."},
		"out of reach": {&governance.Error{Kind: governance.Unavailable, Message: "The cluster cannot be reached."}, 503, "The cluster cannot be reached."},
		"deleted":      {&governance.Error{Kind: governance.NotFound, Message: "Another user deleted it."}, 404, "Team vision was deleted while you edited it."},
	} {
		for _, action := range []string{"save", "review"} {
			t.Run(name+", "+action, func(t *testing.T) {
				d := handlerstest.WithAllocations(handlerstest.FullAllocation())
				address := handlerstest.Serve(t, d) + handlerstest.EditURL
				_, page := handlerstest.Get(t, address)
				values := handlerstest.ValuesIn(page, "#allocation-form")
				values.Set("description", "kept")
				values.Set("action", action)
				d.WriteError = tc.err
				response, page := handlerstest.Post(t, address, values)
				htmlcheck.Page(t, page)
				if response.StatusCode != tc.want || !strings.Contains(handlerstest.Text(page.Find("#form-errors, #allocation-deleted")), tc.says) {
					t.Errorf("the answer is %s: %q", response.Status, page.Find("#form-errors").Text())
				}
				if got := page.Find("form input[name=description]").AttrOr("value", ""); got != "kept" {
					t.Errorf("the description is %q", got)
				}
			})
		}
	}
}

// The typed values are kept if the team was deleted meanwhile; a team that never
// existed is not found.
func TestEditOfNoTeam(t *testing.T) {
	d := handlerstest.WithAllocations(handlerstest.FullAllocation())
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+handlerstest.EditURL)
	values := handlerstest.ValuesIn(page, "#allocation-form")
	values.Set("description", "kept")
	values.Set("action", "save")
	d.Allocations = nil
	if response, page := handlerstest.Post(t, address+handlerstest.EditURL, values); response.StatusCode != http.StatusNotFound || page.Find("#create-again input[name=description]").AttrOr("value", "") != "kept" {
		t.Errorf("the answer is %s: %s", response.Status, page.Find("main").Text())
	}
	for _, path := range []string{"/policies/allocations/none", "/policies/allocations/none/edit", "/policies/allocations/none/delete"} {
		if response, _ := handlerstest.Get(t, address+path); response.StatusCode != http.StatusNotFound {
			t.Errorf("GET %s answers %s", path, response.Status)
		}
	}
	for _, path := range []string{"/policies/allocations/none/edit", "/policies/allocations/none/delete"} {
		if response, _ := handlerstest.Post(t, address+path, url.Values{"action": {"save"}}); response.StatusCode != http.StatusNotFound {
			t.Errorf("POST %s answers %s", path, response.Status)
		}
	}
}

// An edit of a team that was deleted meanwhile shows who deleted it, when and why, and
// can create it again with the typed values.
func TestEditOfDeletedTeam(t *testing.T) {
	d := handlerstest.WithAllocations(handlerstest.FullAllocation())
	d.Versions = map[revisions.Owner][]revisions.Version{revisions.AllocationOwner("vision"): {{Revision: revisions.Revision{
		Number: 2, Summary: "Deleted", By: "grace@example.com", Reason: "merged into speech", At: time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC),
	}}}}
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+handlerstest.EditURL)
	values := handlerstest.WithValues(handlerstest.ValuesIn(page, "#allocation-form"), "weight", "44", "action", "review")
	d.Allocations = nil
	response, page := handlerstest.Post(t, address+handlerstest.EditURL, values)
	htmlcheck.Page(t, page)
	text := handlerstest.Text(page.Find("#allocation-deleted"))
	for _, want := range []string{"grace@example.com deleted team vision while you edited it.", "Reason: merged into speech"} {
		if response.StatusCode != http.StatusNotFound || !strings.Contains(text, want) {
			t.Errorf("the answer is %s without %q: %s", response.Status, want, text)
		}
	}
	if when := page.Find("#allocation-deleted time").AttrOr("datetime", ""); when != "2026-11-20T09:00:00Z" {
		t.Errorf("it was deleted at %q", when)
	}
	again := page.Find("#create-again")
	response, page = handlerstest.Post(t, address+again.AttrOr("action", ""), handlerstest.WithValues(handlerstest.ValuesIn(page, "#create-again"), "action", "back"))
	htmlcheck.Page(t, page)
	if response.StatusCode != http.StatusOK || response.Request.URL.Path != handlerstest.NewURL {
		t.Fatalf("to create it again leads to %s: %s", response.Request.URL, response.Status)
	}
	response, _ = handlerstest.Post(t, address+handlerstest.NewURL, handlerstest.WithValues(handlerstest.ValuesIn(page, "#allocation-form"), "action", "save"))
	if response.StatusCode != http.StatusSeeOther || len(d.Created) != 1 || d.Created[0].Name != "vision" || d.Created[0].Spec.FairShareWeight != 44 {
		t.Errorf("saved again it answers %s: %+v", response.Status, d.Created)
	}
}

// A reader without write permission gets the page of their team without links to
// change it.
func TestReader(t *testing.T) {
	d := handlerstest.WithAllocations(handlerstest.FullAllocation())
	d.Reader = true
	address := handlerstest.Serve(t, d)
	response, page := handlerstest.Get(t, address+"/policies/allocations/vision")
	htmlcheck.Page(t, page)
	if response.StatusCode != http.StatusOK || page.Find(`a[href$="/edit"], a[href$="/delete"]`).Length() != 0 {
		t.Errorf("the page answers %s with %d ways to change it", response.Status, page.Find(`a[href$="/edit"], a[href$="/delete"]`).Length())
	}
	for _, path := range []string{handlerstest.NewURL, handlerstest.EditURL, "/policies/allocations/vision/delete"} {
		if response, _ := handlerstest.Get(t, address+path); response.StatusCode != http.StatusNotFound {
			t.Errorf("GET %s answers %s", path, response.Status)
		}
		if response, _ := handlerstest.Post(t, address+path, handlerstest.AllocationForm()); response.StatusCode != http.StatusNotFound || len(d.Created)+len(d.Updated)+len(d.Deletions) != 0 {
			t.Errorf("POST %s answers %s", path, response.Status)
		}
	}
}

func TestDetail(t *testing.T) {
	a := handlerstest.FullAllocation()
	a.Status = v1alpha1.ComputeAllocationStatus{
		Namespace: "research", ClusterQueue: "the-cluster-queue", LocalQueue: "the-local-queue",
		Conditions:     []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: 3, Message: "all is applied"}},
		LastCorrection: &v1alpha1.Correction{Object: "ClusterQueue the-cluster-queue", Manager: "kubectl-edit"},
	}
	_, page := handlerstest.Get(t, handlerstest.Serve(t, handlerstest.WithAllocations(a))+"/policies/allocations/vision")
	htmlcheck.Page(t, page)
	text := handlerstest.Text(page.Find("main"))
	for _, want := range []string{
		"Vision", "All that <sees>", "Active", "All is applied", "research", "the-cluster-queue", "the-local-queue", "group vision-team", "user oidc:ada@example.com",
		"ml.g6.12xlarge allocated: 2 accelerators · 1.5 vCPU · 0.976 GiB", "borrows only", "Lending and borrowing Lends and borrows Borrow limit 25 %", "Borrow limit, ml.g5.2xlarge 1 accelerator", "Never", "kubectl-edit", "mig-1g.5gb",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q: %s", want, text)
		}
	}
	if page.Find(`a[href="/policies/allocations/vision/edit"]`).Length() != 1 || page.Find("body").AttrOr("data-stream", "") != "/policies/allocations/vision/events" {
		t.Error("the page leads nowhere, or is not live")
	}
}

func TestDelete(t *testing.T) {
	const address = "/policies/allocations/vision/delete"
	busy := allocations.DeletionPreview{Waiting: 2, Namespace: "research"}
	for range 23 {
		busy.Running = append(busy.Running, allocations.Task{Kind: "Job", Name: "train"})
	}
	for name, tc := range map[string]struct {
		departure        allocations.DeletionPreview
		action, confirm  string
		refusal          error
		status           int
		location, effect string
	}{
		"an idle team":           {action: "delete", confirm: "vision", status: 303, location: "/policies?deleted=vision", effect: "vision by itself"},
		"a busy team":            {departure: busy, action: "delete", confirm: "vision", status: 303, location: "/policies?deleted=vision", effect: "vision by draining"},
		"a busy team, held":      {departure: busy, action: "hold", status: 303, location: "/policies/allocations/vision?held=true", effect: "held"},
		"the name half typed":    {action: "delete", confirm: "visio", status: 422},
		"the name not typed":     {action: "delete", status: 422},
		"no such thing to do":    {action: "x", confirm: "vision", status: 200},
		"a task started since":   {action: "delete", confirm: "vision", status: 422, refusal: &governance.Error{Kind: governance.Invalid, Fields: []governance.FieldError{{Message: "one of its tasks runs"}}}},
		"a user saved since":     {action: "delete", confirm: "vision", status: 409, refusal: &governance.Error{Kind: governance.Conflict, Message: "Another user changed it in between."}},
		"not allowed after all":  {action: "delete", confirm: "vision", status: 403, refusal: &governance.Error{Kind: governance.Forbidden, Message: "You may not do this."}},
		"the cluster is silent":  {action: "delete", confirm: "vision", status: 503, refusal: &governance.Error{Kind: governance.Unavailable, Message: "It cannot be reached."}},
		"deleted meanwhile":      {action: "delete", confirm: "vision", status: 404, refusal: &governance.Error{Kind: governance.NotFound, Message: "It does not exist."}},
		"holding is not allowed": {departure: busy, action: "hold", status: 403, refusal: &governance.Error{Kind: governance.Forbidden, Message: "You may not do this."}},
	} {
		t.Run(name, func(t *testing.T) {
			d := handlerstest.WithAllocations(handlerstest.FullAllocation())
			d.DepartureResult = tc.departure
			base := handlerstest.Serve(t, d)
			_, page := handlerstest.Get(t, base+address)
			htmlcheck.Page(t, page)
			if n := len(tc.departure.Running); n > 0 && !strings.Contains(handlerstest.Text(page.Find("#delete-tasks")), "and 3 more") {
				t.Errorf("the page says of %d tasks %q", n, page.Find("#delete-tasks").Text())
			}
			values := handlerstest.ValuesIn(page, "#delete-form")
			values.Set("confirm", tc.confirm)
			values.Set("action", tc.action)
			d.WriteError = tc.refusal
			response, page := handlerstest.Post(t, base+address, values)
			if response.StatusCode != tc.status || response.Header.Get("Location") != tc.location {
				t.Errorf("the answer is %s to %s: %s", response.Status, response.Header.Get("Location"), page.Find("main").Text())
			}
			effect := strings.Join(d.Deletions, "")
			if len(d.Updated) == 1 && d.Updated[0].Spec.Activation == v1alpha1.Hold {
				effect = "held"
			}
			if effect != tc.effect {
				t.Errorf("done is %q, want %q", effect, tc.effect)
			}
			if tc.status == 422 && page.Find("#confirm").AttrOr("value", "") != tc.confirm {
				t.Error("what was typed is lost")
			}
		})
	}
}
