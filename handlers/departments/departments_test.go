package departments_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/observe/capacity"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/report/usage"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// backend has research (6 GPUs) above sight (4), with team vision (2) in sight and speech (1)
// in research; product (2) is beside it. Vision uses 5.
func backend() *handlerstest.Backend {
	team := func(name, department string, n int64) v1alpha1.ComputeAllocation {
		return v1alpha1.ComputeAllocation{
			ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "7"},
			Spec:       v1alpha1.ComputeAllocationSpec{Department: department, Quota: []v1alpha1.QuotaRow{{InstanceType: "ml.g6.12xlarge", Quantities: v1alpha1.Quantities{Accelerators: &n}}}},
		}
	}
	d := handlerstest.WithAllocations(team("speech", "research", 1), team("vision", "sight", 2))
	research := handlerstest.Department("research", "", 6)
	research.Spec.DisplayName, research.Spec.Members = "Research", []v1alpha1.DepartmentMember{{Member: v1alpha1.Member{Kind: "Group", Name: "heads"}, Role: v1alpha1.DepartmentAdmin}}
	d.Departments.List = []v1alpha1.Department{handlerstest.Department("product", "", 2), research, handlerstest.Department("sight", "research", 4)}
	cell := func(u usage.TeamUsage) []capacity.TeamResource {
		return []capacity.TeamResource{handlerstest.TeamCell("ml.g6.12xlarge", catalog.GPU, u)}
	}
	d.CapacityBackend.Snapshot = capacity.Snapshot{
		Pools: []capacity.PoolSnapshot{{Name: "ml.g6.12xlarge", AcceleratorModel: "L4", Resources: []capacity.PoolResource{{Resource: catalog.GPU, PoolUsage: usage.PoolUsage{Physical: 8}}}}},
		Teams: []capacity.TeamSnapshot{
			{Name: "speech", Namespace: "ns-speech", Waiting: 2, Resources: cell(usage.TeamUsage{Nominal: 1})},
			{Name: "vision", Namespace: "ns-vision", Running: 3, Resources: cell(usage.TeamUsage{Nominal: 2, Usage: 5, Own: 2, Borrowed: 3})},
		},
	}
	return d
}

// The tree is above the list of teams, which the department filters, with those below it.
func TestTree(t *testing.T) {
	address := handlerstest.Serve(t, backend())
	_, page := handlerstest.Get(t, address+"/teams")
	htmlcheck.Page(t, page)
	for row, want := range map[string]string{
		"#department-research": "Research 6 5 1 5 0 0 3 2",
		"#department-sight":    "sight 4 2 2 5 borrowing 1 0 3 0",
		"#department-product":  "product 2 0 2 0 0 0 0 0",
	} {
		if got := handlerstest.Text(page.Find(row)); !strings.HasPrefix(strings.ReplaceAll(got, "Applying ", ""), want) {
			t.Errorf("%s is %q, want %q", row, got, want)
		}
	}
	if page.Find("#departments a[href='/departments/new']").Length() != 1 {
		t.Error("an admin is not offered to create a department")
	}
	_, page = handlerstest.Get(t, address+"/teams?department=sight")
	if page.Find("#team-vision").Length() != 1 || page.Find("#team-speech").Length() != 0 {
		t.Error("the filter by department shows the wrong teams")
	}
	if got := handlerstest.Text(page.Find("#department option[selected]")); got != "sight" {
		t.Errorf("the filter has %q, want sight", got)
	}
	_, page = handlerstest.Get(t, address+"/teams?department=research")
	if page.Find("#team-vision").Length() != 1 || page.Find("#team-speech").Length() != 1 {
		t.Error("the filter leaves out teams of departments below")
	}
}

// Lists of tasks, the queue and the allocations are of the teams in a department and below it.
func TestFilters(t *testing.T) {
	d := backend()
	address := handlerstest.Serve(t, d)
	for path, teams := range map[string]*[]string{"/tasks": &d.QueriedTeams, "/queue": &d.UpcomingQuery.Teams} {
		for department, want := range map[string][]string{"research": {"speech", "vision"}, "sight": {"vision"}, "product": {"-"}, "unknown": {"-"}, "": nil} {
			_, page := handlerstest.Get(t, address+path+"?department="+department)
			htmlcheck.Page(t, page)
			if diff := cmp.Diff(want, *teams); diff != "" {
				t.Errorf("%s of department %q (-want +got):\n%s", path, department, diff)
			}
			if got := page.Find("select#department option[selected]").AttrOr("value", "none"); got != department {
				t.Errorf("%s: the filter is %q, want %q", path, got, department)
			}
		}
	}
	if _, page := handlerstest.Get(t, address+"/policies?department=sight"); page.Find("#allocations tbody tr").Length() != 1 || !strings.Contains(handlerstest.Text(page.Find("#allocations tbody")), "vision") {
		t.Errorf("the allocations of a department: %s", handlerstest.Text(page.Find("#allocations")))
	}
	if csv := handlerstest.Download(t, address+"/policies.csv?department=sight"); !strings.Contains(csv, ",sight") || strings.Contains(csv, "speech") {
		t.Errorf("the file of a department: %s", csv)
	}
}

func TestNoDepartments(t *testing.T) {
	d := backend()
	d.Departments.List, d.Departments.Governed = nil, &access.Governed{}
	_, page := handlerstest.Get(t, handlerstest.Serve(t, d)+"/teams")
	if page.Find("#departments, select#department").Length() > 0 {
		t.Error("the page has departments without any")
	}
}

func TestDepartment(t *testing.T) {
	address := handlerstest.Serve(t, backend())
	_, page := handlerstest.Get(t, address+"/departments/sight")
	htmlcheck.Page(t, page)
	for selector, want := range map[string]string{
		"#department > .up":                             "Teams › Research",
		"#department-loans":                             "Borrows 1 GPU of ml.g6.12xlarge from the reserve of Research",
		"#department-below":                             "vision",
		"#quota-ml\\.g6\\.12xlarge-nvidia\\.com\\/gpu ": "4 2 2 5 borrowing 1 0",
		"#reserve":                                      "Reserve which all of them borrow first 2",
	} {
		if got := handlerstest.Text(page.Find(selector)); !strings.Contains(got, want) {
			t.Errorf("%s is %q, want %q in it", selector, got, want)
		}
	}
	if page.Find("a[href='/departments/sight/edit'], a[href='/departments/sight/delete'], a[href='/policies/allocations/new?department=sight']").Length() != 3 {
		t.Error("the page lacks actions of an admin")
	}
	if got := page.Find("#department-loans time"); got.Length() != 0 {
		t.Errorf("without history, a loan began at %s", handlerstest.Text(got))
	}
	response, _ := handlerstest.Get(t, address+"/departments/unknown")
	if response.StatusCode != http.StatusNotFound {
		t.Errorf("an unknown department: %s, want 404", response.Status)
	}
}

// A loan lasts since the borrower uses more than its quota.
func TestLoanSince(t *testing.T) {
	d, past := backend(), handlerstest.NewHistory()
	past.Held = map[history.SeriesKey]int64{{Team: "vision", Pool: "ml.g6.12xlarge", Resource: catalog.GPU, Measure: history.Used}: 5}
	d.Past = past
	address := handlerstest.Serve(t, d)
	isDayAgo := func(text string) bool {
		at, err := time.Parse(time.RFC3339, text)
		return err == nil && time.Since(at).Round(time.Minute) == 24*time.Hour-10*time.Minute
	}
	_, page := handlerstest.Get(t, address+"/departments/sight")
	if got := page.Find("#department-loans time").AttrOr("datetime", ""); !isDayAgo(got) {
		t.Errorf("the page says since %q, want 10 minutes less than a day", got)
	}
	var answer struct {
		Departments []struct {
			Name      string
			Resources []struct {
				From []struct{ Since string } `json:"borrowedFrom"`
			}
		}
	}
	response, err := http.Get(address + "/departments.json")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	if got := answer.Departments[2].Resources[0].From[0].Since; !isDayAgo(got) {
		t.Errorf("the API says since %q of %s, want 10 minutes less than a day", got, answer.Departments[2].Name)
	}
	past.Held = nil
	if _, page = handlerstest.Get(t, address+"/departments/sight"); page.Find("#department-loans time").Length() != 0 {
		t.Error("a loan has a time that history does not know")
	}
}

// form is that of a new department.
func form(pairs ...string) url.Values {
	values := url.Values{
		"action": {"save"}, "request-id": {"r"}, "team": {"audio"}, "weight": {"10"}, "strategy": {"LendAndBorrow"}, "borrow-percent": {"50"},
		"row-0-type": {"ml.g6.12xlarge"}, "row-0-accelerators": {"1"}, "member-0-kind": {"User"}, "member-0-name": {"ada"}, "member-0-role": {"Admin"},
	}
	for i := 0; i < len(pairs); i += 2 {
		values.Set(pairs[i], pairs[i+1])
	}
	return values
}

func TestCreate(t *testing.T) {
	d := backend()
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+"/departments/new?parent=research")
	htmlcheck.Page(t, page)
	if got := handlerstest.Text(page.Find("#department option[selected]")); got != "Research · 1 of 6 L4 left" {
		t.Errorf("the menu has %q", got)
	}
	if page.Find("#preemption, #shares-section, #options-section, #namespace").Length() > 0 {
		t.Error("the form has inputs of teams")
	}
	response, _ := handlerstest.Post(t, address+"/departments/new", form("department", "research"))
	if to := response.Header.Get("Location"); to != "/departments/audio?done=created" {
		t.Fatalf("saving answers %s and leads to %q", response.Status, to)
	}
	want := v1alpha1.DepartmentSpec{
		Parent: "research", FairShareWeight: 10, Quota: handlerstest.Department("", "", 1).Spec.Quota, Sharing: v1alpha1.Sharing{Strategy: v1alpha1.LendAndBorrow, BorrowLimitPercent: new(int32(50))},
		Members: []v1alpha1.DepartmentMember{{Member: v1alpha1.Member{Kind: "User", Name: "ada"}, Role: v1alpha1.DepartmentAdmin}},
	}
	if diff := cmp.Diff(want, d.Departments.Saved[0].Spec); diff != "" {
		t.Errorf("saved (-want +got):\n%s", diff)
	}
}

func TestCreateInvalid(t *testing.T) {
	for name, tc := range map[string]struct {
		values   url.Values
		selector string
		want     string
	}{
		"more than its parent has left": {form("department", "research", "row-0-accelerators", "2"), "#row-0-error", "Is 2 GPUs, and department Research has 1 GPU left."},
		"too many levels":               {form("department", "audio", "team", "x"), "#department-error", "does not exist"},
		"a name that exists":            {form("team", "product", "action", "review"), "#team-error", "exists already"},
		"without a name":                {form("team", ""), "#team-error", "Enter a name."},
	} {
		t.Run(name, func(t *testing.T) {
			d := backend()
			_, page := handlerstest.Post(t, handlerstest.Serve(t, d)+"/departments/new", tc.values)
			if got := handlerstest.Text(page.Find(tc.selector)); !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q; the page: %s", got, tc.want, handlerstest.Text(page.Find("#form-errors")))
			}
			if len(d.Departments.Saved) > 0 {
				t.Error("it is saved")
			}
		})
	}
}

// A form that changes nothing saves the same spec; the roles of members stay.
func TestEdit(t *testing.T) {
	d := backend()
	d.Departments.List[1].Spec.Activation = v1alpha1.Active
	address := handlerstest.Serve(t, d)
	before := d.Departments.List[1].DeepCopy()
	_, page := handlerstest.Get(t, address+"/departments/research/edit")
	htmlcheck.Page(t, page)
	values := handlerstest.ValuesIn(page, "#allocation-form")
	values.Set("action", "save")
	if _, answer := handlerstest.Post(t, address+"/departments/research/edit", values); len(d.Departments.Saved) != 1 {
		t.Fatalf("not saved: %s", handlerstest.Text(answer.Find("main")))
	}
	after := d.Departments.Saved[0]
	after.Spec.Sharing, before.Spec.Sharing = v1alpha1.Sharing{}, v1alpha1.Sharing{} // the form fills in defaults
	if diff := cmp.Diff(before.Spec, after.Spec); diff != "" {
		t.Errorf("saved (-want +got):\n%s", diff)
	}
	values.Set("row-0-accelerators", "4") // the second save, with the first version
	if response, answer := handlerstest.Post(t, address+"/departments/research/edit", values); response.StatusCode != http.StatusConflict && response.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("a conflict answers %s: %s", response.Status, handlerstest.Text(answer.Find("main")))
	}
}

// Saving shows the review where it interrupts running work, or where that is not known.
func TestReview(t *testing.T) {
	d := backend()
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+"/departments/product/edit")
	values := handlerstest.ValuesIn(page, "#allocation-form")
	values.Set("action", "apply")
	values.Set("activation", "Drain")
	_, review := handlerstest.Post(t, address+"/departments/product/edit", values)
	htmlcheck.Page(t, review)
	if got := handlerstest.Text(review.Find("main")); !strings.Contains(got, "Effects on running tasks are not known") || len(d.Departments.Saved) > 0 {
		t.Errorf("the review says %q", got)
	}
}

func TestDelete(t *testing.T) {
	d := backend()
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+"/departments/research/delete")
	htmlcheck.Page(t, page)
	if got := handlerstest.Text(page.Find("#action-obstacle")); !strings.Contains(got, "1 team and 1 department") {
		t.Errorf("the page says %q", got)
	}
	_, page = handlerstest.Get(t, address+"/departments/product/delete")
	htmlcheck.Page(t, page)
	values := handlerstest.ValuesIn(page, "#action-form")
	_, page = handlerstest.Post(t, address+"/departments/product/delete", values)
	if page.Find("#confirm-error").Length() != 1 || len(d.Departments.Deleted) > 0 {
		t.Error("it is deleted without its name")
	}
	values.Set("confirm", "product")
	response, _ := handlerstest.Post(t, address+"/departments/product/delete", values)
	if to := response.Header.Get("Location"); to != "/teams?deleted=product" || len(d.Departments.Deleted) != 1 {
		t.Errorf("deleting leads to %q", to)
	}
}

// The admin of a department changes what is below it, and nothing else.
func TestDelegated(t *testing.T) {
	d := backend()
	governed := access.GovernedOf("research", "sight")
	d.Departments.Governed = &governed
	address := handlerstest.Serve(t, d)
	for path, want := range map[string]int{
		"/departments/sight/edit": http.StatusOK, "/departments/research/edit": http.StatusNotFound, "/departments/product/edit": http.StatusNotFound,
		"/departments/research/delete": http.StatusNotFound, "/departments/new": http.StatusOK,
	} {
		if response, _ := handlerstest.Get(t, address+path); response.StatusCode != want {
			t.Errorf("%s: %s, want %d", path, response.Status, want)
		}
	}
	_, page := handlerstest.Post(t, address+"/departments/new", form())
	if got := handlerstest.Text(page.Find("#department-error")); !strings.Contains(got, "of which you are an admin") {
		t.Errorf("a department beside the own one: %q", got)
	}
	_, page = handlerstest.Post(t, address+"/policies/allocations/new", handlerstest.AllocationForm("team", "fresh", "row-0-accelerators", "1"))
	if got := handlerstest.Text(page.Find("#department-error")); !strings.Contains(got, "of which you are an admin") {
		t.Errorf("a team without a department: %q", got)
	}
}

// The form of a team has the departments, with what is left.
func TestTeamInDepartment(t *testing.T) {
	d := backend()
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+"/policies/allocations/new?department=sight")
	htmlcheck.Page(t, page)
	var options []string
	for i := range page.Find("#department option").Length() {
		options = append(options, handlerstest.Text(page.Find("#department option").Eq(i)))
	}
	if diff := cmp.Diff([]string{"None", "product · 2 of 2 L4 left", "Research · 1 of 6 L4 left", "Research › sight · 2 of 4 L4 left"}, options); diff != "" {
		t.Errorf("the menu (-want +got):\n%s", diff)
	}
	if got := handlerstest.Text(page.Find("#borrow-percent-hint")); !strings.Contains(got, "reserve") {
		t.Errorf("the borrow limit says %q", got)
	}
	_, page = handlerstest.Post(t, address+"/policies/allocations/new", handlerstest.AllocationForm("team", "fresh", "department", "sight", "row-0-accelerators", "3"))
	if got := handlerstest.Text(page.Find("#row-0-error")); !strings.Contains(got, "Is 3 GPUs, and department sight has 2 GPUs left.") {
		t.Errorf("too much for the department: %q", got)
	}
	handlerstest.Post(t, address+"/policies/allocations/new", handlerstest.AllocationForm("team", "fresh", "department", "sight", "row-0-accelerators", "2"))
	if len(d.Created) != 1 || d.Created[0].Spec.Department != "sight" {
		t.Errorf("created %+v, want a team of sight", d.Created)
	}
}

// TestNoTeamYet leads a member of departments without teams to the departments.
func TestNoTeamYet(t *testing.T) {
	d := backend()
	d.ReadError = &governance.Error{Kind: governance.Outside, Op: "list tasks"}
	response, page := handlerstest.Get(t, handlerstest.Serve(t, d)+"/tasks")
	htmlcheck.Page(t, page)
	if link := page.Find("main a[href='/departments/research']"); response.StatusCode != http.StatusForbidden || link.Text() != "Research" {
		t.Errorf("%s: %s", response.Status, handlerstest.Text(page.Find("main")))
	}
}

func TestAPI(t *testing.T) {
	d := backend()
	address := handlerstest.Serve(t, d)
	response, err := http.Get(address + "/departments.json")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var answer struct {
		Departments []struct {
			Name      string
			Resources []struct {
				Resource              string
				Quota, Reserve        json.Number
				BorrowedFrom, LentTo  []struct{ Department string }
				Used, Lent, Allocated json.Number
			}
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, one := range answer.Departments {
		names = append(names, one.Name)
	}
	if diff := cmp.Diff([]string{"product", "research", "sight"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	csv := handlerstest.Download(t, address+"/departments.csv")
	if want := "sight,,research,ml.g6.12xlarge,nvidia.com/gpu,GPUs,4,2,2,5,1,0"; !strings.Contains(csv, want) {
		t.Errorf("the file lacks %q: %s", want, csv)
	}
}
