package e2e_test

import (
	"context"
	"fmt"
	"regexp"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/google/go-cmp/cmp"
	"github.com/playwright-community/playwright-go"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestImportAndRestore imports a team from HyperPod, changes it with kubectl, and
// restores its first version. The history has all three versions, and the spec equals
// the first one.
func TestImportAndRestore(t *testing.T) {
	t.Parallel()
	for name, javaScript := range map[string]bool{"script": true, "plain": false} {
		t.Run(name, func(t *testing.T) {
			testImportAndRestore(t, playwright.BrowserNewContextOptions{JavaScriptEnabled: &javaScript})
		})
	}
}

func testImportAndRestore(t *testing.T, options playwright.BrowserNewContextOptions) {
	c := clustertest.Get(t)
	team := clustertest.Name("brought")
	deleteTeamAtEnd(t, team)
	page := visit(t, options)
	open(t, page, "/policies")
	must(t, page.GetByRole("link", playwright.PageGetByRoleOptions{Name: "Import", Exact: playwright.Bool(true)}).Click())
	must(t, page.Locator("textarea").Fill(fmt.Sprintf(`{"Name": "n", "ClusterArn": "arn", "ComputeQuotaConfig": {
		"ComputeQuotaResources": [{"InstanceType": "ml.g6.12xlarge", "Accelerators": 2}],
		"ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 75}, "PreemptTeamTasks": "LowerPriority"},
		"ComputeQuotaTarget": {"TeamName": %q, "FairShareWeight": 30}, "ActivationState": "Enabled"}`, team)))
	must(t, page.Locator("main form .btn-primary").Click())
	must(t, expect.Locator(page.Locator("#weight")).ToHaveValue("30"))
	review(t, page)
	must(t, page.Locator("#reason").Fill("moved from HyperPod"))
	must(t, button(page, "Create allocation").Click())
	must(t, expect.Page(page).ToHaveURL(regexp.MustCompile(`/policies\?created=`)))
	first := specOf(t, team)

	c.Kubectl(t, "", "patch", "computeallocation", team, "--type=merge", "-p", `{"spec":{"fairShareWeight":40,"sharing":{"borrowLimit":{"percent":10}}}}`)
	version := func(number string) playwright.Locator {
		return page.Locator("#history-table tbody tr").Filter(playwright.LocatorFilterOptions{Has: page.GetByRole("link", playwright.PageGetByRoleOptions{Name: "Version " + number})})
	}
	openUntilShown(t, page, "/policies/allocations/"+team, func() playwright.Locator { return version("2") })
	must(t, expect.Locator(version("1")).ToContainText("moved from HyperPod"))
	must(t, expect.Locator(version("2")).ToContainText("30 → 40"))
	must(t, version("1").GetByRole("link").Click())
	must(t, expect.Locator(page.Locator("main")).ToContainText("fairShareWeight: 30"))
	must(t, page.GetByRole("link", playwright.PageGetByRoleOptions{Name: "Restore this version"}).Click())
	must(t, expect.Locator(page.Locator("#weight")).ToHaveValue("30"))
	review(t, page)
	must(t, expect.Locator(page.Locator("#review-settings")).ToContainText("40"))
	must(t, button(page, "Save changes").Click())
	must(t, expect.Page(page).ToHaveURL(regexp.MustCompile(team+`\?saved=`)))
	if diff := cmp.Diff(first, specOf(t, team)); diff != "" {
		t.Errorf("spec after the restore (-want +got):\n%s", diff)
	}
	openUntilShown(t, page, "/policies/allocations/"+team, func() playwright.Locator { return version("3") })
	must(t, expect.Locator(version("3")).ToContainText("version 1"))
}

func specOf(t *testing.T, team string) v1alpha1.ComputeAllocationSpec {
	t.Helper()
	var a v1alpha1.ComputeAllocation
	must(t, clustertest.Get(t).Client.Get(t.Context(), client.ObjectKey{Name: team}, &a))
	return a.Spec
}

// openUntilShown loads a page until the element exists, for pages that do not update
// without JavaScript.
func openUntilShown(t *testing.T, page playwright.Page, path string, element func() playwright.Locator) {
	t.Helper()
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
		open(t, page, path)
		n, err := element().Count()
		if err == nil && n == 0 {
			err = fmt.Errorf("%s: got no such element, want one", path)
		}
		return err
	})
}
