package allocations_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSaveCreatesWhatWasTyped(t *testing.T) {
	d := &handlerstest.Backend{}
	response, _ := handlerstest.Post(t, handlerstest.Serve(t, d)+handlerstest.NewURL, handlerstest.AllocationForm("row-0-vcpu", "48", "row-1-type", "", "row-2-type", "ml.c5.2xlarge", "row-2-memory", "0.5"))
	if response.StatusCode != http.StatusSeeOther || response.Header.Get("Location") != "/policies?created=vision" {
		t.Fatalf("answer is %s to %s", response.Status, response.Header.Get("Location"))
	}
	if d.User.Name != "ada" || !d.User.Local {
		t.Errorf("saved as %+v", d.User)
	}
	a := d.Created[0]
	if a.Name != "vision" || a.Spec.FairShareWeight != 10 || a.Spec.Preemption.WithinTeam != v1alpha1.PreemptNever || *a.Spec.Sharing.BorrowLimitPercent != 50 {
		t.Errorf("created %+v", a.Spec)
	}
	if len(a.Spec.Quota) != 2 || a.Spec.Quota[0].VCPU.String() != "48" || a.Spec.Quota[0].Memory != nil || a.Spec.Quota[1].Memory.String() != "512Mi" {
		t.Errorf("rows are %+v", a.Spec.Quota)
	}
}

// Without borrowing, the borrow limit is omitted.
func TestLimitIsLeftOutWhereNothingIsBorrowed(t *testing.T) {
	d := &handlerstest.Backend{}
	if response, _ := handlerstest.Post(t, handlerstest.Serve(t, d)+handlerstest.NewURL, handlerstest.AllocationForm("strategy", "Lend")); response.StatusCode != http.StatusSeeOther {
		t.Fatal(response.Status)
	}
	if d.Created[0].Spec.Sharing.BorrowLimitPercent != nil {
		t.Errorf("sharing is %+v", d.Created[0].Spec.Sharing)
	}
}

// The form's figures are the controller's, to the digit, for whatever is typed.
func TestFormShowsWhatTheControllerComputes(t *testing.T) {
	address := handlerstest.Serve(t, &handlerstest.Backend{}) + handlerstest.NewURL
	for _, typed := range []map[string]string{
		{"accelerators": "2"}, {"accelerators": "3", "vcpu": "48"}, {"vcpu": "0.5"}, {"memory": "100"}, {"instances": "3"}, {"accelerators": "1", "memory": "7.5"},
	} {
		values := handlerstest.AllocationForm("action", "preview", "row-0-accelerators", "")
		row := v1alpha1.QuotaRow{InstanceType: "ml.g6.12xlarge"}
		for part, text := range typed {
			values.Set("row-0-"+part, text)
		}
		d := &handlerstest.Backend{}
		saved := handlerstest.AllocationForm("row-0-accelerators", "")
		for part, text := range typed {
			saved.Set("row-0-"+part, text)
		}
		if response, _ := handlerstest.Post(t, handlerstest.Serve(t, d)+handlerstest.NewURL, saved); response.StatusCode != http.StatusSeeOther {
			t.Fatalf("%v: %s", typed, response.Status)
		}
		row.Quantities = d.Created[0].Spec.Quota[0].Quantities
		instance, _ := catalog.Known("ml.g6.12xlarge")
		filled, errs := quota.Fill(row.Quantities, instance)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		_, page := handlerstest.Post(t, address, values, "X-Requested-With", "fetch")
		for part, resource := range map[string]string{"accelerators": catalog.GPU, "vcpu": catalog.CPU, "memory": catalog.Memory} {
			if typed[part] != "" {
				continue
			}
			if got, want := page.Find("#row-0-"+part).AttrOr("placeholder", ""), quota.Number(resource, filled[resource]); got != want {
				t.Errorf("%v: %s shows %q, the controller computes %q", typed, part, got, want)
			}
		}
	}
}

func TestPreviewIsTheFormAlone(t *testing.T) {
	address := handlerstest.Serve(t, &handlerstest.Backend{}) + handlerstest.NewURL
	_, page := handlerstest.Post(t, address, handlerstest.AllocationForm("action", "preview"), "X-Requested-With", "fetch")
	if page.Find("header.top").Length() != 0 || page.Find("#allocation-form").Length() != 1 {
		t.Error("the answer is not the form alone")
	}
	if text := page.Find("#row-0").Text(); !strings.Contains(text, "Can borrow up to 1 GPU · 12 vCPU · 48 GiB") || !strings.Contains(text, "50 % of 1 network device rounds down to 0") {
		t.Errorf("the row shows %q", text)
	}
	response, page := handlerstest.Post(t, address, handlerstest.AllocationForm("action", "preview"))
	if response.StatusCode != http.StatusOK || page.Find("header.top").Length() != 1 {
		t.Error("without the script the answer is not a page")
	}
	htmlcheck.Page(t, page)
}

// Incomplete values are no errors before a save was tried.
func TestIncompleteFormHasNoErrorsWhileTyping(t *testing.T) {
	address := handlerstest.Serve(t, &handlerstest.Backend{}) + handlerstest.NewURL
	for _, typed := range []url.Values{
		handlerstest.AllocationForm("action", "preview", "team", "", "row-0-type", "", "row-0-accelerators", ""),
		handlerstest.AllocationForm("action", "preview", "row-0-type", "ml.g6", "row-0-accelerators", ""),
		handlerstest.AllocationForm("action", "preview", "row-0-accelerators", ""),
		handlerstest.AllocationForm("action", "preview", "weight", "", "borrow-percent", ""),
	} {
		_, page := handlerstest.Post(t, address, typed, "X-Requested-With", "fetch")
		if wrong := page.Find("[aria-invalid=true]"); wrong.Length() != 0 || page.Find("#form-errors").Length() != 0 {
			t.Errorf("%v: %s is marked wrong", typed, wrong.AttrOr("id", "something"))
		}
	}
}

func TestOverCapacityIsWarnedOf(t *testing.T) {
	other := v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
	seven := int64(7)
	other.Spec.Quota = []v1alpha1.QuotaRow{{InstanceType: "ml.g6.12xlarge", Quantities: v1alpha1.Quantities{Accelerators: &seven}}}
	_, page := handlerstest.Post(t, handlerstest.Serve(t, &handlerstest.Backend{Allocations: []v1alpha1.ComputeAllocation{other}})+handlerstest.NewURL, handlerstest.AllocationForm("action", "preview"))
	for _, want := range []string{"L4 · 2 instances · 8 GPUs, 1 not allocated", "Over capacity: teams would be allocated 9 of 8 GPUs"} {
		if text := page.Find("#row-0").Text(); !strings.Contains(text, want) {
			t.Errorf("the row shows %q, want %q", text, want)
		}
	}
	if page.Find("#row-0 .remark-bad").Length() != 0 {
		t.Error("slightly over capacity is an alarm")
	}
	_, page = handlerstest.Post(t, handlerstest.Serve(t, &handlerstest.Backend{})+handlerstest.NewURL, handlerstest.AllocationForm("action", "preview", "row-0-accelerators", "500000"))
	if text := page.Find("#row-0 .remark-bad").Text(); !strings.Contains(text, "teams would be allocated 62,500 times the 8 GPUs of this pool") {
		t.Errorf("far over capacity the row shows %q", text)
	}
}

// A row has inputs for the resources that the policy lists, but for the accelerators of its
// pool, and an error at them. Without a list there is nothing of them.
func TestListedResources(t *testing.T) {
	address := handlerstest.Serve(t, &handlerstest.Backend{}) + handlerstest.NewURL
	if _, page := handlerstest.Post(t, address, handlerstest.AllocationForm("action", "preview")); page.Find(".row-others").Length() != 0 {
		t.Error("there are more resources without a list")
	}
	resources.List([]v1alpha1.ListedResource{{Name: "nvidia.com/gpu", Label: "GPUs", Accelerator: true}, {Name: "example.com/license", Label: "licenses"}, {Name: "example.com/ram", Label: "GPU memory", Unit: v1alpha1.UnitBytes}})
	t.Cleanup(func() { resources.List(nil) })
	response, page := handlerstest.Post(t, address, handlerstest.AllocationForm("action", "review", "row-0-other-example.com/license", "some", "row-0-other-example.com/ram", "1.5"))
	var labels []string
	page.Find("#row-0-others label").Each(func(_ int, label *goquery.Selection) { labels = append(labels, strings.TrimSpace(label.Text())) })
	if diff := cmp.Diff([]string{"Licenses", "GPU memory, GiB"}, labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if response.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(page.Find("#row-0-others[open] #row-0-others-error").Text(), "Not a number") || page.Find(`#form-errors a[href="#row-0-others"]`).Length() != 1 {
		t.Errorf("%s: the error is %q; all: %q", response.Status, page.Find("#row-0-others-error").Text(), page.Find("#form-errors").Text())
	}
	if got := page.Find("#row-0-others summary").Text(); !strings.Contains(got, "some licenses, 1.5 GiB of GPU memory") {
		t.Errorf("the summary is %q", got)
	}
}

// No posted values cause an internal error.
func TestOddPosts(t *testing.T) {
	address := handlerstest.Serve(t, &handlerstest.Backend{}) + handlerstest.NewURL
	for _, typed := range []url.Values{
		{}, {"action": {"remove-row:99"}}, {"action": {"remove-row:-1"}}, {"action": {"reset:row-9-vcpu"}}, {"action": {"reset:"}}, {"action": {"\x00"}},
		{"row-99999999999999999999-type": {"x"}}, {"row--1-type": {"x"}}, {"row-0-type-type": {"x"}}, {"row-0-": {"x"}},
		handlerstest.AllocationForm("team", "\xff\xfe"), handlerstest.AllocationForm("row-0-vcpu", strings.Repeat("9", 100_000)), handlerstest.AllocationForm("row-0-memory", "."), handlerstest.AllocationForm("row-0-type", strings.Repeat("x", 100_000)),
		handlerstest.AllocationForm("team", "<script>alert(1)</script>"),
	} {
		response, page := handlerstest.Post(t, address, typed)
		if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%.80v answers %s", typed, response.Status)
		}
		if page.Find("script").Length() != 2 {
			t.Errorf("%.80v brings a script into the page", typed)
		}
	}
	many := handlerstest.AllocationForm("action", "preview")
	for i := range 1000 {
		many.Set(fmt.Sprintf("row-%d-type", i), "ml.g5.2xlarge")
	}
	if _, page := handlerstest.Post(t, address, many); page.Find(".row").Length() > 50 {
		t.Errorf("%d rows are rendered", page.Find(".row").Length())
	}
}
