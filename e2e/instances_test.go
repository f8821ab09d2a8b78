package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/playwright-community/playwright-go"
)

// TestInstancesTeamAndPastTask watches open pages while a node is cordoned and a task
// is deleted: the instances, the team's usage and queue, and the page of the deleted
// task. The updates keep what is typed into the form on the team's page.
func TestInstancesTeamAndPastTask(t *testing.T) {
	t.Parallel()
	trainiumNode(t, "ml.trn2.48xlarge")
	c := clustertest.Get(t)
	console(t)
	team := makePoolTeam(t, "ml.trn2.48xlarge", "usage", "accelerators: 8")
	c.Apply(t, neuronJob(team, "holder", 6))
	c.Apply(t, neuronJob(team, "waiter", 14))

	nodes := visit(t, playwright.BrowserNewContextOptions{})
	open(t, nodes, "/instances?pool=ml.trn2.48xlarge")
	markLoaded(t, nodes)
	row := nodes.Locator("#nodes-table tr", playwright.PageLocatorOptions{HasText: "trn2"}).First()
	must(t, expect.Locator(row).ToContainText(team))
	must(t, row.Locator("summary").Click())
	must(t, expect.Locator(row.Locator(".facts").First()).ToContainText("6 Neuron devices"))
	node, err := row.Locator(".name").TextContent()
	must(t, err)
	t.Cleanup(func() { _, _ = c.TryKubectl("", "uncordon", node) })
	c.Kubectl(t, "", "cordon", node)
	must(t, expect.Locator(row).ToContainText("Cordoned"))
	must(t, expect.Locator(nodes.Locator("#pool-figures")).ToContainText("1 cordoned"))
	c.Kubectl(t, "", "uncordon", node)
	must(t, expect.Locator(row).ToContainText("Ready"))
	must(t, expect.Locator(row.Locator(".facts").First()).ToBeVisible()) // an update keeps the open details
	notReloaded(t, nodes)

	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error { // until RBAC allows the member
		if status, _ := fetch(t, user(t, console(t), "ada"), console(t)+"/teams/"+team); status != http.StatusOK {
			return fmt.Errorf("page of the team: got status %d, want 200", status)
		}
		return nil
	})
	page := visitAsAda(t, playwright.BrowserNewContextOptions{})
	open(t, page, "/teams/"+team+"?range=1h")
	markLoaded(t, page)
	must(t, expect.Locator(page.Locator("#team-shares")).ToContainText("75.00 %"))
	must(t, expect.Locator(page.Locator("#team-queue")).ToContainText("waiter"))
	c.Kubectl(t, "", "delete", "job", "-n", "hyperpod-ns-"+team, "holder", "waiter")
	must(t, expect.Locator(page.Locator("#team-queue")).ToContainText("No tasks are waiting"))
	must(t, expect.Locator(page.Locator("#team-shares")).ToContainText("0.00 %"))
	notReloaded(t, page)

	past := "/tasks/hyperpod-ns-" + team + "/job/holder"
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error { // until history has recorded it
		if status, body := fetch(t, user(t, console(t), "ada"), console(t)+past); status != http.StatusOK || !strings.Contains(body, "past-facts") {
			return fmt.Errorf("page of the deleted task: got status %d, want 200 with past-facts", status)
		}
		return nil
	})
	for _, path := range []string{past, "/teams/" + team, "/tasks/past", "/tasks/past.csv", "/instances", "/instances.csv", "/teams/" + team + "/usage.csv"} {
		if status, body := fetch(t, user(t, console(t), "grace"), console(t)+path); strings.Contains(body, team) && !strings.HasPrefix(path, "/teams/") || status >= 500 {
			t.Errorf("%s for a member of another team: got status %d, want no server error and no name of the team", path, status)
		}
	}
	checkPages(t, map[string]string{
		"instances": "/instances", "instances-found": "/instances?q=" + team, "team-used": "/teams/" + team + "?range=1h", "past": "/tasks/past?team=" + team, "past-task": past,
	}, map[string]string{
		"instances": "#nodes-table", "instances-found": "#nodes", "team-used": "#team-history", "past": "#past-table", "past-task": "#past-facts",
	})
}

// checkPages checks each page in light, dark and narrow windows and without
// JavaScript. visible maps the name of a page to an element that it must show.
func checkPages(t *testing.T, pages, visible map[string]string) {
	for name, path := range pages {
		for variant, script := range map[string]bool{name: true, name + "-noscript": false} {
			t.Run(variant, func(t *testing.T) {
				page := visit(t, playwright.BrowserNewContextOptions{JavaScriptEnabled: playwright.Bool(script)})
				open(t, page, path)
				must(t, expect.Locator(page.Locator(visible[name])).ToBeVisible())
				if script {
					checkAppearance(t, page, name)
					return
				}
				fits(t, page, variant)
				screenshot(t, page, variant)
			})
		}
	}
}
