package e2e_test

import (
	"context"
	"encoding/csv"
	"fmt"
	"net/http"
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
	must(t, expect.Locator(page.Locator("nav [aria-current]")).ToHaveText("Usage"))

	must(t, page.GetByLabel("Time zone").Fill("Mars"))
	must(t, page.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Show", Exact: playwright.Bool(true)}).Click())
	must(t, expect.Locator(page.Locator("#zone-error")).ToContainText("There is no such time zone"))
	must(t, expect.Locator(page.GetByLabel("Time zone")).ToHaveValue("Mars"))
	must(t, page.GetByLabel("Time zone").Fill("Europe/Berlin"))
	must(t, page.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Show", Exact: playwright.Bool(true)}).Click())
	must(t, expect.Locator(page.Locator("#usage-summary")).ToContainText("Europe/Berlin"))
	checkAppearance(t, page, "usage")
}
