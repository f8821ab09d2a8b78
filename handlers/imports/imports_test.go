package imports_test

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/spec/manifest"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
)

func example(t *testing.T, n string) string {
	t.Helper()
	text, err := os.ReadFile("../../governance/imports/testdata/example-" + n + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// upload sends a form as browsers do where it has a file.
func upload(t *testing.T, address, text, file string) (*http.Response, *goquery.Document) {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	_ = form.WriteField("text", text)
	part, err := form.CreateFormFile("file", "quota.json")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = part.Write([]byte(file))
	form.Close()
	response, err := handlerstest.Client.Post(address, form.FormDataContentType(), &body)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	page, err := goquery.NewDocumentFromReader(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, page
}

// The form of a new allocation has the values of HyperPod's quota, with what
// was not carried over, and is saved from there.
func TestImportOpensTheForm(t *testing.T) {
	for name, send := range map[string]func(t *testing.T, address, text string) (*http.Response, *goquery.Document){
		"pasted": func(t *testing.T, address, text string) (*http.Response, *goquery.Document) {
			return handlerstest.Post(t, address, url.Values{"text": {text}, "action": {"read"}})
		},
		"as a file": func(t *testing.T, address, text string) (*http.Response, *goquery.Document) {
			return upload(t, address, "", text)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := &handlerstest.Backend{}
			address := handlerstest.Serve(t, d)
			response, page := send(t, address+handlerstest.ImportURL, example(t, "3"))
			htmlcheck.Page(t, page)
			form := page.Find("#allocation-form")
			if response.StatusCode != http.StatusOK || form.AttrOr("action", "") != handlerstest.NewURL {
				t.Fatalf("the answer is %s: %s", response.Status, handlerstest.Text(page.Find("main")))
			}
			if text := handlerstest.Text(page.Find(".notice")); !strings.Contains(text, "Not imported: ClusterArn, ComputeQuotaArn, ComputeQuotaId") {
				t.Errorf("the notice shows %q", text)
			}
			values := handlerstest.ValuesIn(page, "#allocation-form")
			values.Set("action", "preview")
			if _, again := handlerstest.Post(t, address+handlerstest.NewURL, values); !strings.Contains(handlerstest.Text(again.Find(".notice")), "Not imported") {
				t.Error("the form forgets what was not carried over")
			}
			values.Set("action", "save")
			if response, page := handlerstest.Post(t, address+handlerstest.NewURL, values); response.StatusCode != http.StatusSeeOther {
				t.Fatalf("the save answers %s: %s", response.Status, handlerstest.Text(page.Find("main")))
			}
			a := d.Created[0]
			if a.Name != "onlygputeam" || a.Spec.DisplayName != "only-gpu-quota" || *a.Spec.Quota[0].Accelerators != 2 || a.Spec.Quota[0].VCPU.String() != "48" || *a.Spec.Sharing.BorrowLimitPercent != 50 || a.Spec.FairShareWeight != 10 {
				t.Errorf("created %+v", a)
			}
		})
	}
}

// Taken as YAML from its page, brought in elsewhere and saved from the form, an
// allocation is the same, to the byte.
func TestExportedIsImportedAsTheSame(t *testing.T) {
	want := handlerstest.FullAllocation()
	bytes := resource.MustParse("1395864371")
	want.Spec.Quota[0].Memory = &bytes
	want.Spec.Activation = v1alpha1.Hold
	address := handlerstest.Serve(t, handlerstest.WithAllocations(want))
	_, page := handlerstest.Get(t, address+"/policies/allocations/vision")
	htmlcheck.Page(t, page)
	shown := page.Find("#detail-yaml-text").Text()
	response, err := handlerstest.Client.Get(address + "/policies/allocations/vision/yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var file strings.Builder
	if _, err := (&file).WriteString(handlerstest.ReadAll(t, response)); err != nil || shown != file.String() || shown != manifest.AllocationYAML(&want) {
		t.Errorf("shown is %s, the file %s", shown, file.String())
	}
	if got := response.Header.Get("Content-Disposition"); got != `attachment; filename="vision.yaml"` {
		t.Errorf("the file is sent as %q", got)
	}

	d := &handlerstest.Backend{}
	d.Pools = handlerstest.WithAllocations().Pools
	elsewhere := handlerstest.Serve(t, d)
	_, page = handlerstest.Post(t, elsewhere+handlerstest.ImportURL, url.Values{"text": {shown}})
	values := handlerstest.ValuesIn(page, "#allocation-form")
	values.Set("action", "review")
	_, review := handlerstest.Post(t, elsewhere+handlerstest.NewURL, values)
	values = handlerstest.ValuesIn(review, "#review-form")
	values.Set("action", "save")
	if response, page := handlerstest.Post(t, elsewhere+handlerstest.NewURL, values); response.StatusCode != http.StatusSeeOther {
		t.Fatalf("the save answers %s: %s", response.Status, handlerstest.Text(page.Find("main")))
	}
	if diff := cmp.Diff(want.Spec, d.Created[0].Spec); diff != "" || d.Created[0].Name != "vision" {
		t.Errorf("(-was +is):\n%s", diff)
	}
}

// An existing team keeps the fields that HyperPod does not have, and opens in its
// edit form.
func TestImportOfAnExistingTeam(t *testing.T) {
	team := handlerstest.FullAllocation()
	team.Spec.QueueingStrategy, team.Spec.DefaultPriorityClass = v1alpha1.StrictFIFO, "training"
	d := handlerstest.WithAllocations(team)
	d.PolicyBackend.Policy = handlerstest.RankedPolicy()
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Post(t, address+handlerstest.ImportURL, url.Values{"text": {`{"ComputeQuotaConfig": {"ComputeQuotaResources": [{"InstanceType": "ml.g6.12xlarge", "Count": 1}]}, "ComputeQuotaTarget": {"TeamName": "vision"}}`}})
	htmlcheck.Page(t, page)
	if text := handlerstest.Text(page.Find(".notice")); !strings.Contains(text, "Team vision exists") {
		t.Errorf("the notice shows %q", text)
	}
	values := handlerstest.ValuesIn(page, "#allocation-form")
	values.Set("action", "save")
	if response, page := handlerstest.Post(t, address+handlerstest.EditURL, values); response.StatusCode != http.StatusSeeOther {
		t.Fatalf("the save answers %s: %s", response.Status, handlerstest.Text(page.Find("main")))
	}
	spec := d.Updated[0].Spec
	if len(spec.Members) != 2 || !spec.NamespaceCeiling || spec.Namespace != "research" || len(spec.Quota) != 1 || *spec.Quota[0].Instances != 1 || spec.FairShareWeight != 0 {
		t.Errorf("saved %+v", spec)
	}
	if spec.QueueingStrategy != v1alpha1.StrictFIFO || spec.DefaultPriorityClass != "training" || len(spec.Shares) != 2 || len(spec.Windows) != 2 || spec.Budget == nil {
		t.Errorf("lost what HyperPod does not have: %+v", spec)
	}
}

// A policy keeps the fields that HyperPod does not have.
func TestImportOfThePolicy(t *testing.T) {
	another := handlerstest.RankedPolicy()
	another.Spec.Resources = []v1alpha1.ListedResource{{Name: "example.com/license", Label: "licenses"}}
	for name, now := range map[string]*v1alpha1.ClusterPolicy{"the first": nil, "in place of another": another} {
		t.Run(name, func(t *testing.T) {
			d := &handlerstest.Backend{PolicyBackend: handlerstest.PolicyBackend{Policy: now}}
			address := handlerstest.Serve(t, d)
			_, page := handlerstest.Post(t, address+handlerstest.ImportURL, url.Values{"text": {example(t, "4")}})
			htmlcheck.Page(t, page)
			values := handlerstest.ValuesIn(page, "#policy-form")
			values.Set("action", "save")
			if response, page := handlerstest.Post(t, address+handlerstest.PolicyURL, values); response.StatusCode != http.StatusSeeOther {
				t.Fatalf("the save answers %s: %s", response.Status, handlerstest.Text(page.Find("main")))
			}
			spec := d.PolicyBackend.Saved[0].Spec
			if spec.TaskPrioritization != v1alpha1.TaskRanking || len(spec.PriorityClasses) != 4 || spec.PriorityClasses[0].Name != "inference" || *spec.PriorityClasses[0].Weight != 90 || spec.IdleCompute.ShareUnallocated {
				t.Errorf("saved %+v", spec)
			}
			if now != nil && (len(spec.Pools) != 4 || len(spec.Resources) != 1 || !spec.GangScheduling.Enabled || spec.Enforcement != v1alpha1.EnforcementNone || spec.PriorityClasses[0].Description != "Serves users") {
				t.Errorf("lost what HyperPod does not have: %+v", spec)
			}
		})
	}
}

// An import that does not mention unallocated compute says that it stops lending it.
func TestImportWithoutSharingWarns(t *testing.T) {
	const missing = "IdleResourceSharing: is missing, so saving turns off lending of unallocated compute."
	lending, not := handlerstest.RankedPolicy(), handlerstest.RankedPolicy()
	not.Spec.IdleCompute.ShareUnallocated = false
	for name, tc := range map[string]struct {
		now    *v1alpha1.ClusterPolicy
		config string
		want   bool
	}{
		"the policy lends it":    {lending, `{"FairShare": "Enabled"}`, true},
		"the import says so":     {lending, `{"FairShare": "Enabled", "IdleResourceSharing": "Disabled"}`, false},
		"the policy does not":    {not, `{"FairShare": "Enabled"}`, false},
		"there is no policy yet": {nil, `{"FairShare": "Enabled"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			address := handlerstest.Serve(t, &handlerstest.Backend{PolicyBackend: handlerstest.PolicyBackend{Policy: tc.now}})
			_, page := handlerstest.Post(t, address+handlerstest.ImportURL, url.Values{"text": {`{"SchedulerConfig": ` + tc.config + `}`}})
			if page.Find("#policy-form").Length() != 1 || strings.Contains(handlerstest.Text(page.Find(".notice")), missing) != tc.want {
				t.Errorf("the form shows %s", handlerstest.Text(page.Find(".notice")))
			}
			_, page = handlerstest.Post(t, address+handlerstest.ImportURL, url.Values{"text": {`[{"SchedulerConfig": ` + tc.config + `}, {"ComputeQuotaTarget": {"TeamName": "a"}, "ComputeQuotaConfig": {"ComputeQuotaResources": [{"InstanceType": "ml.g6.12xlarge", "Count": 1}]}}]`}})
			if page.Find("#imported-0").Length() != 1 || strings.Contains(handlerstest.Text(page.Find("#imported-0")), missing) != tc.want {
				t.Errorf("the list shows %s", handlerstest.Text(page.Find("#imported")))
			}
		})
	}
}

// The policy's YAML, imported, is the policy.
func TestExportedPolicyIsImportedAsTheSame(t *testing.T) {
	d := &handlerstest.Backend{PolicyBackend: handlerstest.PolicyBackend{Policy: handlerstest.RankedPolicy()}}
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+"/policies")
	shown := page.Find("#policy-yaml").Text()
	if shown != manifest.PolicyYAML(handlerstest.RankedPolicy()) {
		t.Errorf("the card shows %s", shown)
	}
	_, page = handlerstest.Post(t, address+handlerstest.ImportURL, url.Values{"text": {shown}})
	values := handlerstest.ValuesIn(page, "#policy-form")
	values.Set("action", "save")
	if response, page := handlerstest.Post(t, address+handlerstest.PolicyURL, values); response.StatusCode != http.StatusSeeOther {
		t.Fatalf("the save answers %s: %s", response.Status, handlerstest.Text(page.Find("main")))
	}
	if diff := cmp.Diff(handlerstest.RankedPolicy().Spec, d.PolicyBackend.Saved[0].Spec); diff != "" {
		t.Errorf("(-was +is):\n%s", diff)
	}
}

// Several objects are listed, and each opens in its form.
func TestImportOfSeveral(t *testing.T) {
	d := handlerstest.WithAllocations(handlerstest.FullAllocation())
	address := handlerstest.Serve(t, d)
	text := "[" + example(t, "1") + "," + example(t, "4") + `, {"ComputeQuotaTarget": {"TeamName": "vision", "X": 1}}, {"Y": 1}]`
	response, page := handlerstest.Post(t, address+handlerstest.ImportURL, url.Values{"text": {text}})
	htmlcheck.Page(t, page)
	if response.StatusCode != http.StatusOK || page.Find("#imported li[id]").Length() != 3 {
		t.Fatalf("the answer is %s: %s", response.Status, handlerstest.Text(page.Find("main")))
	}
	for selector, want := range map[string]string{
		"#imported-0": "onlygputeam2 Compute allocation", "#imported-2": `The team exists.`, "#imported-2 .not-taken": `unknown field "X"`, "main > form > .notice": `object 4: it is neither`,
	} {
		if got := handlerstest.Text(page.Find(selector)); !strings.Contains(got, want) {
			t.Errorf("%s shows %q, want %q", selector, got, want)
		}
	}
	for pick, want := range map[string]string{"0": handlerstest.NewURL, "1": handlerstest.PolicyURL, "2": handlerstest.EditURL} {
		_, page := handlerstest.Post(t, address+handlerstest.ImportURL, url.Values{"text": {page.Find("#text").Text()}, "pick": {pick}})
		if got := page.Find("#allocation-form, #policy-form").AttrOr("action", ""); got != want {
			t.Errorf("%s opens %q, want %q", pick, got, want)
		}
	}
}

// Text that cannot be read is shown again with the error.
func TestImportOfNothing(t *testing.T) {
	address := handlerstest.Serve(t, &handlerstest.Backend{}) + handlerstest.ImportURL
	for text, want := range map[string]string{
		"": "Paste a text, or choose a file.", "{": "not valid JSON from here", `{"a": "</textarea><script>alert(1)</script>"}`: "It is neither a compute quota",
	} {
		response, page := handlerstest.Post(t, address, url.Values{"text": {text}})
		htmlcheck.Page(t, page)
		if response.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(handlerstest.Text(page.Find("main")), want) || page.Find("#text").Text() != text {
			t.Errorf("%q answers %s: %s", text, response.Status, handlerstest.Text(page.Find("main")))
		}
	}
	if response, page := upload(t, address, "a", "b"); response.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(handlerstest.Text(page.Find("main")), "both were sent") {
		t.Errorf("text and file answer %s", response.Status)
	}
	if response, _ := upload(t, address, "", strings.Repeat(" ", 2<<20)); response.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("two megabytes answer %s", response.Status)
	}
	// The form that it opens shows its errors.
	_, page := handlerstest.Post(t, address, url.Values{"text": {`{"ComputeQuotaConfig": {"ComputeQuotaResources": [{"InstanceType": "ml.g6.12xlage", "Count": 1}]}, "ComputeQuotaTarget": {"TeamName": "New Team"}}`}})
	htmlcheck.Page(t, page)
	if text := handlerstest.Text(page.Find("#form-errors")); !strings.Contains(text, "did you mean ml.g6.12xlarge") || !strings.Contains(text, "Team name") {
		t.Errorf("the form shows %q", text)
	}
}

// A reader without write permission gets no import and no link to it.
func TestImportIsForAdmins(t *testing.T) {
	d := handlerstest.WithAllocations(handlerstest.FullAllocation())
	d.Reader, d.PolicyBackend.Reader = true, true
	address := handlerstest.Serve(t, d)
	if response, _ := handlerstest.Get(t, address+handlerstest.ImportURL); response.StatusCode != http.StatusNotFound {
		t.Errorf("a reader opens it: %s", response.Status)
	}
	if response, _ := handlerstest.Post(t, address+handlerstest.ImportURL, url.Values{"text": {example(t, "1")}}); response.StatusCode != http.StatusNotFound {
		t.Errorf("a reader imports: %s", response.Status)
	}
	if _, page := handlerstest.Get(t, address+"/policies"); page.Find(`a[href="`+handlerstest.ImportURL+`"]`).Length() != 0 {
		t.Error("a reader gets the link")
	}
	// Who may edit the policy only imports a policy only.
	d.PolicyBackend.Reader = false
	_, page := handlerstest.Post(t, address+handlerstest.ImportURL, url.Values{"text": {example(t, "1")}})
	if text := handlerstest.Text(page.Find("main")); page.Find("#allocation-form").Length() != 0 || !strings.Contains(text, "You are not allowed to save this.") {
		t.Errorf("the answer is %s", text)
	}
}
