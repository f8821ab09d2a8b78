package e2e_test

import (
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/playwright-community/playwright-go"
)

const neuron = "aws.amazon.com/neurondevice"

// TestDashboard checks that the dashboard updates the usage of teams without a reload,
// draws the usage over time, and links to the list of teams, whose filter and order
// are part of the address.
func TestDashboard(t *testing.T) {
	t.Parallel()
	trainiumNode(t, "ml.trn1n.32xlarge")
	c := clustertest.Get(t)
	console(t)
	team := makePoolTeam(t, "ml.trn1n.32xlarge", "board", "accelerators: 8")
	c.Apply(t, neuronJob(team, "half", 4))

	page := visit(t, playwright.BrowserNewContextOptions{})
	open(t, page, "/?"+url.Values{"resource": {neuron}, "tq": {team}, "range": {"1h"}}.Encode())
	row := page.Locator("#team-" + team)
	must(t, expect.Locator(row).ToContainText(regexp.MustCompile(`8\s*4\s*0\s*0\s*50\.00 %`)))
	must(t, expect.Locator(row.Locator("svg")).ToHaveAttribute("aria-label", team+": 4 of 8"))
	must(t, expect.Locator(page.Locator("#pools-table")).ToContainText("ml.trn1n.32xlarge"))
	markLoaded(t, page)
	c.Apply(t, neuronJob(team, "rest", 3))
	must(t, expect.Locator(row).ToContainText("87.50 %"))
	must(t, expect.Locator(row.Locator("svg")).ToHaveAttribute("aria-label", team+": 7 of 8"))
	notReloaded(t, page)
	testChart(t, page)

	must(t, page.Locator("#trends").GetByRole("link", playwright.LocatorGetByRoleOptions{Name: "By team"}).Click())
	must(t, expect.Page(page).ToHaveURL(regexp.MustCompile(`by=team.*#trends$`)))
	must(t, expect.Locator(page.Locator(`#trends [aria-current="true"]`)).ToHaveText("By team"))
	must(t, page.GetByRole("link", playwright.PageGetByRoleOptions{Name: "All teams"}).Click())
	must(t, page.Locator("#q").Fill(team))
	must(t, page.Locator("#q").Press("Enter"))
	must(t, expect.Locator(page.Locator("#team-list tbody tr")).ToHaveCount(1))
	must(t, page.GetByRole("link", playwright.PageGetByRoleOptions{Name: "Used", Exact: playwright.Bool(true)}).Click())
	must(t, expect.Page(page).ToHaveURL(regexp.MustCompile(`/teams\?order=desc&q=`+team+`&resource=.*&sort=held$`)))
	must(t, expect.Locator(page.Locator(`th[aria-sort="descending"]`)).ToContainText("Used"))
	must(t, page.Locator("#team-"+team).GetByRole("link", playwright.LocatorGetByRoleOptions{Name: team}).Click())
	must(t, expect.Page(page).ToHaveURL(regexp.MustCompile("/teams/"+team+"$")))

	t.Run("appearance", func(t *testing.T) { testDashboardAppearance(t, visit(t, playwright.BrowserNewContextOptions{})) })
	t.Run("without JavaScript", func(t *testing.T) {
		plain := visit(t, playwright.BrowserNewContextOptions{JavaScriptEnabled: playwright.Bool(false)})
		open(t, plain, "/?range=1h&resource="+url.QueryEscape(neuron)+"&tq="+team)
		must(t, expect.Locator(plain.Locator("#team-"+team)).ToContainText("87.50 %"))
		must(t, expect.Locator(plain.Locator("#held-chart-table")).ToBeVisible())
		must(t, expect.Locator(plain.Locator("#held-chart-plot")).ToBeHidden())
		must(t, plain.Locator("#time").GetByRole("link", playwright.LocatorGetByRoleOptions{Name: "The last 24 hours"}).Click())
		must(t, expect.Page(plain).ToHaveURL(regexp.MustCompile("range=24h.*tq="+team)))
		screenshot(t, plain, "dashboard-without-javascript")
	})
}

// testChart reads values from the chart with the keyboard, and checks that the table
// below has values too.
func testChart(t *testing.T, page playwright.Page) {
	t.Helper()
	caption, plot := page.Locator("#held-chart .chart-words"), page.Locator("#held-chart-plot")
	latest := regexp.MustCompile(`Capacity \d`)            // an average, which includes nodes that joined in the meantime
	must(t, expect.Locator(caption).ToContainText(latest)) // once history has a complete step
	must(t, expect.Locator(plot.Locator("canvas")).ToBeVisible())
	must(t, plot.Focus())
	must(t, page.Keyboard().Press("Home"))
	must(t, expect.Locator(caption).ToContainText("Capacity no data"))
	must(t, plot.Blur()) // back to the latest value
	must(t, expect.Locator(caption).ToContainText(latest))
	table := page.Locator("#held-chart-figures")
	must(t, expect.Locator(table.Locator("table")).ToBeHidden())
	must(t, table.Locator("summary").Click())
	must(t, expect.Locator(table.Locator("tbody tr", playwright.LocatorLocatorOptions{HasNotText: "no data"})).Not().ToHaveCount(0))
}

// testDashboardAppearance checks the dashboard and the list of teams in light, dark and
// narrow windows.
func testDashboardAppearance(t *testing.T, page playwright.Page) {
	for name, path := range map[string]string{"dashboard": "/?range=1h", "dashboard-range": "/?from=x", "teams": "/teams"} {
		open(t, page, path)
		must(t, page.Locator("#figure-help summary").Click())
		if name != "teams" {
			must(t, expect.Locator(page.Locator("#held-chart canvas")).ToBeVisible())
			must(t, expect.Locator(page.Locator("#trends canvas")).ToHaveCount(4))
			must(t, expect.Locator(page.Locator("#trends canvas").First()).ToBeVisible())
		}
		checkAppearance(t, page, name)
	}
	testPrint(t, page)
}

// testPrint prints an open page after its color scheme has changed.
func testPrint(t *testing.T, page playwright.Page) {
	t.Helper()
	open(t, page, "/?range=1h")
	canvas := page.Locator("#held-chart canvas")
	must(t, expect.Locator(canvas).ToBeVisible())
	must(t, page.EmulateMedia(playwright.PageEmulateMediaOptions{ColorScheme: playwright.ColorSchemeDark}))
	must(t, expect.Locator(canvas).ToBeVisible())
	_, err := page.PDF(playwright.PagePdfOptions{Path: playwright.String(filepath.Join(artefacts(), "dashboard.pdf"))})
	must(t, err)
	must(t, expect.Locator(canvas).ToHaveCount(1))
}

// TestDashboardCSV checks the header of the CSV of each section.
func TestDashboardCSV(t *testing.T) {
	t.Parallel()
	client := user(t, console(t), "admin")
	for path, header := range map[string]string{"/capacity.csv": "pool,resource,unit,", "/teams.csv": "team,name,namespace,", "/classes.csv": "priority class,running,"} {
		if status, body := fetch(t, client, console(t)+path); status != 200 || !strings.HasPrefix(body, header) {
			t.Errorf("%s: got status %d and %.100s, want 200 and header %s", path, status, body, header)
		}
	}
}
