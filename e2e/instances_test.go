package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/playwright-community/playwright-go"
)

// Instances, what a team has and holds, and what became of a task stand on pages
// that stay open: a node that is cordoned, a task that is deleted, and its page
// after that. What is typed into the form below outlasts all of it.
func TestInstancesTeamAndPastTask(t *testing.T) {
	t.Parallel()
	trainiumNode(t, "ml.trn2.48xlarge")
	c := clustertest.Get(t)
	console(t)
	team := shop(t, "ml.trn2.48xlarge", "usage", "accelerators: 8")
	c.Apply(t, neuronJob(team, "holder", 6))
	c.Apply(t, neuronJob(team, "waiter", 14))

	nodes := visit(t, playwright.BrowserNewContextOptions{})
	open(t, nodes, "/instances?pool=ml.trn2.48xlarge")
	leaveMark(t, nodes)
	row := nodes.Locator("#nodes-table tr", playwright.PageLocatorOptions{HasText: "trn2"}).First()
	must(t, see.Locator(row).ToContainText(team))
	must(t, row.Locator("summary").Click())
	must(t, see.Locator(row.Locator(".facts").First()).ToContainText("6 Neuron devices"))
	node, err := row.Locator(".name").TextContent()
	must(t, err)
	t.Cleanup(func() { _, _ = c.TryKubectl("", "uncordon", node) })
	c.Kubectl(t, "", "cordon", node)
	must(t, see.Locator(row).ToContainText("Cordoned"))
	must(t, see.Locator(nodes.Locator("#pool-figures")).ToContainText("1 cordoned"))
	c.Kubectl(t, "", "uncordon", node)
	must(t, see.Locator(row).ToContainText("Ready"))
	must(t, see.Locator(row.Locator(".facts").First()).ToBeVisible()) // what was unfolded stays so
	neverLoaded(t, nodes)

	clustertest.Eventually(t, 30*time.Second, func(context.Context) error { // until RBAC lets the member in
		if status, _ := fetch(t, person(t, console(t), "ada"), console(t)+"/teams/"+team); status != http.StatusOK {
			return fmt.Errorf("the team's page answers %d", status)
		}
		return nil
	})
	page := ada(t, playwright.BrowserNewContextOptions{})
	open(t, page, "/teams/"+team+"?range=1h")
	leaveMark(t, page)
	must(t, see.Locator(page.Locator("#team-shares")).ToContainText("75.00 %"))
	must(t, see.Locator(page.Locator("#team-queue")).ToContainText("waiter"))
	must(t, page.Locator("#submit-form #name").Fill("half-typed"))
	c.Kubectl(t, "", "delete", "job", "-n", "hyperpod-ns-"+team, "holder", "waiter")
	must(t, see.Locator(page.Locator("#team-queue")).ToContainText("No tasks are waiting"))
	must(t, see.Locator(page.Locator("#team-shares")).ToContainText("0.00 %"))
	must(t, see.Locator(page.Locator("#submit-form #name")).ToHaveValue("half-typed"))
	neverLoaded(t, page)

	gone := "/tasks/hyperpod-ns-" + team + "/job/holder"
	clustertest.Eventually(t, 30*time.Second, func(context.Context) error { // until it is written down
		if status, body := fetch(t, person(t, console(t), "ada"), console(t)+gone); status != http.StatusOK || !strings.Contains(body, "past-facts") {
			return fmt.Errorf("the page of what was deleted answers %d", status)
		}
		return nil
	})
	for _, path := range []string{gone, "/teams/" + team, "/tasks/past", "/tasks/past.csv", "/instances", "/instances.csv", "/teams/" + team + "/usage.csv"} {
		if status, body := fetch(t, person(t, console(t), "grace"), console(t)+path); strings.Contains(body, team) && !strings.HasPrefix(path, "/teams/") || status >= 500 {
			t.Errorf("%s answers a member of another team %d, with its name", path, status)
		}
	}
	pictures(t, map[string]string{
		"instances": "/instances", "instances-found": "/instances?q=" + team, "team-used": "/teams/" + team + "?range=1h", "past": "/tasks/past?team=" + team, "past-task": gone,
	}, map[string]string{
		"instances": "#nodes-table", "instances-found": "#nodes", "team-used": "#team-history", "past": "#past-table", "past-task": "#past-facts",
	})
}

// pictures looks at pages in light, dark, on a phone and without JavaScript.
func pictures(t *testing.T, pages, shows map[string]string) {
	for name, path := range pages {
		for look, options := range map[string]playwright.BrowserNewContextOptions{
			"light": {ColorScheme: playwright.ColorSchemeLight}, "dark": {ColorScheme: playwright.ColorSchemeDark},
			"390":      {ColorScheme: playwright.ColorSchemeLight, Viewport: &playwright.Size{Width: 390, Height: 844}},
			"noscript": {JavaScriptEnabled: playwright.Bool(false)},
		} {
			t.Run(name+"-"+look, func(t *testing.T) {
				page := visit(t, options)
				open(t, page, path)
				must(t, see.Locator(page.Locator(shows[name])).ToBeVisible())
				fits(t, page, name+"-"+look)
				if look != "noscript" { // axe is a script
					accessible(t, page, name+"-"+look)
				}
				picture(t, page, name+"-"+look)
			})
		}
	}
}
