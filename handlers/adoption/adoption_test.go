package adoption_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/imports/adoption"
	"kuota.dev/kuota/handlers/handlerstest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const address = "/policies/adopt"

func allocation(name, queue string, management v1alpha1.Management) *v1alpha1.ComputeAllocation {
	return &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ComputeAllocationSpec{ClusterQueueName: queue, Management: management}}
}

// backend returns one ClusterQueue of each verdict.
func backend() *handlerstest.Backend {
	d := handlerstest.WithAllocations()
	d.AdoptionBackend.Existing = adoption.Plan{
		Queues: []adoption.Queue{
			{Name: "physics", Verdict: adoption.Manage, Allocation: allocation("physics", "physics", ""), Notes: []string{"the LocalQueues night stay as they are"}},
			{Name: "speech.example", Verdict: adoption.Observe, Allocation: allocation("speech-example", "speech.example", v1alpha1.Observe), Reasons: []string{"it has admission checks (budget)"}},
			{Name: "unused", Verdict: adoption.Refuse, Reasons: []string{"no LocalQueue uses it"}},
			{Name: "seen", Verdict: adoption.Observe, Team: "seen", Reasons: []string{"cohort a is nested in cohort b"}},
		},
		Policy:          &v1alpha1.ClusterPolicy{Spec: v1alpha1.ClusterPolicySpec{CohortName: "labs"}},
		PriorityClasses: []adoption.PriorityClass{{Name: "gold", Verdict: adoption.Observe, Reason: "its value is 1000"}},
		KueueChanges:    "+ DisableWaitForPodsReady",
	}
	return d
}

func TestPlan(t *testing.T) {
	server := handlerstest.Serve(t, backend())
	response, page := handlerstest.Get(t, server+address)
	if response.StatusCode != http.StatusOK {
		t.Fatalf("status %d", response.StatusCode)
	}
	for id, want := range map[string]string{
		"queue-physics": "physics Manage The LocalQueues night stay as they are.",
		"queue-unused":  "unused Refuse It cannot be adopted. No LocalQueue uses it.",
		"queue-seen":    "seen Observe Team seen observes it already. Cohort a is nested in cohort b.",
	} {
		if got := handlerstest.Text(page.Find("#" + id)); got != want {
			t.Errorf("row %s: got %q, want %q", id, got, want)
		}
	}
	if n := page.Find("input[name=queue]").Length(); n != 2 {
		t.Errorf("%d ClusterQueues can be selected, want 2", n)
	}
	if n := page.Find("input[name=queue][checked]").Length(); n != 1 {
		t.Errorf("%d ClusterQueues are selected, want the one that would be managed", n)
	}
	if _, list := handlerstest.Get(t, server+"/policies"); list.Find(`a[href="`+address+`"]`).Length() != 1 {
		t.Error("the list of allocations does not link to the adoption")
	}
}

func TestReviewAndAdopt(t *testing.T) {
	d := backend()
	server := handlerstest.Serve(t, d)
	_, page := handlerstest.Post(t, server+address, url.Values{"action": {"review"}, "queue": {"physics", "speech.example"}})
	text := handlerstest.Text(page.Find("main"))
	for _, want := range []string{"1 managed allocation: physics.", "1 observed allocation: speech.example.", "DisableWaitForPodsReady", "gold: its value is 1000", "cohortName: labs", "management: Observe"} {
		if !strings.Contains(text, want) {
			t.Errorf("the review lacks %q:\n%s", want, text)
		}
	}
	if len(d.AdoptionBackend.Adopted) > 0 {
		t.Fatal("the review adopted something")
	}
	values := handlerstest.ValuesIn(page, "#adoption-form")
	values.Set("action", "adopt")
	values.Set("reason", "moving in")
	d.AdoptionBackend.Failing = map[string]error{"speech.example": &governance.Error{Kind: governance.Invalid, Message: "The API server rejected it.", Fields: []governance.FieldError{{Message: "too long"}}}}
	_, page = handlerstest.Post(t, server+address, values)
	if diff := cmp.Diff([]string{"physics", "speech.example"}, d.AdoptionBackend.Adopted); diff != "" || d.AdoptionBackend.Reason != "moving in" {
		t.Errorf("adopted (-want +got) for %q:\n%s", d.AdoptionBackend.Reason, diff)
	}
	text = handlerstest.Text(page.Find("main"))
	for _, want := range []string{"Allocation physics was created.", "Some ClusterQueues were not adopted.", "speech.example: The API server rejected it. Too long."} {
		if !strings.Contains(text, want) {
			t.Errorf("the result lacks %q:\n%s", want, text)
		}
	}
}

// A review names each ClusterQueue that the API server would reject, and offers no adoption.
func TestReviewOfRejected(t *testing.T) {
	d := backend()
	d.AdoptionBackend.Failing = map[string]error{"physics": &governance.Error{Kind: governance.Invalid, Message: "The API server rejected it.", Fields: []governance.FieldError{{Message: "you may not"}}}}
	response, page := handlerstest.Post(t, handlerstest.Serve(t, d)+address, url.Values{"action": {"review"}, "queue": {"physics", "speech.example"}})
	text := handlerstest.Text(page.Find("main"))
	if want := "Some ClusterQueues cannot be adopted. physics: The API server rejected it. You may not."; response.StatusCode != http.StatusConflict || !strings.Contains(text, want) || page.Find("[value=adopt]").Length() > 0 {
		t.Errorf("status %d, want %q and no button to adopt:\n%s", response.StatusCode, want, text)
	}
	if page.Find("#queue-physics input[checked]").Length() != 1 || len(d.AdoptionBackend.Adopted) > 0 {
		t.Errorf("the selection is lost, or %v were adopted", d.AdoptionBackend.Adopted)
	}
}

func TestInvalidSelections(t *testing.T) {
	d := backend()
	server := handlerstest.Serve(t, d)
	for name, c := range map[string]struct {
		values url.Values
		want   string
	}{
		"nothing":                  {url.Values{"action": {"review"}}, "Select at least one ClusterQueue."},
		"one that is refused":      {url.Values{"action": {"adopt"}, "queue": {"unused"}}, "unused: it cannot be adopted: no LocalQueue uses it"},
		"one that was adopted":     {url.Values{"action": {"review"}, "queue": {"gone"}}, "gone: there is no ClusterQueue of this name that Kuota does not manage"},
		"one that is observed now": {url.Values{"action": {"adopt"}, "queue": {"seen"}}, "seen: the allocation of team seen observes it already"},
	} {
		t.Run(name, func(t *testing.T) {
			_, page := handlerstest.Post(t, server+address, c.values)
			if text := handlerstest.Text(page.Find("main")); !strings.Contains(text, c.want) || page.Find("#adoption-queues").Length() != 1 {
				t.Errorf("got %s, want %q and the plan", text, c.want)
			}
		})
	}
	if len(d.AdoptionBackend.Adopted) > 0 {
		t.Errorf("adopted %v", d.AdoptionBackend.Adopted)
	}
}

// A user who may not adopt gets no page and no link.
func TestAdoptionIsForAdmins(t *testing.T) {
	d := backend()
	d.AdoptionBackend.Reader, d.Reader, d.PolicyBackend.Reader = true, true, true
	server := handlerstest.Serve(t, d)
	if response, _ := handlerstest.Get(t, server+address); response.StatusCode != http.StatusNotFound {
		t.Errorf("a reader gets the page: %s", response.Status)
	}
	if response, _ := handlerstest.Post(t, server+address, url.Values{"action": {"adopt"}, "queue": {"physics"}}); response.StatusCode != http.StatusNotFound {
		t.Errorf("a reader adopts: %s", response.Status)
	}
	if _, page := handlerstest.Get(t, server+"/policies"); page.Find(`a[href="`+address+`"]`).Length() != 0 {
		t.Error("a reader gets the link")
	}
}
