package versions_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/record/revisions"
	"kuota.dev/kuota/governance/spec/change"
	"kuota.dev/kuota/governance/spec/textdiff"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
)

// twoVersions returns the current version and an older one, whose spec the inputs of
// the form cannot represent.
func twoVersions() []revisions.Version {
	old := handlerstest.FullAllocation().Spec
	memory := resource.MustParse("1073741825") // a byte above 1 GiB
	old.Quota[0].Memory = &memory
	old.Activation = v1alpha1.Hold
	old.Quota[1] = v1alpha1.QuotaRow{Pool: "given-up", Quantities: old.Quota[1].Quantities}
	now := handlerstest.FullAllocation().Spec
	when := time.Date(2026, 3, 5, 10, 0, 0, 0, time.UTC)
	return []revisions.Version{
		{
			Revision: revisions.Revision{Number: 4, Generation: 4, At: when, By: "kubectl-edit", ByProgram: true, Summary: "Fair-share weight: 10 → 30", Skipped: 2},
			Newest:   true, Older: 3, HasPrevious: true, Allocation: &now,
			Changes: []change.Field{{Path: "Fair-share weight", Before: "10", After: "30"}},
			Lines:   []textdiff.Line{{Text: "spec:"}, {Text: "  fairShareWeight: 10", Removed: true}, {Text: "  fairShareWeight: 30", Added: true}},
		},
		{
			Revision: revisions.Revision{Number: 3, Generation: 1, At: when, By: "grace@example.com", Reason: "a <b>start</b>", Summary: "Created"},
			Newer:    4, HasPrevious: true, Allocation: &old, Lines: []textdiff.Line{{Text: "spec:", Added: true}},
		},
	}
}

func withVersions(all ...v1alpha1.ComputeAllocation) *handlerstest.Backend {
	d := handlerstest.WithAllocations(all...)
	d.Pools = append(d.Pools, v1alpha1.Pool{Name: "given-up", Match: v1alpha1.PoolMatch{InstanceFamily: "ml.p5"}})
	d.Versions = map[revisions.Owner][]revisions.Version{revisions.AllocationOwner("vision"): twoVersions()}
	d.ReviewResult.Settings = []change.Field{{Path: "Queue", After: "Held"}}
	return d
}

// An allocation's page shows who changed it last, when and why.
func TestAllocationPageShowsItsHistory(t *testing.T) {
	d := withVersions(handlerstest.FullAllocation())
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+"/policies/allocations/vision")
	htmlcheck.Page(t, page)
	var rows []string
	page.Find("#history tbody tr").Each(func(_ int, row *goquery.Selection) { rows = append(rows, handlerstest.Text(row)) })
	want := []string{
		"4 5 Mar 2026, 10:00:00 UTC kubectl-edit field manager; the API server did not record the user Fair-share weight: 10 → 30 2 changes before it are missing: the console was not running.",
		"3 5 Mar 2026, 10:00:00 UTC grace@example.com Created Why: a <b>start</b>",
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if href := page.Find("#history tbody tr a").First().AttrOr("href", ""); href != "/policies/allocations/vision/revisions/4" {
		t.Errorf("a version leads to %s", href)
	}
	d.NoHistory = &governance.Error{Kind: governance.Unavailable}
	if _, page := handlerstest.Get(t, address+"/policies/allocations/vision"); !strings.Contains(handlerstest.Text(page.Find("#history")), "cannot be read now") || page.Find("#detail-quota").Length() == 0 {
		t.Error("without its history, the page is not shown")
	}
}

// A version's page shows old and new in words and in YAML.
func TestVersionPage(t *testing.T) {
	d := withVersions(handlerstest.FullAllocation())
	address := handlerstest.Serve(t, d) + "/policies/allocations/vision/revisions"
	_, page := handlerstest.Get(t, address+"/4")
	htmlcheck.Page(t, page)
	if got := handlerstest.Text(page.Find("#version-changes tbody")); got != "Fair-share weight 10 30" {
		t.Errorf("changes: %s", got)
	}
	if got := handlerstest.Text(page.Find("#version-yaml .yaml")); got != "spec: Removed: − fairShareWeight: 10 Added: + fairShareWeight: 30" {
		t.Errorf("YAML: %s", got)
	}
	if page.Find(`a[href*="restores="]`).Length() != 0 {
		t.Error("the current version can be restored")
	}
	if page.Find(`a[href="/policies/allocations/vision/revisions/3"]`).Length() == 0 {
		t.Error("nothing leads to the older version")
	}
	_, list := handlerstest.Get(t, address)
	htmlcheck.Page(t, list)
	if list.Find("#history tbody tr").Length() != 2 {
		t.Errorf("the list has %s", handlerstest.Text(list.Find("#history")))
	}
	for _, unknown := range []string{"/5", "/0", "/-1", "/03", "/x", "/99999999999999999999"} {
		if response, _ := handlerstest.Get(t, address+unknown); response.StatusCode != http.StatusNotFound {
			t.Errorf("%s answers %s", unknown, response.Status)
		}
	}
	d.Reader = true
	if _, page := handlerstest.Get(t, address+"/3"); page.Find(`a[href*="restores="]`).Length() != 0 {
		t.Error("a reader gets the link to restore")
	}
}

// restored follows the button of a version, reviews and saves what the form then
// holds, and returns the answer to the save.
func restored(t *testing.T, address, version, form string) (*http.Response, *goquery.Document) {
	t.Helper()
	_, page := handlerstest.Get(t, address+version)
	link := page.Find(`a[href*="restores="]`).AttrOr("href", "")
	if link == "" {
		t.Fatal("there is no button to restore")
	}
	response, page := handlerstest.Get(t, address+link)
	if response.StatusCode != http.StatusOK {
		t.Fatalf("the form answers %s: %s", response.Status, handlerstest.Text(page.Selection))
	}
	htmlcheck.Page(t, page)
	if !strings.Contains(handlerstest.Text(page.Find(form+" .notice")), "version 3. Nothing is saved yet") {
		t.Errorf("the form shows %s", handlerstest.Text(page.Find(form+" .notice")))
	}
	action := page.Find(form).AttrOr("action", "")
	values := handlerstest.ValuesIn(page, form)
	values.Set("action", "review")
	response, review := handlerstest.Post(t, address+action, values)
	if response.StatusCode != http.StatusOK {
		t.Fatalf("the review answers %s: %s", response.Status, handlerstest.Text(review.Selection))
	}
	htmlcheck.Page(t, review)
	under := "#review-form"
	if form == "#policy-form" {
		under = "#policy-review"
	}
	values = handlerstest.ValuesIn(review, under)
	if got := values["reason"]; !slices.Equal(got, []string{"Restores version 3"}) {
		t.Errorf("the reason is %q", got)
	}
	values.Set("reason", "  because\nof  this ")
	values.Set("action", "save")
	return handlerstest.Post(t, address+action, values)
}

// The form that opens from a version saves that very spec, through the review.
func TestRestoreAnEarlierVersion(t *testing.T) {
	d := withVersions(handlerstest.FullAllocation())
	want := *d.Versions[revisions.AllocationOwner("vision")][1].Allocation
	response, page := restored(t, handlerstest.Serve(t, d), "/policies/allocations/vision/revisions/3", "#allocation-form")
	if response.StatusCode != http.StatusSeeOther || len(d.Updated) != 1 {
		t.Fatalf("the save answers %s: %s", response.Status, handlerstest.Text(page.Selection))
	}
	got := d.Updated[0]
	if !equality.Semantic.DeepEqual(want, got.Spec) {
		t.Errorf("(-want +got):\n%s", cmp.Diff(want, got.Spec))
	}
	if !equality.Semantic.DeepEqual(want, d.Reviewed.Spec) {
		t.Error("something else was reviewed")
	}
	if reason := got.Annotations[v1alpha1.AnnotationReason]; reason != "because of this" {
		t.Errorf("the reason is %q", reason)
	}
}

// A deleted team is created again from one of its versions.
func TestRestoreADeletedTeam(t *testing.T) {
	d := withVersions()
	owner := revisions.AllocationOwner("vision")
	for i := range d.Versions[owner] {
		d.Versions[owner][i].Deleted = true
	}
	d.Versions[owner][0].Summary = "vision"
	d.Versions[owner][1].Allocation.Quota[1].Pool = "h100"
	want := *d.Versions[owner][1].Allocation
	address := handlerstest.Serve(t, d)
	_, policies := handlerstest.Get(t, address+"/policies")
	if href := policies.Find("#deleted-teams a").AttrOr("href", ""); href != "/policies/allocations/vision/revisions" {
		t.Errorf("a deleted team leads to %q", href)
	}
	response, page := restored(t, address, "/policies/allocations/vision/revisions/3", "#allocation-form")
	if response.StatusCode != http.StatusSeeOther || len(d.Created) != 1 {
		t.Fatalf("the save answers %s: %s", response.Status, handlerstest.Text(page.Selection))
	}
	if got := d.Created[0]; got.Name != "vision" || !equality.Semantic.DeepEqual(want, got.Spec) {
		t.Errorf("(-want +got):\n%s", cmp.Diff(want, got.Spec))
	}
}

func TestRestoreThePolicy(t *testing.T) {
	d := &handlerstest.Backend{}
	old := handlerstest.RankedPolicy().Spec
	d.PolicyBackend.Policy = handlerstest.RankedPolicy()
	d.PolicyBackend.Policy.Spec = v1alpha1.ClusterPolicySpec{TaskPrioritization: v1alpha1.FirstComeFirstServe, IdleCompute: v1alpha1.IdleCompute{Strategy: v1alpha1.IdleFairShare}, Enforcement: v1alpha1.RequireQueue}
	d.Versions = map[revisions.Owner][]revisions.Version{revisions.PolicyOwner(): {
		{Revision: revisions.Revision{Number: 4, By: "ada", Summary: "x"}, Newest: true, Older: 3, Policy: &d.PolicyBackend.Policy.Spec},
		{Revision: revisions.Revision{Number: 3, By: "ada", Summary: "Created"}, Newer: 4, Policy: &old},
	}}
	address := handlerstest.Serve(t, d)
	_, policies := handlerstest.Get(t, address+"/policies")
	if got := handlerstest.Text(policies.Find("#policy-history tbody").Find("tr").Last()); !strings.HasPrefix(got, "3 ") || !strings.HasSuffix(got, "ada Created") {
		t.Errorf("the card shows %q", got)
	}
	response, page := restored(t, address, "/policies/cluster/revisions/3", "#policy-form")
	if response.StatusCode != http.StatusSeeOther || len(d.PolicyBackend.Saved) != 1 {
		t.Fatalf("the save answers %s: %s", response.Status, handlerstest.Text(page.Selection))
	}
	saved := d.PolicyBackend.Saved[0]
	if !equality.Semantic.DeepEqual(old, saved.Spec) {
		t.Errorf("(-want +got):\n%s", cmp.Diff(old, saved.Spec))
	}
	if saved.ResourceVersion != "7" || saved.Annotations[v1alpha1.AnnotationReason] != "because of this" || saved.Annotations["note"] != "kept" {
		t.Errorf("saved over %s with %v", saved.ResourceVersion, saved.Annotations)
	}
}

// A form with a version that does not exist can be saved; its address with
// ?restores= is not found.
func TestRestoreOfNothing(t *testing.T) {
	d := withVersions(handlerstest.FullAllocation())
	address := handlerstest.Serve(t, d)
	for _, from := range []string{"vision:9", "other:3", "vision", ":", "3", "vision:3:3"} {
		if response, _ := handlerstest.Get(t, address+handlerstest.EditURL+"?restores="+url.QueryEscape(from)); response.StatusCode != http.StatusNotFound {
			t.Errorf("%q answers %s", from, response.Status)
		}
	}
	_, page := handlerstest.Get(t, address+handlerstest.EditURL)
	values := handlerstest.ValuesIn(page, "#allocation-form")
	values.Set("restores", "vision:9")
	values.Set("action", "save")
	if response, page := handlerstest.Post(t, address+handlerstest.EditURL, values); response.StatusCode != http.StatusSeeOther {
		t.Errorf("the save answers %s: %s", response.Status, handlerstest.Text(page.Selection))
	}
}
