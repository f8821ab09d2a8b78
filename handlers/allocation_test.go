package handlers_test

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
	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/change"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/revisions"
	"kuota.dev/kuota/views/htmlcheck"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func number[T any](n T) *T { return &n }

// everything is an allocation with a value for all that there is.
func everything() v1alpha1.ComputeAllocation {
	memory, cpu := resource.MustParse("1000Mi"), resource.MustParse("1500m")
	return v1alpha1.ComputeAllocation{
		ObjectMeta: metav1.ObjectMeta{Name: "vision", ResourceVersion: "7", Generation: 3, Annotations: map[string]string{"kuota.dev/changed-by": "grace@example.com"}},
		Spec: v1alpha1.ComputeAllocationSpec{
			DisplayName: "Vision", Description: "All that <sees>", Activation: v1alpha1.Active, Namespace: "research",
			Members:         []v1alpha1.Member{{Kind: "Group", Name: "vision-team"}, {Kind: "User", Name: "oidc:ada@example.com"}},
			FairShareWeight: 30,
			Quota: []v1alpha1.QuotaRow{
				{InstanceType: "ml.g6.12xlarge", Amounts: v1alpha1.Amounts{Accelerators: number(int64(2)), VCPU: &cpu, Memory: &memory}},
				{Pool: "h100", Amounts: v1alpha1.Amounts{Accelerators: number(int64(4))}},
				{InstanceType: "ml.p4d.24xlarge", Amounts: v1alpha1.Amounts{Partition: &v1alpha1.Partition{Profile: "mig-1g.5gb", Count: 7}}},
				{InstanceType: "ml.c5.2xlarge", Amounts: v1alpha1.Amounts{Instances: number(int64(3))}},
			},
			Sharing: v1alpha1.Sharing{
				Strategy: v1alpha1.LendAndBorrow, BorrowLimitPercent: number(int32(25)),
				BorrowLimits: []v1alpha1.QuotaRow{{InstanceType: "ml.g5.2xlarge", Amounts: v1alpha1.Amounts{Accelerators: number(int64(1))}}},
			},
			Preemption: v1alpha1.Preemption{WithinTeam: v1alpha1.PreemptNever}, NamespaceCeiling: true, DefaultQueue: true,
		},
	}
}

func allocated(all ...v1alpha1.ComputeAllocation) *domain {
	d := &domain{allocations: all}
	d.pools = []v1alpha1.Pool{{Name: "h100", Match: v1alpha1.PoolMatch{Accelerator: "H100"}}}
	return d
}

// said is the text of a part of a page, with a space wherever a reader sees
// one.
func said(part *goquery.Selection) string {
	var texts []string
	part.Find("*").AddSelection(part).Contents().Each(func(_ int, s *goquery.Selection) {
		if goquery.NodeName(s) == "#text" {
			texts = append(texts, strings.Fields(s.Text())...)
		}
	})
	return strings.Join(texts, " ")
}

const editURL = "/policies/allocations/vision/edit"

// typedIn is what a browser would send of the first form of a page.
func typedIn(page *goquery.Document, selector string) url.Values {
	values := url.Values{}
	page.Find(selector).Find("input, select").Each(func(_ int, s *goquery.Selection) {
		kind, name := s.AttrOr("type", "text"), s.AttrOr("name", "")
		if _, checked := s.Attr("checked"); (kind == "radio" || kind == "checkbox") && !checked {
			return
		}
		value := s.AttrOr("value", "")
		if goquery.NodeName(s) == "select" {
			value = s.Find("option[selected]").AttrOr("value", s.Find("option").First().AttrOr("value", ""))
		}
		values.Add(name, value)
	})
	return values
}

// Opened and saved with nothing touched, an allocation is what it was, to the
// byte, through the form and through the review.
func TestEditingNothingChangesNothing(t *testing.T) {
	for name, through := range map[string]bool{"saved from the form": false, "saved from the review": true} {
		t.Run(name, func(t *testing.T) {
			d := allocated(everything())
			address := serve(t, d)
			_, page := get(t, address+editURL)
			htmlcheck.Page(t, page)
			values, selector := typedIn(page, "#allocation-form"), "#review-form"
			if through {
				values.Set("action", "review")
				response, review := post(t, address+editURL, values)
				htmlcheck.Page(t, review)
				if response.StatusCode != http.StatusOK || review.Find(selector).Length() != 1 {
					t.Fatalf("the review answers %s: %s", response.Status, review.Find("main").Text())
				}
				values = typedIn(review, selector)
			}
			values.Set("action", "save")
			response, _ := post(t, address+editURL, values)
			if response.StatusCode != http.StatusSeeOther || response.Header.Get("Location") != "/policies/allocations/vision?saved=true" {
				t.Fatalf("the answer is %s to %s", response.Status, response.Header.Get("Location"))
			}
			if diff := cmp.Diff(everything().Spec, d.updated[0].Spec); diff != "" {
				t.Errorf("the spec changed (-was +is):\n%s", diff)
			}
			if d.as.Name != "ada" || d.updated[0].ResourceVersion != "7" {
				t.Errorf("saved as %+v from version %s", d.as, d.updated[0].ResourceVersion)
			}
		})
	}
}

// A page in between keeps all that was typed, rows and pools to be made too.
func TestReviewLeadsBackToWhatWasTyped(t *testing.T) {
	address := serve(t, allocated()) + newURL
	typed := form("action", "review", "display-name", "<b>Vision</b>", "description", " two  spaces ", "namespace", "research", "ceiling", "true", "default-queue", "true",
		"member-0-kind", "User", "member-0-name", "ada", "row-1-type", "ml.p4d.24xlarge", "row-1-profile", "mig-1g.5gb", "row-1-count", "3",
		"row-2-type", "ml-g5", "row-2-accelerators", "1", "new-pool-0-name", "ml-g5", "new-pool-0-kind", "instanceFamily", "new-pool-0-value", "ml.g5",
		"limit-0-type", "h100", "limit-0-accelerators", "2")
	_, review := post(t, address, typed)
	values := typedIn(review, "#review-form")
	values.Set("action", "back")
	response, page := post(t, address, values)
	if response.StatusCode != http.StatusOK || page.Find("#form-errors").Length() != 0 {
		t.Fatalf("going back answers %s: %s", response.Status, page.Find("#form-errors").Text())
	}
	again := typedIn(page, "#allocation-form")
	for name := range typed {
		if name != "action" && again.Get(name) != typed.Get(name) {
			t.Errorf("%s was %q and is %q", name, typed.Get(name), again.Get(name))
		}
	}
}

// What saving would do is said with its figures, and done only when asked.
func TestReviewSaysWhatWouldChange(t *testing.T) {
	d := allocated(everything())
	figures := func(gpus int64) quota.Resources {
		return quota.Resources{catalog.GPU: gpus, catalog.Memory: gpus * catalog.GiB}
	}
	d.review = allocations.Review{
		Pools:       []allocations.PoolChange{{Pool: "ml.g6.12xlarge", Before: figures(6), After: figures(2), BorrowingLimitBefore: figures(3), BorrowingLimitAfter: nil}},
		Settings:    []change.Field{{Path: "Fair-share weight", Before: "0", After: "10"}},
		Objects:     []change.Object{{Kind: "ClusterQueue", Name: "q", Action: change.Changed, Fields: []change.Field{{Path: "spec.fairSharing.weight", Before: "0", After: "10"}}}},
		Capacity:    []allocations.CapacityChange{{Pool: "ml.g6.12xlarge", Resource: catalog.GPU, Physical: 8, Before: 7, After: 9}},
		QuotaExcess: []allocations.QuotaExcess{{Pool: "ml.g6.12xlarge", Resource: catalog.GPU, Usage: 4, Nominal: 2, Tasks: []allocations.Task{{Namespace: "n", Kind: "Job", Name: "train"}}}},
		Reclaims: []allocations.Reclaim{
			{Pool: "ml.g6.12xlarge", Resource: catalog.GPU, Max: 3, From: []allocations.Borrower{{Team: "speech", Borrowed: 4, Tasks: []allocations.Task{{Kind: "Job", Name: "asr"}}}, {Borrowed: 2, Tasks: make([]allocations.Task, 2)}}},
			{Pool: "h100", Resource: catalog.GPU, Borrow: true, From: []allocations.Borrower{{Team: "robots", Borrowed: 1}}},
		},
		Unknown: "Kueue does not answer.",
	}
	address := serve(t, d)
	_, page := get(t, address+editURL)
	same := map[string]string{
		"#review-capacity": "GPUs 8 7 9 1 GPU", "#review-over": "uses 4, quota 2 GPUs; 2 GPUs can be reclaimed from Job train",
		"#review-reclaims": "ml.g6.12xlarge: up to 3 GPUs from speech, which borrows 4 with Job asr ml.g6.12xlarge: up to 2 GPUs from another team, which borrows 2 with 2 tasks h100: lower-priority tasks of robots, which borrows 1 GPU",
		"#review-objects":  "ClusterQueue q Field Now After saving spec.fairSharing.weight 0 10", ".notice-warn": "Kueue does not answer.",
	}
	for _, place := range []struct {
		address string
		typed   url.Values
		says    map[string]string
	}{
		{address + newURL, form("action", "review"), map[string]string{ // there is no "now" of a new team
			"#review-quota": "ml.g6.12xlarge GPUs 2 No limit", "#review-settings": "Fair-share weight 10", "#review-form button[value=save]": "Create allocation",
		}},
		{address + editURL, typedIn(page, "#allocation-form"), map[string]string{
			"#review-quota": "ml.g6.12xlarge GPUs 6 2 3 No limit", "#review-settings": "Fair-share weight 0 10", "#review-form button[value=save]": "Save changes",
		}},
	} {
		place.typed.Set("action", "review")
		response, page := post(t, place.address, place.typed)
		if response.StatusCode != http.StatusOK || len(d.created)+len(d.updated) != 0 {
			t.Fatalf("looking answers %s and saves %d", response.Status, len(d.created)+len(d.updated))
		}
		htmlcheck.Page(t, page)
		maps.Copy(place.says, same)
		for selector, want := range place.says {
			if text := said(page.Find(selector)); !strings.Contains(text, want) {
				t.Errorf("%s: %s says %q, want %q", place.address, selector, text, want)
			}
		}
	}
}

// Draining is no harmless change: the review counts and names what it stops,
// and says nowhere that nothing is stopped.
func TestReviewSaysWhatIsStopped(t *testing.T) {
	task := func(n int) allocations.Task { return allocations.Task{Kind: "Job", Name: fmt.Sprint("train-", n)} }
	many := make([]allocations.Task, 23)
	for i := range many {
		many[i] = task(i)
	}
	stuck := []allocations.Unadmittable{{Task: allocations.Task{Kind: "Job", Name: "resnet"}, Resource: catalog.GPU, Requests: 8, Max: 6}}
	over := []allocations.QuotaExcess{{Pool: "ml.g6.12xlarge", Resource: catalog.GPU, Usage: 8, Nominal: 4, Tasks: many[:1]}}
	for name, tc := range map[string]struct {
		review   allocations.Review
		want     []string
		unwanted string
	}{
		"many tasks": {
			allocations.Review{Evicted: many},
			[]string{"23 running tasks will be stopped and requeued. Unsaved work is lost.", "Job train-19 and 3 more"},
			"Saving preempts none",
		},
		"one task": {allocations.Review{Evicted: many[:1]}, []string{"1 running task will be stopped", "Job train-0"}, "more"},
		"tasks that the reader may not see": {
			allocations.Review{Evicted: make([]allocations.Task, 2)}, []string{"2 running tasks will be stopped"}, "and 2 more",
		},
		"a task that cannot come back": {
			allocations.Review{Unadmittable: stuck, QuotaExcess: over},
			[]string{"resnet requests 8 GPUs; quota and borrow limit add up to 6. Once stopped, it cannot start again.", "Saving preempts none of them.", "uses 8, quota 4 GPUs; 4 GPUs can be reclaimed from Job train-0"},
			"will be stopped",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := allocated(everything())
			d.review = tc.review
			address := serve(t, d) + editURL
			_, page := get(t, address)
			values := typedIn(page, "#allocation-form")
			values.Set("action", "review")
			_, page = post(t, address, values)
			htmlcheck.Page(t, page)
			text := said(page.Find("main .notice"))
			for _, want := range tc.want {
				if !strings.Contains(text, want) {
					t.Errorf("the review says %q, want %q", text, want)
				}
			}
			if strings.Contains(text, tc.unwanted) {
				t.Errorf("the review says %q", text)
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
		a := everything()
		a.Spec.Activation = activation
		_, page := get(t, serve(t, allocated(a))+"/policies/allocations/vision?saved=true")
		if text := said(page.Find(".notice-ok")); !strings.Contains(text, want) {
			t.Errorf("%s: the page says %q", activation, text)
		}
	}
}

// Somebody else saved first: both versions stand side by side, and what was
// typed goes on to be reviewed against what is saved now.
func TestConflict(t *testing.T) {
	for _, action := range []string{"save", "review"} {
		t.Run(action, func(t *testing.T) {
			d := allocated(everything())
			address := serve(t, d) + editURL
			_, page := get(t, address)
			values := typedIn(page, "#allocation-form")
			values.Set("weight", "77")
			values.Set("action", action)
			d.change("vision", func(now *v1alpha1.ComputeAllocation) { now.Spec.FairShareWeight, now.Spec.DisplayName = 11, "Theirs" })
			response, conflict := post(t, address, values)
			htmlcheck.Page(t, conflict)
			if response.StatusCode != http.StatusConflict || len(d.updated) != 0 {
				t.Fatalf("the answer is %s, %d saved", response.Status, len(d.updated))
			}
			text := said(conflict.Find(".differs"))
			if !strings.Contains(text, "Fair-share weight differs 11 77") || !strings.Contains(text, "Display name differs Theirs Vision") || conflict.Find(".differs").Length() != 2 {
				t.Errorf("what differs is %q", text)
			}
			if !strings.Contains(conflict.Find(".notice").Text(), "grace@example.com") {
				t.Error("who saved it is not named")
			}
			mine := typedIn(conflict, "main form")
			mine.Set("action", "review")
			_, review := post(t, address, mine)
			kept := typedIn(review, "#review-form")
			kept.Set("action", "save")
			if response, page := post(t, address, kept); response.StatusCode != http.StatusSeeOther {
				t.Fatalf("keeping mine answers %s: %s", response.Status, page.Find("main").Text())
			}
			if got := d.updated[0].Spec; got.FairShareWeight != 77 || got.DisplayName != "Vision" {
				t.Errorf("saved is %+v", got)
			}
		})
	}
}

// A controller that writes the status is not somebody else who saved.
func TestStatusIsNoConflict(t *testing.T) {
	d := allocated(everything())
	address := serve(t, d) + editURL
	_, page := get(t, address)
	values := typedIn(page, "#allocation-form")
	values.Set("weight", "77")
	values.Set("action", "save")
	d.touch("vision")
	if response, page := post(t, address, values); response.StatusCode != http.StatusSeeOther || d.updated[0].Spec.FairShareWeight != 77 {
		t.Errorf("the answer is %s: %s", response.Status, page.Find("main").Text())
	}
}

// Whatever stops a change, the form comes back as it was typed.
func TestEditRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		err  *governance.Error
		want int
		says string
	}{
		"wrong":        {&governance.Error{Kind: governance.Invalid, Fields: []governance.FieldError{{Path: "spec.quota[1].pool", Message: "there is no such pool"}}}, 422, "Row 2, instance type: there is no such pool"},
		"not allowed":  {&governance.Error{Kind: governance.Forbidden, Message: "You may not do this."}, 403, "You may not do this."},
		"out of reach": {&governance.Error{Kind: governance.Unavailable, Message: "The cluster cannot be reached."}, 503, "The cluster cannot be reached."},
		"deleted":      {&governance.Error{Kind: governance.NotFound, Message: "Somebody deleted it."}, 404, "Team vision was deleted while you edited it."},
	} {
		for _, action := range []string{"save", "review"} {
			t.Run(name+", "+action, func(t *testing.T) {
				d := allocated(everything())
				address := serve(t, d) + editURL
				_, page := get(t, address)
				values := typedIn(page, "#allocation-form")
				values.Set("description", "kept")
				values.Set("action", action)
				d.refusal = tc.err
				response, page := post(t, address, values)
				htmlcheck.Page(t, page)
				if response.StatusCode != tc.want || !strings.Contains(said(page.Find("#form-errors, #allocation-deleted")), tc.says) {
					t.Errorf("the answer is %s: %q", response.Status, page.Find("#form-errors").Text())
				}
				if got := page.Find("form input[name=description]").AttrOr("value", ""); got != "kept" {
					t.Errorf("the description is %q", got)
				}
			})
		}
	}
}

// A team that was deleted while somebody typed takes nothing typed with it;
// one that never was is not found.
func TestEditOfNoTeam(t *testing.T) {
	d := allocated(everything())
	address := serve(t, d)
	_, page := get(t, address+editURL)
	values := typedIn(page, "#allocation-form")
	values.Set("description", "kept")
	values.Set("action", "save")
	d.allocations = nil
	if response, page := post(t, address+editURL, values); response.StatusCode != http.StatusNotFound || page.Find("#create-again input[name=description]").AttrOr("value", "") != "kept" {
		t.Errorf("the answer is %s: %s", response.Status, page.Find("main").Text())
	}
	for _, path := range []string{"/policies/allocations/none", "/policies/allocations/none/edit", "/policies/allocations/none/delete"} {
		if response, _ := get(t, address+path); response.StatusCode != http.StatusNotFound {
			t.Errorf("GET %s answers %s", path, response.Status)
		}
	}
	for _, path := range []string{"/policies/allocations/none/edit", "/policies/allocations/none/delete"} {
		if response, _ := post(t, address+path, url.Values{"action": {"save"}}); response.StatusCode != http.StatusNotFound {
			t.Errorf("POST %s answers %s", path, response.Status)
		}
	}
}

// Who edits a team that was deleted meanwhile is told by whom, when and why, and
// can create it again with what they typed.
func TestEditOfDeletedTeam(t *testing.T) {
	d := allocated(everything())
	d.versions = map[revisions.Owner][]revisions.Version{revisions.AllocationOwner("vision"): {{Revision: revisions.Revision{
		Number: 2, Summary: "Deleted", By: "grace@example.com", Reason: "merged into speech", At: time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC),
	}}}}
	address := serve(t, d)
	_, page := get(t, address+editURL)
	values := with(typedIn(page, "#allocation-form"), "weight", "44", "action", "review")
	d.allocations = nil
	response, page := post(t, address+editURL, values)
	htmlcheck.Page(t, page)
	text := said(page.Find("#allocation-deleted"))
	for _, want := range []string{"grace@example.com deleted team vision while you edited it.", "Reason: merged into speech"} {
		if response.StatusCode != http.StatusNotFound || !strings.Contains(text, want) {
			t.Errorf("the answer is %s without %q: %s", response.Status, want, text)
		}
	}
	if when := page.Find("#allocation-deleted time").AttrOr("datetime", ""); when != "2026-11-20T09:00:00Z" {
		t.Errorf("it was deleted at %q", when)
	}
	again := page.Find("#create-again")
	response, page = post(t, address+again.AttrOr("action", ""), with(typedIn(page, "#create-again"), "action", "back"))
	htmlcheck.Page(t, page)
	if response.StatusCode != http.StatusOK || response.Request.URL.Path != newURL {
		t.Fatalf("to create it again leads to %s: %s", response.Request.URL, response.Status)
	}
	response, _ = post(t, address+newURL, with(typedIn(page, "#allocation-form"), "action", "save"))
	if response.StatusCode != http.StatusSeeOther || len(d.created) != 1 || d.created[0].Name != "vision" || d.created[0].Spec.FairShareWeight != 44 {
		t.Errorf("saved again it answers %s: %+v", response.Status, d.created)
	}
}

// Who may change nothing sees the page of their team, and no way to change it.
func TestReader(t *testing.T) {
	d := allocated(everything())
	d.reader = true
	address := serve(t, d)
	response, page := get(t, address+"/policies/allocations/vision")
	htmlcheck.Page(t, page)
	if response.StatusCode != http.StatusOK || page.Find(`a[href$="/edit"], a[href$="/delete"]`).Length() != 0 {
		t.Errorf("the page answers %s with %d ways to change it", response.Status, page.Find(`a[href$="/edit"], a[href$="/delete"]`).Length())
	}
	for _, path := range []string{newURL, editURL, "/policies/allocations/vision/delete"} {
		if response, _ := get(t, address+path); response.StatusCode != http.StatusNotFound {
			t.Errorf("GET %s answers %s", path, response.Status)
		}
		if response, _ := post(t, address+path, form()); response.StatusCode != http.StatusNotFound || len(d.created)+len(d.updated)+len(d.deleted) != 0 {
			t.Errorf("POST %s answers %s", path, response.Status)
		}
	}
}

func TestDetail(t *testing.T) {
	a := everything()
	a.Status = v1alpha1.ComputeAllocationStatus{
		Namespace: "research", ClusterQueue: "the-cluster-queue", LocalQueue: "the-local-queue",
		Conditions:     []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: 3, Message: "all is applied"}},
		LastCorrection: &v1alpha1.Correction{Object: "ClusterQueue the-cluster-queue", Manager: "kubectl-edit"},
	}
	_, page := get(t, serve(t, allocated(a))+"/policies/allocations/vision")
	htmlcheck.Page(t, page)
	text := said(page.Find("main"))
	for _, want := range []string{
		"Vision", "All that <sees>", "Active", "All is applied", "research", "the-cluster-queue", "the-local-queue", "group vision-team", "user oidc:ada@example.com",
		"ml.g6.12xlarge allocated: 2 accelerators · 1.5 vCPU · 0.976 GiB", "borrows only", "Lends and borrows up to 25 %", "Borrow limit, ml.g5.2xlarge 1 accelerator", "Never", "kubectl-edit", "mig-1g.5gb",
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
		"somebody saved since":   {action: "delete", confirm: "vision", status: 409, refusal: &governance.Error{Kind: governance.Conflict, Message: "Somebody else changed it in between."}},
		"not allowed after all":  {action: "delete", confirm: "vision", status: 403, refusal: &governance.Error{Kind: governance.Forbidden, Message: "You may not do this."}},
		"the cluster is silent":  {action: "delete", confirm: "vision", status: 503, refusal: &governance.Error{Kind: governance.Unavailable, Message: "It cannot be reached."}},
		"somebody was quicker":   {action: "delete", confirm: "vision", status: 404, refusal: &governance.Error{Kind: governance.NotFound, Message: "It is gone."}},
		"holding is not allowed": {departure: busy, action: "hold", status: 403, refusal: &governance.Error{Kind: governance.Forbidden, Message: "You may not do this."}},
	} {
		t.Run(name, func(t *testing.T) {
			d := allocated(everything())
			d.departure = tc.departure
			base := serve(t, d)
			_, page := get(t, base+address)
			htmlcheck.Page(t, page)
			if n := len(tc.departure.Running); n > 0 && !strings.Contains(said(page.Find("#delete-tasks")), "and 3 more") {
				t.Errorf("the page says of %d tasks %q", n, page.Find("#delete-tasks").Text())
			}
			values := typedIn(page, "#delete-form")
			values.Set("confirm", tc.confirm)
			values.Set("action", tc.action)
			d.refusal = tc.refusal
			response, page := post(t, base+address, values)
			if response.StatusCode != tc.status || response.Header.Get("Location") != tc.location {
				t.Errorf("the answer is %s to %s: %s", response.Status, response.Header.Get("Location"), page.Find("main").Text())
			}
			effect := strings.Join(d.deleted, "")
			if len(d.updated) == 1 && d.updated[0].Spec.Activation == v1alpha1.Hold {
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
