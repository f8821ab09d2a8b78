package allocations_test

import (
	"net/http"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"

	"github.com/google/go-cmp/cmp"
)

func TestSharesAreSavedAsTyped(t *testing.T) {
	d := &handlerstest.Backend{}
	typed := handlerstest.AllocationForm("share-0-name", "research", "share-0-weight", "15", "share-0-members", "research\r\n user: oidc:ada@example.com\r\n\r\ngroup:cn=x,ou=y", "share-1-name", "", "share-7-name", "nightly", "share-7-weight", "3")
	if response, page := handlerstest.Post(t, handlerstest.Serve(t, d)+handlerstest.NewURL, typed); response.StatusCode != http.StatusSeeOther {
		t.Fatalf("%s: %s", response.Status, page.Find("#form-errors").Text())
	}
	want := []v1alpha1.Share{
		{Name: "research", Weight: 15, Members: []v1alpha1.Member{{Kind: "Group", Name: "research"}, {Kind: "User", Name: "oidc:ada@example.com"}, {Kind: "Group", Name: "cn=x,ou=y"}}},
		{Name: "nightly", Weight: 3},
	}
	if diff := cmp.Diff(want, d.Created[0].Spec.Shares); diff != "" {
		t.Errorf("shares (-want +got):\n%s", diff)
	}
}

// The shares of a scheduling policy replace those of the form, and keep the members of
// shares with the same name.
func TestImportOfASchedulingPolicy(t *testing.T) {
	d := handlerstest.WithAllocations(handlerstest.FullAllocation())
	address := handlerstest.Serve(t, d) + handlerstest.EditURL
	_, page := handlerstest.Get(t, address)
	values := handlerstest.ValuesIn(page, "#allocation-form")
	values.Set("action", "import-batch")
	values.Set("batch", `{"fairsharePolicy": {"shareDecaySeconds": 3600, "computeReservation": 5, "shareDistribution": [{"shareIdentifier": "research", "weightFactor": 1}, {"shareIdentifier": "LOWPRI", "weightFactor": 5}]}}`)
	_, page = handlerstest.Post(t, address, values)
	htmlcheck.Page(t, page)
	for selector, want := range map[string]string{"#share-0-name": "research", "#share-0-weight": "5", "#share-1-name": "lowpri", "#share-1-weight": "1"} {
		if got := page.Find(selector).AttrOr("value", ""); got != want {
			t.Errorf("%s is %q, want %q", selector, got, want)
		}
	}
	if text := page.Find("#share-0-members").Text(); !strings.Contains(text, "user:oidc:ada@example.com") {
		t.Errorf("the members of share research are %q", text)
	}
	notes := handlerstest.Text(page.Find("#batch-notes"))
	for _, want := range []string{"computeReservation: 5 %", "the half-life of usage is 1h", "which does not set it now"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes are %q, want %q", notes, want)
		}
	}
	values.Set("batch", "{")
	if _, page = handlerstest.Post(t, address, values); page.Find("#share-1-name").AttrOr("value", "") != "nightly" || page.Find("#batch-notes li").Length() == 0 {
		t.Error("text that is no policy changes the shares, or has no note")
	}
}

func TestReviewOfShares(t *testing.T) {
	bare := handlerstest.FullAllocation()
	bare.Spec.Shares = nil
	counting := handlerstest.RankedPolicy()
	counting.Spec.AdmissionFairSharing = &v1alpha1.AdmissionFairSharing{}
	for name, tc := range map[string]struct {
		saved   v1alpha1.ComputeAllocation
		policy  *v1alpha1.ClusterPolicy
		pairs   []string
		want    []string
		wantNot string
	}{
		"the first share": {bare, nil, []string{"share-0-name", "a", "share-0-weight", "1", "share-0-members", "x"},
			[]string{"Usage outranks priority inside this team", "preempted first", "vision-localqueue remains", "does not count the usage", "all of the team can use each queue"}, "restarts"},
		"the first share, counted": {bare, counting, []string{"share-0-name", "a", "share-0-weight", "1"},
			[]string{"Usage outranks priority inside this team", "Kueue restarts once. Running tasks continue."}, "does not count the usage"},
		"one more": {handlerstest.FullAllocation(), handlerstest.RankedPolicy(), []string{"share-2-name", "a", "share-2-weight", "1"},
			[]string{"does not enforce queues"}, "does not count the usage"},
		"quota": {handlerstest.FullAllocation(), counting, []string{"share-0-quota", "ml.g5.2xlarge 2"},
			[]string{"gets a quota of its own, in addition to the team's. Its waiting tasks use that"}, "Kueue restarts"},
		"quota of all": {handlerstest.FullAllocation(), counting, []string{"share-0-quota", "ml.g5.2xlarge 2", "share-1-quota", "ml.g5.2xlarge 1"},
			[]string{"ordered by priority and time again", "Kueue restarts once"}, "outranks"},
		"none left": {handlerstest.FullAllocation(), counting, []string{"action", "remove-share:1", "share-0-name", "", "share-0-weight", "", "share-0-members", "", "share-1-name", "", "share-1-weight", ""},
			[]string{"ordered by priority and time again", "queues of removed shares are deleted", "Kueue restarts once"}, "outranks"},
		"no change": {bare, nil, nil, nil, "share"},
	} {
		t.Run(name, func(t *testing.T) {
			d := handlerstest.WithAllocations(tc.saved)
			d.Policy = tc.policy
			address := handlerstest.Serve(t, d) + handlerstest.EditURL
			_, page := handlerstest.Get(t, address)
			values := handlerstest.ValuesIn(page, "#allocation-form")
			for i := 0; i < len(tc.pairs); i += 2 {
				values.Set(tc.pairs[i], tc.pairs[i+1])
			}
			values.Set("action", "review")
			response, page := handlerstest.Post(t, address, values)
			if response.StatusCode != http.StatusOK {
				t.Fatalf("%s: %s", response.Status, page.Find("#form-errors").Text())
			}
			htmlcheck.Page(t, page)
			notes := handlerstest.Text(page.Find("#review-shares"))
			for _, want := range tc.want {
				if !strings.Contains(notes, want) {
					t.Errorf("the review shows %q, want %q", notes, want)
				}
			}
			if tc.wantNot != "" && strings.Contains(notes, tc.wantNot) {
				t.Errorf("the review shows %q, which has %q", notes, tc.wantNot)
			}
		})
	}
}
