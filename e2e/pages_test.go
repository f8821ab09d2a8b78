package e2e_test

import (
	"testing"

	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/playwright-community/playwright-go"
)

// TestPages checks that every page is accessible and fits the window in light, dark and
// narrow windows, and stores a screenshot of each.
func TestPages(t *testing.T) {
	t.Parallel()
	c := clustertest.Get(t)
	team, invalid := clustertest.Name("language"), clustertest.Name("speech")
	deleteTeamAtEnd(t, team)
	deleteTeamAtEnd(t, invalid)
	console(t) // its controllers create the namespace of the tasks
	c.Apply(t, `
apiVersion: kuota.dev/v1alpha1
kind: ComputeAllocation
metadata: {name: `+team+`}
spec:
  displayName: Language models
  fairShareWeight: 30
  quota:
  - {instanceType: ml.p5.48xlarge, accelerators: 4}
  - {instanceType: ml.g6.12xlarge, accelerators: 2, vCPU: 48}
---
apiVersion: kuota.dev/v1alpha1
kind: ComputeAllocation
metadata: {name: `+invalid+`}
spec:
  quota: [{instanceType: ml.p5.48xlage, accelerators: 4}]
  sharing: {strategy: Lend}
`)
	waitForQueues(t, c, team)
	for _, job := range []string{"pretrain", "evaluate"} {
		c.Apply(t, jobManifest(team, job, 2))
	}
	c.Apply(t, jobManifest(team, "tuning", 16))

	pages := []struct {
		name, path string
		prepare    func(*testing.T, playwright.Page)
	}{
		{"tasks", "/tasks", func(t *testing.T, page playwright.Page) {
			must(t, expect.Locator(page.Locator("#tasks-table tbody tr")).Not().ToHaveCount(0)) // other tests have tasks too
		}},
		{"tasks-filtered", "/tasks?status=Pending&team=" + team, func(t *testing.T, page playwright.Page) {
			must(t, expect.Locator(page.Locator("#tasks-table tbody tr")).ToHaveCount(1))
		}},
		{"task", "/tasks/hyperpod-ns-" + team + "/job/tuning", func(t *testing.T, page playwright.Page) {
			must(t, expect.Locator(page.Locator("#task-why")).ToContainText("can never have that much"))
			must(t, expect.Locator(page.Locator("#task-said")).ToContainText("ExceedsMaxQuota"))
		}},
		{"team", "/teams/" + team, nil},
		{"submit", "/teams/" + team + "/submit", nil},
		{"policies", "/policies?q=" + invalid, func(t *testing.T, page playwright.Page) {
			must(t, expect.Locator(page.Locator("tr", playwright.PageLocatorOptions{HasText: invalid})).ToContainText("Not ready"))
		}},
		{"allocation-new", "/policies/allocations/new", nil},
		{"allocation-filled", "/policies/allocations/new", fillForm},
		{"allocation-wrong", "/policies/allocations/new", func(t *testing.T, page playwright.Page) {
			fillForm(t, page)
			must(t, page.Locator("#team").Fill("Upper Case"))
			must(t, page.Locator("#"+poolRow(t, page, "ml.g6.12xlarge")+"-vcpu").Fill("1Ki"))
			must(t, page.Locator("#borrow-percent").Fill("10001"))
			must(t, page.Locator("#allocation-form .btn[value=review]").Click())
			must(t, expect.Locator(page.Locator("#form-errors")).ToContainText("Team name"))
		}},
		{"allocation-review", "/policies/allocations/new", func(t *testing.T, page playwright.Page) {
			fillForm(t, page)
			review(t, page)
		}},
		{"allocation", "/policies/allocations/" + team, nil},
		{"allocation-edit", "/policies/allocations/" + team + "/edit", nil},
		{"allocation-review-edit", "/policies/allocations/" + team + "/edit", func(t *testing.T, page playwright.Page) {
			must(t, page.Locator("#row-0-accelerators").Fill("1"))
			must(t, page.Locator("#unlimited").Check())
			review(t, page)
			must(t, page.Locator("#review-objects summary").Click())
		}},
		{"allocation-conflict", "/policies/allocations/" + team + "/edit", func(t *testing.T, page playwright.Page) {
			openMore(t, page)
			must(t, page.Locator("#weight").Fill("77"))
			changeWeight(t, team)
			must(t, page.Locator("#allocation-form .btn[value=review]").Click())
			must(t, expect.Locator(page.Locator("#conflict")).ToContainText("77"))
		}},
		{"allocation-delete", "/policies/allocations/" + team + "/delete", nil},
		{"version", "/policies/allocations/" + team + "/revisions/1", nil},
		{"adoption", "/policies/adopt", nil},
		{"import", "/policies/import", func(t *testing.T, page playwright.Page) {
			must(t, page.Locator("textarea").Fill(`{"SchedulerConfig": {"PriorityClasses": [{"Name": "a", "Weight": 900}], "Tags": 3`))
			must(t, page.Locator("main form .btn-primary").Click())
			must(t, expect.Locator(page.Locator("main")).ToContainText("JSON"))
		}},
		{"imported", "/policies/import", func(t *testing.T, page playwright.Page) {
			must(t, page.Locator("textarea").Fill(`{"Name": "n", "ClusterArn": "arn", "ComputeQuotaConfig": {"ComputeQuotaResources": [{"InstanceType": "ml.g6.12xlarge", "Accelerators": 2, "Turbo": true}]}, "ComputeQuotaTarget": {"TeamName": "brought"}}`))
			must(t, page.Locator("main form .btn-primary").Click())
			must(t, expect.Locator(page.Locator("#allocation-form")).ToContainText("Turbo"))
			must(t, expect.Locator(page.Locator("#team")).ToHaveValue("brought"))
		}},
		{"settings", "/settings", func(t *testing.T, page playwright.Page) {
			must(t, expect.Locator(page.Locator("#settings-kueue")).ToContainText("0.19"))
		}},
		{"not-found", "/nowhere", nil},
	}
	for _, p := range pages {
		t.Run(p.name, func(t *testing.T) {
			// The browser's console reports the status of rejected and missing pages,
			// which these cases expect.
			page := visit(t, playwright.BrowserNewContextOptions{}, "status of 404", "status of 422", "status of 409")
			open(t, page, p.path)
			if p.prepare != nil {
				p.prepare(t, page)
			}
			checkAppearance(t, page, p.name)
		})
	}
}

// fillForm fills in the form of a valid allocation with two rows.
func fillForm(t *testing.T, page playwright.Page) {
	must(t, page.Locator("#team").Fill("robotics"))
	h100, l4 := poolRow(t, page, "ml.p5.48xlarge"), poolRow(t, page, "ml.g6.12xlarge")
	must(t, page.Locator("#"+h100+"-accelerators").Fill("14"))
	placeholder(t, page, h100+"-vcpu", "336")
	must(t, page.Locator("#"+l4+"-accelerators").Fill("1"))
	must(t, page.Locator("#"+l4+"-rest summary").Click())
	must(t, page.Locator("#"+l4+"-vcpu").Fill("24"))
	placeholder(t, page, l4+"-memory", "96")
}
