package allocations_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func adopted() v1alpha1.ComputeAllocation {
	return v1alpha1.ComputeAllocation{
		ObjectMeta: metav1.ObjectMeta{Name: "vision", ResourceVersion: "7", Generation: 3},
		Spec: v1alpha1.ComputeAllocationSpec{
			Activation: v1alpha1.Active, ClusterQueueName: "theirs", LocalQueueName: "jobs", Namespace: "lab", CohortName: ptr.To(""), FairShareWeight: 1,
			QueueingStrategy: "StrictFIFO", CoveredResources: []string{"memory", "cpu"},
			Sharing:    v1alpha1.Sharing{Strategy: v1alpha1.LendAndBorrow, Unlimited: true},
			Preemption: v1alpha1.Preemption{WithinTeam: v1alpha1.PreemptNever, ReclaimWithinCohort: "Never", BorrowWithinCohort: "Never"},
			Quota:      []v1alpha1.QuotaRow{{InstanceType: "ml.g6.12xlarge", Quantities: v1alpha1.Quantities{VCPU: ptr.To(resource.MustParse("8")), Memory: ptr.To(resource.MustParse("36G"))}}},
		},
	}
}

// The form has no input for what describes an existing ClusterQueue, and keeps it.
func TestFormKeepsAdoptedQueue(t *testing.T) {
	d := handlerstest.WithAllocations(adopted())
	address := handlerstest.Serve(t, d) + handlerstest.EditURL
	_, page := handlerstest.Get(t, address)
	values := handlerstest.ValuesIn(page, "#allocation-form")
	values.Set("action", "save")
	if response, _ := handlerstest.Post(t, address, values); response.StatusCode != http.StatusSeeOther || len(d.Updated) != 1 {
		t.Fatalf("the answer is %s, and %d were saved", response.Status, len(d.Updated))
	}
	if diff := cmp.Diff(adopted().Spec, d.Updated[0].Spec); diff != "" {
		t.Errorf("the spec changed (-was +is):\n%s", diff)
	}
}

// Pages show an observed allocation with the reason, and change nothing.
func TestObservedAllocation(t *testing.T) {
	a := adopted()
	a.Spec = v1alpha1.ComputeAllocationSpec{Management: v1alpha1.Observe, ClusterQueueName: "theirs"}
	a.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Observed", ObservedGeneration: 3, Message: "Kuota shows ClusterQueue theirs and does not change it: it has admission checks (budget)"}}
	d := handlerstest.WithAllocations(a)
	address := handlerstest.Serve(t, d)
	const reason = "it has admission checks (budget). To remove the team from Kuota and keep its queue, run kuota release vision."
	for path, selector := range map[string]string{"/policies/allocations/vision": "main", handlerstest.EditURL: "main", "/policies/allocations/vision/hold": "main", "/policies/allocations/vision/delete": "main"} {
		_, page := handlerstest.Get(t, address+path)
		htmlcheck.Page(t, page)
		if text := handlerstest.Text(page.Find(selector)); !strings.Contains(text, reason) {
			t.Errorf("%s lacks the reason: %s", path, text)
		}
		if n := page.Find(`main form[method=post], main a[href$="/edit"], main a[href$="/hold"], main a[href$="/delete"]`).Length(); n > 0 {
			t.Errorf("%s has %d forms and links to forms", path, n)
		}
	}
	if _, page := handlerstest.Get(t, address+"/policies"); page.Find("#allocation-vision .row-actions").Length() != 0 || !strings.Contains(handlerstest.Text(page.Find("#allocation-vision")), "Observed") {
		t.Errorf("the row is %s", handlerstest.Text(page.Find("#allocation-vision")))
	}
	for path, selector := range map[string]string{"/policies": "#allocation-vision", "/policies/allocations/vision": "main"} {
		_, page := handlerstest.Get(t, address+path)
		for _, untrue := range []string{"Lends", "Lower priority", "Never", "50 %"} { // defaults of fields without effect
			if text := handlerstest.Text(page.Find(selector)); strings.Contains(text, untrue) {
				t.Errorf("%s shows %q of a queue that Kuota does not manage: %s", path, untrue, text)
			}
		}
	}
	for _, path := range []string{handlerstest.EditURL, "/policies/allocations/vision/hold", "/policies/allocations/vision/delete"} {
		if response, _ := handlerstest.Post(t, address+path, url.Values{"action": {"save"}, "version": {"7"}, "confirm": {"vision"}}); response.StatusCode != http.StatusForbidden {
			t.Errorf("posting %s answers %s", path, response.Status)
		}
	}
	if len(d.Updated)+len(d.Deletions) > 0 {
		t.Errorf("saved %v and deleted %v", d.Updated, d.Deletions)
	}
}

// The page that deletes an adopted allocation warns that its ClusterQueue is deleted,
// and offers to release it, also while tasks are running.
func TestReleaseAdoptedAllocation(t *testing.T) {
	d := handlerstest.WithAllocations(adopted())
	address := handlerstest.Serve(t, d)
	const path = "/policies/allocations/vision/delete"
	_, page := handlerstest.Get(t, address+path)
	htmlcheck.Page(t, page)
	if text := handlerstest.Text(page.Find("#delete-release")); !strings.Contains(text, "also deletes this ClusterQueue") || !strings.Contains(text, "theirs") {
		t.Errorf("the page does not warn: %s", text)
	}
	values := handlerstest.ValuesIn(page, "#delete-form")
	values.Set("action", "release")
	response, _ := handlerstest.Post(t, address+path, values)
	if diff := cmp.Diff([]string{"vision by releasing"}, d.Deletions); diff != "" || response.Header.Get("Location") != "/policies?released=vision" {
		t.Errorf("the answer is %s to %s, and deletions (-want +got):\n%s", response.Status, response.Header.Get("Location"), diff)
	}

	own := adopted()
	own.Spec.ClusterQueueName = ""
	d = handlerstest.WithAllocations(own)
	address = handlerstest.Serve(t, d)
	_, page = handlerstest.Get(t, address+path)
	if n := page.Find("#delete-release").Length(); n > 0 {
		t.Error("the queue of an allocation that Kuota created can be released")
	}
	if handlerstest.Post(t, address+path, values); len(d.Deletions) > 0 {
		t.Errorf("deleted %v", d.Deletions)
	}
}
