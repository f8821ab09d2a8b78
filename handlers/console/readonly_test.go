package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/spec/manifest"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"
)

// managed returns a backend whose objects are applied by Flux and Argo CD.
func managed() *handlerstest.Backend {
	a := handlerstest.FullAllocation()
	a.Labels = map[string]string{"kustomize.toolkit.fluxcd.io/name": "teams", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}
	d := handlerstest.WithAllocations(a)
	p := handlerstest.RankedPolicy()
	p.Annotations["argocd.argoproj.io/tracking-id"] = "governance:kuota.dev/ClusterPolicy:argocd/default"
	d.PolicyBackend.Policy = p
	return d
}

const (
	byFlux = "Team vision is managed by Flux (Kustomization flux-system/teams)."
	byArgo = "The cluster policy is managed by Argo CD (Application governance)."
)

func TestManagedObjectsAreShown(t *testing.T) {
	address := handlerstest.Serve(t, managed())
	_, page := handlerstest.Get(t, address+"/policies")
	htmlcheck.Page(t, page)
	if text := handlerstest.Text(page.Find("#allocation-vision")); !strings.Contains(text, "Managed by Flux (Kustomization flux-system/teams)") || page.Find(".row-actions a").Length() != 0 {
		t.Errorf("the row shows %q", text)
	}
	if text := handlerstest.Text(page.Find("#cluster-policy")); !strings.Contains(text, byArgo) || strings.Contains(text, "Edit policy") {
		t.Errorf("the card shows %q", text)
	}
	_, page = handlerstest.Get(t, address+"/policies/allocations/vision")
	if text := handlerstest.Text(page.Find("main")); !strings.Contains(text, byFlux) || page.Find(".page-head .btn").Length() != 0 {
		t.Errorf("the page shows %q", text)
	}
	for path, want := range map[string]string{"/policies/allocations/vision/edit": byFlux, "/policies/allocations/vision/delete": byFlux, "/policies/cluster/edit": byArgo} {
		response, page := handlerstest.Get(t, address+path)
		htmlcheck.Page(t, page)
		if text := handlerstest.Text(page.Find(".notice")); response.StatusCode != http.StatusOK || !strings.Contains(text, want) || page.Find("form.form").Length() != 0 || !strings.Contains(page.Find("#managed-yaml").Text(), "apiVersion: kuota.dev/v1alpha1") {
			t.Errorf("%s answers %s: %q", path, response.Status, text)
		}
	}
}

// A form that is sent anyway is not saved. The answer contains it as YAML.
func TestManagedObjectsAreNotChanged(t *testing.T) {
	d := managed()
	address := handlerstest.Serve(t, d)
	// Forms that were opened before the object was managed.
	plain := handlerstest.WithAllocations(handlerstest.FullAllocation())
	plain.PolicyBackend.Policy = handlerstest.RankedPolicy()
	open := handlerstest.Serve(t, plain)
	_, page := handlerstest.Get(t, open+handlerstest.EditURL)
	edit := handlerstest.ValuesIn(page, "#allocation-form")
	edit.Set("action", "save")
	edit.Set("weight", "77")
	_, page = handlerstest.Get(t, open+handlerstest.PolicyURL)
	policy := handlerstest.ValuesIn(page, "#policy-form")
	policy.Set("action", "save")
	policy.Set("class-0-weight", "77")
	for path, sent := range map[string]url.Values{
		handlerstest.EditURL: edit, handlerstest.PolicyURL: policy,
		"/policies/allocations/vision/delete": {"action": {"delete"}, "confirm": {"vision"}, "version": {"7"}, "generation": {"3"}},
	} {
		response, page := handlerstest.Post(t, address+path, sent)
		htmlcheck.Page(t, page)
		text := handlerstest.Text(page.Find("main"))
		if response.StatusCode != http.StatusForbidden || !strings.Contains(text, "Nothing was changed.") || !strings.Contains(text, "is managed by") {
			t.Errorf("%s answers %s: %s", path, response.Status, text)
		}
		if sent.Get("action") == "save" && !strings.Contains(page.Find("#managed-yaml").Text(), ": 77\n") {
			t.Errorf("%s gives back %s", path, page.Find("#managed-yaml").Text())
		}
	}
	if len(d.Updated)+len(d.Deletions)+len(d.PolicyBackend.Saved) > 0 {
		t.Error("something was saved")
	}
	changed := handlerstest.FullAllocation()
	changed.Spec.FairShareWeight = 78
	_, page = handlerstest.Post(t, address+handlerstest.ImportURL, url.Values{"text": {manifest.AllocationYAML(&changed)}})
	if !strings.Contains(handlerstest.Text(page.Find(".notice")), byFlux) || page.Find("#managed-yaml").Text() != manifest.AllocationYAML(&changed) {
		t.Errorf("an import answers %s", handlerstest.Text(page.Find("main")))
	}
}
