package allocations_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/handlers/handlerstest"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
)

// All inputs of the form are saved.
func TestSaveCreatesAllFields(t *testing.T) {
	d := handlerstest.WithAllocations()
	want := handlerstest.FullAllocation().Spec
	want.QueueingStrategy, want.DefaultPriorityClass = v1alpha1.StrictFIFO, "dev"
	want.Ceiling = []v1alpha1.ResourceQuantity{{Name: "nvidia.com/gpu", Quantity: resource.MustParse("64")}, {Name: "pods", Quantity: resource.MustParse("2k")}}
	want.Shares = append(want.Shares, v1alpha1.Share{
		Name: "batch", Weight: 2, DefaultPriorityClass: "training", Kinds: []string{"RayJob", "Deployment"}, Quota: []v1alpha1.WindowQuota{{InstanceType: "ml.g5.2xlarge", Accelerators: new(int64(4))}, {InstanceType: "ml.c5.2xlarge", Instances: new(int64(1))}},
		BorrowLimitPercent: new(int32(0)), QueueingStrategy: v1alpha1.StrictFIFO,
	})
	address := handlerstest.Serve(t, d) + handlerstest.NewURL
	values := handlerstest.AllocationForm(
		"display-name", "Vision", "description", "All that <sees>", "namespace", "research", "weight", "30",
		"member-0-kind", "Group", "member-0-name", "vision-team", "member-1-kind", "User", "member-1-name", "", "member-2-kind", "User", "member-2-name", "oidc:ada@example.com",
		"row-0-vcpu", "1.5", "row-0-memory", "0.977", "row-1-type", "h100", "row-1-accelerators", "4",
		"row-2-type", "ml.p4d.24xlarge", "row-2-profile", "mig-1g.5gb", "row-2-count", "7", "row-3-type", "ml.c5.2xlarge", "row-3-instances", "3", "row-3-other-example.com/license", "4", "row-3-other-ephemeral-storage", "1536",
		"borrow-percent", "25", "limit-0-type", "ml.g5.2xlarge", "limit-0-accelerators", "1",
		"share-0-name", "research", "share-0-weight", "15", "share-0-members", "research\nuser: oidc:ada@example.com", "share-1-name", "nightly", "share-1-weight", "3",
		"share-2-name", "batch", "share-2-weight", "2", "share-2-quota", "ml.g5.2xlarge 4\nml.c5.2xlarge 1 instance", "share-2-percent", "0", "share-2-class", "training", "share-2-kinds", "RayJob, Deployment", "default-class", "dev", "ceilings", "nvidia.com/gpu=64,\n pods 2k", "share-2-order", "StrictFIFO",
		"window-0-name", "nights", "window-0-days", "Mon–Wed, Fri", "window-0-from", "22:00", "window-0-to", "06:00", "window-0-zone", "Europe/Berlin", "window-0-notice", "1h30m",
		"window-0-quota", "ml.g6.12xlarge 8\nml.c5.2xlarge 2 instances\nml.p4d.24xlarge 14 mig-1g.5gb", "window-0-sharing", "LendAndBorrow", "window-0-percent", "40",
		"window-1-name", "upkeep", "window-1-from", "2030-12-07 08:00", "window-1-to", "2030-12-07 18:00", "window-1-activation", "Drain", "window-1-sharing", "DontLend",
		"budget-amount", "1250.50", "budget-unit", "money", "budget-period", "Quarter", "budget-zone", "Asia/Tokyo", "budget-notify", "80", "budget-drain", "100",
	)
	_, page := handlerstest.Get(t, address)
	page.Find("#options-section input[type=checkbox]").Each(func(_ int, option *goquery.Selection) {
		values.Set(option.AttrOr("name", ""), option.AttrOr("value", ""))
	})
	response, page := handlerstest.Post(t, address, values)
	if response.StatusCode != http.StatusSeeOther {
		t.Fatalf("%s: %s", response.Status, page.Find("#form-errors").Text())
	}
	want.Activation = ""
	if diff := cmp.Diff(want, d.Created[0].Spec); diff != "" {
		t.Errorf("the created spec differs (-want +got):\n%s", diff)
	}
}

// Without limit, the percentage is left out, whatever it contains; and what
// is not borrowed at all has no limits.
func TestLimitsThatAreNotUsed(t *testing.T) {
	for name, tc := range map[string]struct {
		FormValues []string
		want       v1alpha1.Sharing
	}{
		"without limit": {[]string{"unlimited", "true", "borrow-percent", "x"}, v1alpha1.Sharing{Strategy: v1alpha1.LendAndBorrow, Unlimited: true}},
		"not borrowing": {[]string{"strategy", "DontLend", "unlimited", "true", "limit-0-type", "ml.g5.2xlarge", "limit-0-vcpu", "x"}, v1alpha1.Sharing{Strategy: v1alpha1.DontLend}},
	} {
		t.Run(name, func(t *testing.T) {
			d := handlerstest.WithAllocations()
			if response, page := handlerstest.Post(t, handlerstest.Serve(t, d)+handlerstest.NewURL, handlerstest.AllocationForm(tc.FormValues...)); response.StatusCode != http.StatusSeeOther {
				t.Fatalf("%s: %s", response.Status, page.Find("#form-errors").Text())
			}
			if diff := cmp.Diff(tc.want, d.Created[0].Spec.Sharing); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestErrorsAreShownAtTheirInputs(t *testing.T) {
	address := handlerstest.Serve(t, handlerstest.WithAllocations()) + handlerstest.NewURL
	for name, tc := range map[string]struct {
		FormValues  []string
		field, want string
	}{
		"a namespace of Kubernetes":      {[]string{"namespace", "kube-system"}, "namespace", "is reserved for the cluster"},
		"nothing of an instance":         {[]string{"row-0-accelerators", "0"}, "row-0-accelerators", "above 0"},
		"nothing of anything":            {[]string{"row-0-accelerators", "", "row-0-vcpu", "0", "row-0-memory", "0"}, "row-0-vcpu", "above 0"},
		"a name that turns around":       {[]string{"display-name", "vision\u202egnp"}, "display-name", "change the direction of writing"},
		"a namespace in capitals":        {[]string{"namespace", "Research"}, "namespace", "lower-case"},
		"a member of Kubernetes":         {[]string{"member-3-kind", "Group", "member-3-name", "system:masters"}, "member-0-name", "reserved by Kubernetes"},
		"a member of no kind":            {[]string{"member-0-kind", "Robot", "member-0-name", "x"}, "member-0-name", "must be User or Group"},
		"a member twice":                 {[]string{"member-0-kind", "User", "member-0-name", "x", "member-1-kind", "User", "member-1-name", "x"}, "member-1-name", "Is listed twice"},
		"an unknown profile":             {[]string{"row-0-type", "ml.p4d.24xlarge", "row-0-accelerators", "", "row-0-profile", "mig-9g.9gb", "row-0-count", "1"}, "row-0-profile", "mig-1g.5gb"},
		"a profile without a count":      {[]string{"row-0-accelerators", "", "row-0-profile", "mig-1g.5gb"}, "row-0-count", "how many"},
		"a count without a profile":      {[]string{"row-0-accelerators", "", "row-0-count", "1"}, "row-0-profile", "which parts"},
		"parts and whole accelerators":   {[]string{"row-0-type", "ml.p4d.24xlarge", "row-0-profile", "mig-1g.5gb", "row-0-count", "1"}, "row-0-count", "not both"},
		"a limit of an unknown type":     {[]string{"limit-0-type", "ml.g5.2xlrage", "limit-0-vcpu", "1"}, "limit-0-type", "did you mean"},
		"a limit that is no number":      {[]string{"limit-0-type", "ml.g5.2xlarge", "limit-0-vcpu", "lots"}, "limit-0-vcpu", "Not a number"},
		"a limit behind an empty one":    {[]string{"limit-0-type", "", "limit-4-type", "ml.c5.2xlarge", "limit-4-accelerators", "1"}, "limit-1-accelerators", "have no accelerators"},
		"a ceiling without a limit":      {[]string{"ceiling", "true", "unlimited", "true"}, "ceiling", "needs a borrow limit"},
		"a ceiling without an amount":    {[]string{"ceilings", "nvidia.com/gpu"}, "ceilings", "such as nvidia.com/gpu 64"},
		"a ceiling of no amount":         {[]string{"ceilings", "pods many"}, "ceilings", "no amount"},
		"a ceiling twice":                {[]string{"ceilings", "pods 1, pods 2"}, "ceilings", "listed twice"},
		"a ceiling below 0":              {[]string{"ceilings", "pods -1"}, "ceilings", "from 0"},
		"a ceiling that nobody counts":   {[]string{"ceilings", "license 4"}, "ceilings", "Kubernetes counts no others"},
		"a pool that the policy lacks":   {[]string{"row-1-type", "b200", "row-1-accelerators", "1"}, "row-1-type", "make pool b200 of it"},
		"a type and the pool it is in":   {[]string{"row-1-type", "ml.p5.48xlarge", "row-1-vcpu", "1", "row-2-type", "h100", "row-2-vcpu", "1"}, "row-2-type", "combine the rows"},
		"a share without a name":         {[]string{"share-0-weight", "3"}, "share-0-name", "Give the share a name"},
		"a share without a weight":       {[]string{"share-0-name", "a"}, "share-0-weight", "Give a weight from 1"},
		"a budget of 0 hours":            {[]string{"budget-amount", "0", "budget-period", "Month", "budget-notify", "80"}, "budget-amount", "at least 1"},
		"a share of weight 0":            {[]string{"share-0-name", "a", "share-0-weight", "0"}, "share-0-weight", "at least 1"},
		"a share in capitals":            {[]string{"share-0-name", "HIGHPRI", "share-0-weight", "1"}, "share-0-name", "lower-case"},
		"a share twice":                  {[]string{"share-0-name", "a", "share-0-weight", "1", "share-4-name", "a", "share-4-weight", "1"}, "share-1-name", "Is listed twice"},
		"a share of Kubernetes":          {[]string{"share-0-name", "a", "share-0-weight", "1", "share-0-members", "user: system:admin"}, "share-0-members", "reserved by Kubernetes"},
		"a share of strange quota":       {[]string{"share-0-name", "a", "share-0-quota", "ml.g5.2xlarge"}, "share-0-quota", "write an instance type or pool and a number"},
		"a share of no pool":             {[]string{"share-0-name", "a", "share-0-quota", "ml.none 2"}, "share-0-quota", "ml.none"},
		"a share of kinds in lower case": {[]string{"share-0-name", "a", "share-0-weight", "1", "share-0-kinds", "job"}, "share-0-kinds", "such as RayJob"},
		"a share that cannot borrow":     {[]string{"share-0-name", "a", "share-0-percent", "5"}, "share-0-percent", "needs a quota of the share"},
		"a share of nobody":              {[]string{"share-0-name", "a", "share-0-weight", "1", "share-0-members", "ada\nuser:"}, "share-0-members", "A name is missing after user:"},
		"too many characters in a name":  {[]string{"member-0-kind", "User", "member-0-name", strings.Repeat("a", 257)}, "member-0-name", "more than 256"},
	} {
		t.Run(name, func(t *testing.T) {
			response, page := handlerstest.Post(t, address, handlerstest.AllocationForm(tc.FormValues...))
			if response.StatusCode != http.StatusUnprocessableEntity {
				t.Errorf("the answer is %s", response.Status)
			}
			input := page.Find("#" + tc.field)
			if input.AttrOr("aria-invalid", "") != "true" || !strings.Contains(page.Find("#"+tc.field+"-error").Text(), tc.want) {
				t.Errorf("the error of %s is %q; all: %q", tc.field, page.Find("#"+tc.field+"-error").Text(), page.Find("#form-errors").Text())
			}
			if page.Find(`#form-errors a[href="#`+tc.field+`"]`).Length() == 0 {
				t.Errorf("the summary does not lead to %s", tc.field)
			}
			if text := page.Find("#form-errors").Text(); strings.Contains(text, "spec.") {
				t.Errorf("the summary names a field of the API: %s", text)
			}
		})
	}
}

// What is a family or hardware leads to the button beside it that makes a pool
// of it, and names are written as they are.
func TestErrorsOfFamiliesOfferTheirPool(t *testing.T) {
	address := handlerstest.Serve(t, handlerstest.WithAllocations()) + handlerstest.NewURL
	for typed, want := range map[string]string{
		"ml.c5": `"ml.c5" is a family, not an instance type: make pool ml-c5 of it with the button in this row, or name a type, such as ml.c5.`,
		"A10G":  `"A10G" is hardware, not an instance type: make pool a10g of it with the button in this row`,
	} {
		_, page := handlerstest.Post(t, address, handlerstest.AllocationForm("row-0-type", typed, "row-0-accelerators", "", "row-0-vcpu", "8"))
		if text := page.Find("#row-0-type-error").Text(); !strings.Contains(text, want) {
			t.Errorf("the error of %s is %q", typed, text)
		}
		if page.Find("#row-0 button[value='make-pool:row-0']").Length() != 1 {
			t.Errorf("no button makes a pool of %s", typed)
		}
	}
	_, page := handlerstest.Post(t, address, handlerstest.AllocationForm("row-0-type", "ml.c5.2xlarge"))
	if text := page.Find("#row-0-accelerators-error").Text(); !strings.Contains(text, "nstances of ml.c5.2xlarge have no accelerators") {
		t.Errorf("the error of the accelerators is %q", text)
	}
}

// A team may have limits in figures alone: it only borrows.
func TestTeamsThatOnlyBorrow(t *testing.T) {
	nothing := []string{"row-0-type", "", "row-0-accelerators", "", "limit-0-type", "ml.g6.12xlarge", "limit-0-accelerators", "2"}
	d := handlerstest.WithAllocations()
	if response, page := handlerstest.Post(t, handlerstest.Serve(t, d)+handlerstest.NewURL, handlerstest.AllocationForm(nothing...)); response.StatusCode != http.StatusSeeOther {
		t.Fatalf("%s: %s", response.Status, page.Find("#form-errors").Text())
	}
	if spec := d.Created[0].Spec; len(spec.Quota) != 0 || len(spec.Sharing.BorrowLimits) != 1 {
		t.Errorf("created %+v", spec)
	}
	if got := handlerstest.Text(listed(t, d)); !strings.Contains(got, "up to 50 %, other limits in 1 pool") {
		t.Errorf("the list shows %q", got)
	}
	response, page := handlerstest.Post(t, handlerstest.Serve(t, handlerstest.WithAllocations())+handlerstest.NewURL, handlerstest.AllocationForm(append(nothing, "strategy", "Lend")...))
	if response.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(page.Find("#form-errors").Text(), "at least one pool") {
		t.Errorf("a team without anything: %s: %s", response.Status, page.Find("#form-errors").Text())
	}
}

// listed is the table of a domain's allocations.
func listed(t *testing.T, d *handlerstest.Backend) *goquery.Selection {
	t.Helper()
	_, page := handlerstest.Get(t, handlerstest.Serve(t, handlerstest.WithAllocations(d.Created...))+"/policies")
	return page.Find("#allocations-table")
}

// The smaller actions change their own list, and lose nothing of the others.
func TestActionsAddAndRemoveRows(t *testing.T) {
	address := handlerstest.Serve(t, handlerstest.WithAllocations()) + handlerstest.NewURL
	start := handlerstest.AllocationForm("row-1-type", "ml.c5.2xlarge", "limit-0-type", "h100", "limit-1-type", "ml.g5.2xlarge", "limit-1-vcpu", "2", "member-0-name", "a", "member-1-kind", "User", "member-1-name", "b")
	for action, want := range map[string]map[string]string{
		"add-member":          {"#member-2-name": "", "#member-1-name": "b"},
		"remove-member:0":     {"#member-0-name": "b", "#row-1-type": "ml.c5.2xlarge"},
		"add-limit":           {"#limit-2-type": "", "#limit-1-vcpu": "2"},
		"remove-limit:0":      {"#limit-0-type": "ml.g5.2xlarge", "#row-0-type": "ml.g6.12xlarge"},
		"reset:limit-1-vcpu":  {"#limit-1-vcpu": "", "#limit-1-type": "ml.g5.2xlarge"},
		"remove-row:0":        {"#row-0-type": "ml.c5.2xlarge", "#limit-0-type": "h100"},
		"remove-member:99":    {"#member-1-name": "b"},
		"reset:nothing-here":  {"#limit-1-vcpu": "2"},
		"make-pool:row-0":     {"#row-0-type": "ml.g6.12xlarge"},
		"make-pool:row-99999": {"#row-0-type": "ml.g6.12xlarge"},
	} {
		values := url.Values{}
		for name, all := range start {
			values[name] = all
		}
		values.Set("action", action)
		_, page := handlerstest.Post(t, address, values, "X-Requested-With", "fetch")
		for selector, value := range want {
			if got, there := page.Find(selector).Attr("value"); got != value || !there && page.Find(selector).Length() == 0 {
				t.Errorf("%s: %s is %q, want %q", action, selector, got, value)
			}
		}
	}
}

// Hardware or a family that is typed where a type belongs becomes a pool, which
// is made with the allocation.
func TestCreatingAPool(t *testing.T) {
	for typed, want := range map[string]v1alpha1.Pool{
		"l4":    {Name: "l4", Match: v1alpha1.PoolMatch{Accelerator: "L4"}},
		"ml.g6": {Name: "ml-g6", Match: v1alpha1.PoolMatch{InstanceFamily: "ml.g6"}},
	} {
		t.Run(typed, func(t *testing.T) {
			d := handlerstest.WithAllocations()
			address := handlerstest.Serve(t, d) + handlerstest.NewURL
			_, page := handlerstest.Post(t, address, handlerstest.AllocationForm("action", "preview", "row-0-type", typed), "X-Requested-With", "fetch")
			button := page.Find("#row-0 button[value='make-pool:row-0']")
			if button.Length() != 1 || page.Find("#row-0 [aria-invalid]").Length() != 0 || !strings.Contains(page.Find("#row-0").Text(), "2 nodes today") {
				t.Fatalf("the row offers %q", page.Find("#row-0").Text())
			}
			_, page = handlerstest.Post(t, address, handlerstest.AllocationForm("action", "make-pool:row-0", "row-0-type", typed))
			values := handlerstest.ValuesIn(page, "#allocation-form")
			if values.Get("row-0-type") != want.Name || page.Find("#row-0-vcpu").AttrOr("placeholder", "") != "24" {
				t.Errorf("the row is of %q with %s vCPU", values.Get("row-0-type"), page.Find("#row-0-vcpu").AttrOr("placeholder", ""))
			}
			if text := page.Find("#row-0-there").Text(); !strings.Contains(text, "New pool, created when you save") {
				t.Errorf("the row shows %q", text)
			}
			values.Set("action", "review")
			_, page = handlerstest.Post(t, address, values)
			if text := page.Find("#review-quota").Text(); !strings.Contains(text, want.Name) || !strings.Contains(text, "2 nodes today") {
				t.Errorf("the review shows %q", page.Find("main").Text())
			}
			values = handlerstest.ValuesIn(page, "#review-form")
			values.Set("action", "save")
			if response, page := handlerstest.Post(t, address, values); response.StatusCode != http.StatusSeeOther {
				t.Fatalf("%s: %s", response.Status, page.Find("#form-errors").Text())
			}
			if diff := cmp.Diff([]v1alpha1.Pool{want}, d.SavedPools); diff != "" {
				t.Error(diff)
			}
			if row := d.Created[0].Spec.Quota[0]; row.Pool != want.Name || row.InstanceType != "" {
				t.Errorf("the row is %+v", row)
			}
		})
	}
}

// A new pool that no row uses is not created.
func TestUnusedNewPoolsAreNotCreated(t *testing.T) {
	d := handlerstest.WithAllocations()
	handlerstest.Post(t, handlerstest.Serve(t, d)+handlerstest.NewURL, handlerstest.AllocationForm("new-pool-0-name", "l4", "new-pool-0-kind", "accelerator", "new-pool-0-value", "L4"))
	if len(d.Created) != 1 || len(d.SavedPools) != 0 {
		t.Errorf("made are %d allocations and the pools %v", len(d.Created), d.SavedPools)
	}
}

// What the type's devices are called, and what a first-come policy means for
// preemption.
func TestFormDescribesItsValues(t *testing.T) {
	d := handlerstest.WithAllocations()
	d.Policy = &v1alpha1.ClusterPolicy{Spec: v1alpha1.ClusterPolicySpec{TaskPrioritization: v1alpha1.FirstComeFirstServe}}
	_, page := handlerstest.Post(t, handlerstest.Serve(t, d)+handlerstest.NewURL, handlerstest.AllocationForm("action", "preview", "row-0-type", "ml.trn1.32xlarge", "row-1-type", "ml.p4d.24xlarge", "row-1-profile", "mig-1g.5gb", "row-1-count", "7", "limit-0-type", "ml.trn1.32xlarge", "limit-0-accelerators", "3", "limit-1-type", "ml.g5.2xlarge", "limit-1-vcpu", "1"))
	for selector, want := range map[string]string{
		`label[for="row-0-accelerators"]`: "Neuron devices", "#preemption-section": "first come, first served", "#row-0": "Can borrow up to 3 Neuron devices",
		"#limit-0": "Replaces the percentage", "#limit-1": "can only borrow", "#weight-hint": "a higher weight gets more of it", "#default-queue-hint": "use the team's queue.",
		"#row-1": "No node has mig-1g.5gb partitions now; tasks that request them wait until one has.",
	} {
		if text := page.Find(selector).Text(); !strings.Contains(text, want) {
			t.Errorf("%s shows %q, want %q", selector, text, want)
		}
	}
	if first := page.Find("#instance-types option").First().AttrOr("value", ""); first != "h100" {
		t.Errorf("%q is suggested first, want the policy's pool", first)
	}
}

// A new team begins with weight 0, as with kubectl and an import. Beside other weights it
// is warned of where weights count.
func TestWeightOfANewTeam(t *testing.T) {
	teams := func(weights ...int32) (all []v1alpha1.ComputeAllocation) {
		for i, weight := range weights {
			a := v1alpha1.ComputeAllocation{}
			a.Name, a.Spec.FairShareWeight = fmt.Sprintf("team-%d", i), weight
			all = append(all, a)
		}
		return all
	}
	for name, tc := range map[string]struct {
		teams []v1alpha1.ComputeAllocation
		idle  v1alpha1.IdleComputeStrategy
		warns string
	}{
		"the first team":       {nil, v1alpha1.IdleFairShare, ""},
		"several others":       {teams(30, 10, 20), v1alpha1.IdleFairShare, "Other teams have weights from 10 to 30"},
		"one other":            {teams(30), v1alpha1.IdleFairShare, "Other teams have weight 30"},
		"nobody has any":       {teams(0, 0), v1alpha1.IdleFairShare, ""},
		"weights do not count": {teams(30), v1alpha1.IdleFirstComeFirstServe, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := handlerstest.WithAllocations(tc.teams...)
			d.Policy = &v1alpha1.ClusterPolicy{Spec: v1alpha1.ClusterPolicySpec{IdleCompute: v1alpha1.IdleCompute{Strategy: tc.idle}}}
			address := handlerstest.Serve(t, d) + handlerstest.NewURL
			_, page := handlerstest.Get(t, address)
			if got := page.Find("#weight").AttrOr("value", ""); got != "0" {
				t.Errorf("the form begins with weight %s, want 0", got)
			}
			if text := handlerstest.Text(page.Find("#weight-note")); tc.warns == "" && text != "" || !strings.Contains(text, tc.warns) {
				t.Errorf("the note on weight 0 is %q, want %q", text, tc.warns)
			}
			_, page = handlerstest.Post(t, address, handlerstest.AllocationForm("action", "preview", "weight", "1"))
			if text := handlerstest.Text(page.Find("#weight-note")); text != "" {
				t.Errorf("the note on weight 1 is %q", text)
			}
		})
	}
}
