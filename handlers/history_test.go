package handlers_test

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/change"
	"kuota.dev/kuota/governance/revisions"
	"kuota.dev/kuota/views/htmlcheck"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
)

// revisionDomain is the part of the domain in memory that keeps versions.
type revisionDomain struct {
	versions  map[revisions.Owner][]revisions.Version // the newest first
	noHistory error                                   // what every question answers, if anything
	asked     []revisions.Owner
}

func (d *revisionDomain) History(_ context.Context, _ governance.User, of revisions.Owner) ([]revisions.Revision, error) {
	d.asked = append(d.asked, of)
	var all []revisions.Revision
	for _, v := range d.versions[of] {
		all = append(all, v.Revision)
	}
	return all, d.noHistory
}

func (d *revisionDomain) Version(_ context.Context, _ governance.User, of revisions.Owner, number int64) (revisions.Version, error) {
	i := slices.IndexFunc(d.versions[of], func(v revisions.Version) bool { return v.Number == number })
	if d.noHistory != nil || i < 0 {
		return revisions.Version{}, &governance.Error{Kind: governance.NotFound, Message: "Version is not kept."}
	}
	return d.versions[of][i], nil
}

func (d *revisionDomain) DeletedTeams([]v1alpha1.ComputeAllocation) []string {
	var teams []string
	for of, versions := range d.versions {
		if of != revisions.PolicyOwner() && versions[0].Deleted {
			teams = append(teams, strings.Fields(versions[0].Summary)[0])
		}
	}
	return teams
}

// twoVersions are one that is in force and one before, with a spec that the form
// cannot write as it stands.
func twoVersions() []revisions.Version {
	old := everything().Spec
	memory := resource.MustParse("1073741825") // a byte above 1 GiB
	old.Quota[0].Memory = &memory
	old.Activation = v1alpha1.Hold
	old.Quota[1] = v1alpha1.QuotaRow{Pool: "given-up", Amounts: old.Quota[1].Amounts}
	now := everything().Spec
	when := time.Date(2026, 3, 5, 10, 0, 0, 0, time.UTC)
	return []revisions.Version{
		{
			Revision: revisions.Revision{Number: 4, Generation: 4, At: when, By: "kubectl-edit", ByProgram: true, Summary: "Fair-share weight: 10 → 30", Skipped: 2},
			Newest:   true, Older: 3, HasPrevious: true, Allocation: &now,
			Changes: []change.Field{{Path: "Fair-share weight", Before: "10", After: "30"}},
			Lines:   []revisions.Line{{Text: "spec:"}, {Text: "  fairShareWeight: 10", Removed: true}, {Text: "  fairShareWeight: 30", Added: true}},
		},
		{
			Revision: revisions.Revision{Number: 3, Generation: 1, At: when, By: "grace@example.com", Reason: "a <b>start</b>", Summary: "Created"},
			Newer:    4, HasPrevious: true, Allocation: &old, Lines: []revisions.Line{{Text: "spec:", Added: true}},
		},
	}
}

func withVersions(all ...v1alpha1.ComputeAllocation) *domain {
	d := allocated(all...)
	d.pools = append(d.pools, v1alpha1.Pool{Name: "given-up", Match: v1alpha1.PoolMatch{InstanceFamily: "ml.p5"}})
	d.versions = map[revisions.Owner][]revisions.Version{revisions.AllocationOwner("vision"): twoVersions()}
	d.review.Settings = []change.Field{{Path: "Queue", After: "Held"}}
	return d
}

// An allocation's page tells who changed it last, when and why.
func TestAllocationPageTellsItsHistory(t *testing.T) {
	d := withVersions(everything())
	address := serve(t, d)
	_, page := get(t, address+"/policies/allocations/vision")
	htmlcheck.Page(t, page)
	var rows []string
	page.Find("#history tbody tr").Each(func(_ int, row *goquery.Selection) { rows = append(rows, said(row)) })
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
	d.noHistory = &governance.Error{Kind: governance.Unavailable}
	if _, page := get(t, address+"/policies/allocations/vision"); !strings.Contains(said(page.Find("#history")), "cannot be read now") || page.Find("#detail-quota").Length() == 0 {
		t.Error("without its history, the page is not shown")
	}
}

// A version's page shows old and new in words and in YAML.
func TestVersionPage(t *testing.T) {
	d := withVersions(everything())
	address := serve(t, d) + "/policies/allocations/vision/revisions"
	_, page := get(t, address+"/4")
	htmlcheck.Page(t, page)
	if got := said(page.Find("#version-changes tbody")); got != "Fair-share weight 10 30" {
		t.Errorf("changes: %s", got)
	}
	if got := said(page.Find("#version-yaml .yaml")); got != "spec: Gone: − fairShareWeight: 10 New: + fairShareWeight: 30" {
		t.Errorf("YAML: %s", got)
	}
	if page.Find(`a[href*="restores="]`).Length() != 0 {
		t.Error("the version that is in force can be restored")
	}
	if page.Find(`a[href="/policies/allocations/vision/revisions/3"]`).Length() == 0 {
		t.Error("nothing leads to the older version")
	}
	_, list := get(t, address)
	htmlcheck.Page(t, list)
	if list.Find("#history tbody tr").Length() != 2 {
		t.Errorf("the list has %s", said(list.Find("#history")))
	}
	for _, unknown := range []string{"/5", "/0", "/-1", "/03", "/x", "/99999999999999999999"} {
		if response, _ := get(t, address+unknown); response.StatusCode != http.StatusNotFound {
			t.Errorf("%s answers %s", unknown, response.Status)
		}
	}
	d.reader = true
	if _, page := get(t, address+"/3"); page.Find(`a[href*="restores="]`).Length() != 0 {
		t.Error("who may change nothing is shown the way to restore")
	}
}

// restored follows the button of a version, reviews and saves what the form then
// holds, and returns the answer to the save.
func restored(t *testing.T, address, version, form string) (*http.Response, *goquery.Document) {
	t.Helper()
	_, page := get(t, address+version)
	link := page.Find(`a[href*="restores="]`).AttrOr("href", "")
	if link == "" {
		t.Fatal("there is no button to restore")
	}
	response, page := get(t, address+link)
	if response.StatusCode != http.StatusOK {
		t.Fatalf("the form answers %s: %s", response.Status, said(page.Selection))
	}
	htmlcheck.Page(t, page)
	if !strings.Contains(said(page.Find(form+" .notice")), "version 3. Nothing is saved yet") {
		t.Errorf("the form says %s", said(page.Find(form+" .notice")))
	}
	action := page.Find(form).AttrOr("action", "")
	values := typedIn(page, form)
	values.Set("action", "review")
	response, review := post(t, address+action, values)
	if response.StatusCode != http.StatusOK {
		t.Fatalf("the review answers %s: %s", response.Status, said(review.Selection))
	}
	htmlcheck.Page(t, review)
	under := "#review-form"
	if form == "#policy-form" {
		under = "#policy-review"
	}
	values = typedIn(review, under)
	if got := values["reason"]; !slices.Equal(got, []string{"Restores version 3"}) {
		t.Errorf("the reason is %q", got)
	}
	values.Set("reason", "  because\nof  this ")
	values.Set("action", "save")
	return post(t, address+action, values)
}

// The form that opens from a version saves that very spec, through the review.
func TestRestoreAnEarlierVersion(t *testing.T) {
	d := withVersions(everything())
	want := *d.versions[revisions.AllocationOwner("vision")][1].Allocation
	response, page := restored(t, serve(t, d), "/policies/allocations/vision/revisions/3", "#allocation-form")
	if response.StatusCode != http.StatusSeeOther || len(d.updated) != 1 {
		t.Fatalf("the save answers %s: %s", response.Status, said(page.Selection))
	}
	got := d.updated[0]
	if !equality.Semantic.DeepEqual(want, got.Spec) {
		t.Errorf("(-want +got):\n%s", cmp.Diff(want, got.Spec))
	}
	if !equality.Semantic.DeepEqual(want, d.reviewed.Spec) {
		t.Error("something else was reviewed")
	}
	if reason := got.Annotations[v1alpha1.AnnotationReason]; reason != "because of this" {
		t.Errorf("the reason is %q", reason)
	}
}

// A team that was deleted is made again with a version of its own.
func TestRestoreADeletedTeam(t *testing.T) {
	d := withVersions()
	owner := revisions.AllocationOwner("vision")
	for i := range d.versions[owner] {
		d.versions[owner][i].Deleted = true
	}
	d.versions[owner][0].Summary = "vision"
	d.versions[owner][1].Allocation.Quota[1].Pool = "h100"
	want := *d.versions[owner][1].Allocation
	address := serve(t, d)
	_, policies := get(t, address+"/policies")
	if href := policies.Find("#deleted-teams a").AttrOr("href", ""); href != "/policies/allocations/vision/revisions" {
		t.Errorf("a deleted team leads to %q", href)
	}
	response, page := restored(t, address, "/policies/allocations/vision/revisions/3", "#allocation-form")
	if response.StatusCode != http.StatusSeeOther || len(d.created) != 1 {
		t.Fatalf("the save answers %s: %s", response.Status, said(page.Selection))
	}
	if got := d.created[0]; got.Name != "vision" || !equality.Semantic.DeepEqual(want, got.Spec) {
		t.Errorf("(-want +got):\n%s", cmp.Diff(want, got.Spec))
	}
}

func TestRestoreThePolicy(t *testing.T) {
	d := &domain{}
	old := ranked().Spec
	d.policies.policy = ranked()
	d.policies.policy.Spec = v1alpha1.ClusterPolicySpec{TaskPrioritization: v1alpha1.FirstComeFirstServe, IdleCompute: v1alpha1.IdleCompute{Strategy: v1alpha1.IdleFairShare}, Enforcement: v1alpha1.RequireQueue}
	d.versions = map[revisions.Owner][]revisions.Version{revisions.PolicyOwner(): {
		{Revision: revisions.Revision{Number: 4, By: "ada", Summary: "x"}, Newest: true, Older: 3, Policy: &d.policies.policy.Spec},
		{Revision: revisions.Revision{Number: 3, By: "ada", Summary: "Created"}, Newer: 4, Policy: &old},
	}}
	address := serve(t, d)
	_, policies := get(t, address+"/policies")
	if got := said(policies.Find("#policy-history tbody").Find("tr").Last()); !strings.HasPrefix(got, "3 ") || !strings.HasSuffix(got, "ada Created") {
		t.Errorf("the card tells %q", got)
	}
	response, page := restored(t, address, "/policies/cluster/revisions/3", "#policy-form")
	if response.StatusCode != http.StatusSeeOther || len(d.policies.saved) != 1 {
		t.Fatalf("the save answers %s: %s", response.Status, said(page.Selection))
	}
	saved := d.policies.saved[0]
	if !equality.Semantic.DeepEqual(old, saved.Spec) {
		t.Errorf("(-want +got):\n%s", cmp.Diff(old, saved.Spec))
	}
	if saved.ResourceVersion != "7" || saved.Annotations[v1alpha1.AnnotationReason] != "because of this" || saved.Annotations["note"] != "kept" {
		t.Errorf("saved over %s with %v", saved.ResourceVersion, saved.Annotations)
	}
}

// A form that names a version which is not there is still a form, and one that
// asks for it is not found.
func TestRestoreOfNothing(t *testing.T) {
	d := withVersions(everything())
	address := serve(t, d)
	for _, from := range []string{"vision:9", "other:3", "vision", ":", "3", "vision:3:3"} {
		if response, _ := get(t, address+editURL+"?restores="+url.QueryEscape(from)); response.StatusCode != http.StatusNotFound {
			t.Errorf("%q answers %s", from, response.Status)
		}
	}
	_, page := get(t, address+editURL)
	values := typedIn(page, "#allocation-form")
	values.Set("restores", "vision:9")
	values.Set("action", "save")
	if response, page := post(t, address+editURL, values); response.StatusCode != http.StatusSeeOther {
		t.Errorf("the save answers %s: %s", response.Status, said(page.Selection))
	}
}
