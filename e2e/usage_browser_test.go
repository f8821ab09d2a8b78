package e2e_test

import (
	"context"
	"encoding/csv"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/playwright-community/playwright-go"
)

// TestUsagePage shows the usage of a team that borrows on the page of usage, to an admin
// with the capacity, and to a member without it, and in the file.
func TestUsagePage(t *testing.T) {
	t.Parallel()
	c := clustertest.Get(t)
	console(t)
	const instanceType = "ml.trn1.usage"
	trainiumNode(t, instanceType)
	first, second := makePoolTeam(t, instanceType, "usage-a", "accelerators: 8"), makePoolTeam(t, instanceType, "usage-b", "accelerators: 8")
	for team, devices := range map[string]int{first: 4, second: 2} {
		c.Apply(t, neuronJob(team, "holder", devices))
		runsSoon(t, team, "holder")
	}
	const query = "?resource=aws.amazon.com/neurondevice&pool=" + instanceType
	ada, admin := user(t, console(t), "ada"), user(t, console(t), "admin")
	for _, client := range []*http.Client{ada, admin} {
		clustertest.Eventually(t, clustertest.Patience, func(context.Context) error { // until it is recorded
			if status, body := fetch(t, client, console(t)+"/usage.csv"+query); status != http.StatusOK || !strings.Contains(body, ",team,"+first+",") || !strings.Contains(body, ",team,"+second+",") {
				return fmt.Errorf("usage: got status %d, want 200 with %s and %s", status, first, second)
			}
			return nil
		})
	}
	_, body := fetch(t, admin, console(t)+"/usage.csv"+query)
	rows, err := csv.NewReader(strings.NewReader(body)).ReadAll()
	must(t, err)
	kinds := map[string]int{}
	for _, row := range rows[1:] {
		kinds[row[5]]++
	}
	if kinds["idle"] == 0 || kinds["team"] < 2 {
		t.Errorf("usage.csv of the admin: got %v, want idle and two teams", kinds)
	}
	page := visitAsAda(t, playwright.BrowserNewContextOptions{})
	open(t, page, "/usage"+query)
	must(t, expect.Locator(page.Locator("#usage-team-"+first)).ToBeVisible())
	must(t, expect.Locator(page.Locator("#usage-capacity")).ToHaveCount(0))
	must(t, expect.Locator(page.Locator("#usage")).Not().ToContainText("Idle"))
	must(t, expect.Locator(page.Locator("nav [aria-current]")).ToHaveText("Reports"))
	must(t, expect.Locator(page.Locator(".page-tabs [aria-current]")).ToHaveText("Usage"))

	must(t, page.GetByLabel("Time zone").Fill("Mars"))
	must(t, page.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Show", Exact: playwright.Bool(true)}).Click())
	must(t, expect.Locator(page.Locator("#zone-error")).ToContainText("There is no such time zone"))
	must(t, expect.Locator(page.GetByLabel("Time zone")).ToHaveValue("Mars"))
	must(t, page.GetByLabel("Time zone").Fill("Europe/Berlin"))
	must(t, page.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Show", Exact: playwright.Bool(true)}).Click())
	must(t, expect.Locator(page.Locator("#usage-summary")).ToContainText("Europe/Berlin"))
	checkAppearance(t, page, "usage")
}

// TestUsagePricesAndRows shows what the tasks of a team used, by each kind of rows, and what
// that cost, on the page, in the files, and on paper.
func TestUsagePricesAndRows(t *testing.T) {
	c := clustertest.Get(t)
	console(t)
	noPolicy(t)
	const instanceType = "ml.trn1.priced"
	c.Apply(t, `{"apiVersion":"kuota.dev/v1alpha1","kind":"ClusterPolicy","metadata":{"name":"default"},"spec":{"prices":{"currency":"EUR","hourly":[{"pool":"`+instanceType+`","resource":"aws.amazon.com/neurondevice","from":"2026-01-01","own":"3600"}]}}}`)
	trainiumNode(t, instanceType)
	team := makePoolTeam(t, instanceType, "priced", "accelerators: 8")
	c.Apply(t, neuronJob(team, "spends", 4))
	runsSoon(t, team, "spends")
	const query = "?resource=aws.amazon.com/neurondevice&pool=" + instanceType
	admin := user(t, console(t), "admin")
	for _, rows := range []string{"", "class", "kind", "person", "task"} {
		clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
			status, body := fetch(t, admin, console(t)+"/usage.json"+query+"&rows="+rows)
			want := map[string]string{"": `"cost":`, "class": `"row":"tasks"`, "kind": `"taskKind":"Job"`, "person": `"person":"kubernetes-admin"`, "task": `"task":"spends"`}[rows]
			if status != http.StatusOK || !strings.Contains(body, want) {
				return fmt.Errorf("usage by %q: got status %d without %s: %.300s", rows, status, want, body)
			}
			return nil
		})
	}
	page := visit(t, playwright.BrowserNewContextOptions{})
	open(t, page, "/usage"+query)
	must(t, expect.Locator(page.Locator("#usage-cost")).ToContainText("EUR"))
	must(t, expect.Locator(page.Locator("#usage-team-table thead")).ToContainText("Cost, EUR"))
	must(t, expect.Locator(page.Locator("#usage-summary")).ToContainText("by 1 price of the cluster policy"))
	checkAppearance(t, page, "usage-prices")
	_, err := page.PDF(playwright.PagePdfOptions{Path: playwright.String(filepath.Join(artefacts(), "usage.pdf"))})
	must(t, err)
	for rows, want := range map[string]string{"class": "No priority class", "kind": "Job", "person": "kubernetes-admin", "task": "spends"} {
		_, err := page.Locator("#rows").SelectOption(playwright.SelectOptionValues{Values: &[]string{rows}})
		must(t, err)
		must(t, page.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Show", Exact: playwright.Bool(true)}).Click())
		must(t, expect.Locator(page.Locator("#usage-team-table tbody")).ToContainText(want))
	}
	open(t, page, "/usage"+query+"&rows=task")
	checkAppearance(t, page, "usage-rows")
	must(t, page.Locator("#usage-team-table tbody a").First().Click())
	must(t, expect.Locator(page.Locator("h1")).ToHaveText("spends"))
}
