package allocations_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/record/revisions"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// someTeams has n teams that are ready, with quota in the pool ml.g6.12xlarge and every tenth in
// h100. Those whose number ends in 7 are on hold.
func someTeams(n int) *handlerstest.Backend {
	var all []v1alpha1.ComputeAllocation
	for i := range n {
		cpu := v1alpha1.QuotaRow{InstanceType: "ml.g6.12xlarge", Quantities: v1alpha1.Quantities{Accelerators: new(int64(2))}}
		a := v1alpha1.ComputeAllocation{Spec: v1alpha1.ComputeAllocationSpec{Activation: v1alpha1.Active, DisplayName: fmt.Sprint("Research ", i), FairShareWeight: int32(i % 101), Quota: []v1alpha1.QuotaRow{cpu}, Sharing: v1alpha1.Sharing{Strategy: v1alpha1.LendAndBorrow}, Preemption: v1alpha1.Preemption{WithinTeam: v1alpha1.PreemptLowerPriority}}}
		a.Name, a.ResourceVersion, a.Generation = fmt.Sprintf("team-%04d", i), "7", 3
		a.UID = "uid-" + "1234567890-1234567890-"
		a.Status.Namespace = "hyperpod-ns-" + a.Name
		a.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: 3}}
		if i%10 == 7 {
			a.Spec.Activation = v1alpha1.Hold
		}
		if i%10 == 0 {
			a.Spec.Quota = append(a.Spec.Quota, v1alpha1.QuotaRow{Pool: "h100", Quantities: v1alpha1.Quantities{Accelerators: new(int64(4))}})
		}
		all = append(all, a)
	}
	return handlerstest.WithAllocations(all...)
}

// body returns what an address answers.
func body(t *testing.T, address string) string {
	t.Helper()
	response, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return handlerstest.ReadAll(t, response)
}

// A thousand teams are on ten pages, each of which is small, and are found by search and filters.
// What is over capacity counts all of them.
func TestThousandTeams(t *testing.T) {
	const largest = 150_000
	d := someTeams(1000)
	d.PolicyBackend.Policy, d.Versions = handlerstest.RankedPolicy(), map[revisions.Owner][]revisions.Version{}
	for i := range 1000 {
		d.Versions[revisions.AllocationOwner(fmt.Sprint("former-", i))] = []revisions.Version{{Deleted: true, Revision: revisions.Revision{Number: 1, Summary: fmt.Sprintf("former-%d deleted", i)}}}
	}
	address := handlerstest.Serve(t, d)
	began := time.Now()
	text := body(t, address+"/policies")
	t.Logf("%d bytes in %s", len(text), time.Since(began))
	if len(text) > largest {
		t.Errorf("the page has %d bytes, want at most %d", len(text), largest)
	}
	for path, want := range map[string]struct {
		first, note, pager string
		rows               int
	}{
		"":                                     {"team-0000", "1,000 teams", "1–100 of 1,000", 100},
		"?page=10":                             {"team-0900", "1,000 teams", "901–1,000 of 1,000", 100},
		"?page=99&sort=name&order=desc":        {"team-0099", "1,000 teams", "901–1,000 of 1,000", 100},
		"?sort=weight&order=desc":              {"team-0100", "1,000 teams", "1–100 of 1,000", 100},
		"?sort=quota":                          {"team-0000", "1,000 teams", "1–100 of 1,000", 100},
		"?q=EAM-012":                           {"team-0120", "10 of 1,000 teams", "", 10},
		"?q=ns-team-0999":                      {"team-0999", "1 of 1,000 teams", "", 1},
		"?q=research+42":                       {"team-0042", "11 of 1,000 teams", "", 11},
		"?q=H10":                               {"team-0000", "100 of 1,000 teams", "", 100},
		"?pool=h100&status=Active&page=2":      {"team-0000", "100 of 1,000 teams", "", 100},
		"?status=Held&sort=status&order=asc":   {"team-0007", "100 of 1,000 teams", "", 100},
		"?status=Held&q=team-00&sort=name&a=b": {"team-0007", "10 of 1,000 teams", "", 10},
	} {
		_, page := handlerstest.Get(t, address+"/policies"+path)
		htmlcheck.Page(t, page)
		rows := page.Find("#allocations-table tbody tr")
		if first := rows.First().Find("a.name").Text(); rows.Length() != want.rows || first != want.first {
			t.Errorf("%s: got %d rows from %s, want %d from %s", path, rows.Length(), first, want.rows, want.first)
		}
		if note, pager := handlerstest.Text(page.Find("#allocations .note")), handlerstest.Text(page.Find(".pager span")); note != want.note || pager != want.pager {
			t.Errorf("%s: got %q and %q, want %q and %q", path, note, pager, want.note, want.pager)
		}
		if over := handlerstest.Text(page.Find("#pools-over")); !strings.Contains(over, "2,000 of 8 GPUs") {
			t.Errorf("%s: over capacity is %q", path, over)
		}
	}
	for path, want := range map[string]string{"": "and 950 more", "?q=Former-99": "former-99 "} {
		_, page := handlerstest.Get(t, address+"/policies"+path)
		if text := handlerstest.Text(page.Find("#deleted-teams")); !strings.Contains(text+" ", want) {
			t.Errorf("%s: deleted teams are %q, want %q", path, text, want)
		}
	}
	_, page := handlerstest.Get(t, address+"/policies?q=nobody&sort=weight")
	if text := handlerstest.Text(page.Find("#allocations")); !strings.Contains(text, "No matching allocations") || page.Find(`#allocations a[href="/policies?sort=weight"]`).Length() != 1 {
		t.Errorf("without a match: got %q", text)
	}
	_, page = handlerstest.Get(t, address+"/policies?status=Held&q=team-00&page=1")
	if stream := page.Find("body").AttrOr("data-stream", ""); stream != "/policies/events?page=1&q=team-00&status=Held" {
		t.Errorf("the stream is %q", stream)
	}
	options := page.Find("#status option").Map(func(_ int, o *goquery.Selection) string { return o.Text() })
	if diff := cmp.Diff([]string{"All statuses", "Active", "Held"}, options); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
}

// The files have all that the filters select.
func TestAllocationFiles(t *testing.T) {
	address := handlerstest.Serve(t, someTeams(300))
	csv := strings.Split(strings.TrimSpace(handlerstest.Download(t, address+"/policies.csv?status=Active&q=team-00&page=2")), "\n")
	if len(csv) != 1+90+10 || csv[0] != "team,name,namespace,status,weight,lending and borrowing,preemption,pool,GPUs,vCPU,\"Memory, GiB\",Network devices,department" || csv[1] != "team-0000,Research 0,hyperpod-ns-team-0000,Active,0,Lends and borrows up to 50 %,Lower priority,ml.g6.12xlarge,2,24,96,1," {
		t.Errorf("got %d lines: %q", len(csv), csv[:2])
	}
	var answer struct {
		Total       int
		Page, Pages int
		Allocations []struct {
			Name, Namespace, Path, Status string
			Weight                        int
			Quota                         []struct {
				Pool      string
				Resources map[string]float64
			}
		}
	}
	if err := json.Unmarshal([]byte(body(t, address+"/policies.json?sort=name&order=desc")), &answer); err != nil {
		t.Fatal(err)
	}
	if first := answer.Allocations[0]; answer.Total != 300 || len(answer.Allocations) != 300 || first.Name != "team-0299" || first.Path != "/policies/allocations/team-0299" || first.Weight != 97 || first.Status != "Active" || first.Quota[0].Resources["nvidia.com/gpu"] != 2 {
		t.Errorf("got %d of %d: %+v", len(answer.Allocations), answer.Total, first)
	}
	answer.Allocations = nil
	if err := json.Unmarshal([]byte(body(t, address+"/policies.json?sort=name&page=2")), &answer); err != nil {
		t.Fatal(err)
	}
	if answer.Page != 2 || answer.Pages != 3 || answer.Total != 300 || len(answer.Allocations) != 100 || answer.Allocations[0].Name != "team-0100" {
		t.Errorf("page 2: got %d from %+v", len(answer.Allocations), answer.Allocations[0])
	}
}
