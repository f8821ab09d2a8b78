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

// The dashboard follows what teams hold without being loaded anew, draws what was
// held, and leads to the list of teams, which is sorted and searched by its address.
func TestDashboard(t *testing.T) {
	t.Parallel()
	trainiumNode(t, "ml.trn1n.32xlarge")
	c := clustertest.Get(t)
	console(t)
	team := shop(t, "ml.trn1n.32xlarge", "board", "accelerators: 8")
	c.Apply(t, neuronJob(team, "half", 4))

	page := visit(t, playwright.BrowserNewContextOptions{})
	open(t, page, "/?"+url.Values{"resource": {neuron}, "tq": {team}, "range": {"1h"}}.Encode())
	row := page.Locator("#team-" + team)
	must(t, see.Locator(row).ToContainText(regexp.MustCompile(`8\s*4\s*0\s*0\s*50\.00 %`)))
	must(t, see.Locator(page.Locator("#bar-"+team)).ToContainText("4 of 8"))
	must(t, see.Locator(page.Locator("#pools-table")).ToContainText("ml.trn1n.32xlarge"))
	leaveMark(t, page)
	c.Apply(t, neuronJob(team, "rest", 3))
	must(t, see.Locator(row).ToContainText("87.50 %"))
	must(t, see.Locator(page.Locator("#bar-"+team)).ToContainText("7 of 8"))
	neverLoaded(t, page)
	readsTheChart(t, page)

	must(t, page.GetByRole("link", playwright.PageGetByRoleOptions{Name: "All teams"}).Click())
	must(t, page.Locator("#q").Fill(team))
	must(t, page.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Filter"}).Click())
	must(t, see.Locator(page.Locator("#team-list tbody tr")).ToHaveCount(1))
	must(t, page.GetByRole("link", playwright.PageGetByRoleOptions{Name: "Used", Exact: playwright.Bool(true)}).Click())
	must(t, see.Page(page).ToHaveURL(regexp.MustCompile(`/teams\?order=desc&q=`+team+`&resource=.*&sort=held$`)))
	must(t, see.Locator(page.Locator(`th[aria-sort="descending"]`)).ToContainText("Used"))
	must(t, page.Locator("#team-"+team).GetByRole("link", playwright.LocatorGetByRoleOptions{Name: team}).Click())
	must(t, see.Page(page).ToHaveURL(regexp.MustCompile("/teams/"+team+"$")))

	t.Run("looks", func(t *testing.T) { dashboardLooksWell(t, visit(t, playwright.BrowserNewContextOptions{})) })
	t.Run("without JavaScript", func(t *testing.T) {
		plain := visit(t, playwright.BrowserNewContextOptions{JavaScriptEnabled: playwright.Bool(false)})
		open(t, plain, "/?range=1h&resource="+url.QueryEscape(neuron)+"&tq="+team)
		must(t, see.Locator(plain.Locator("#team-"+team)).ToContainText("87.50 %"))
		must(t, see.Locator(plain.Locator("#held-chart-table")).ToBeVisible())
		must(t, see.Locator(plain.Locator("#held-chart-plot")).ToBeHidden())
		must(t, plain.Locator("#time").GetByRole("link", playwright.LocatorGetByRoleOptions{Name: "The last 24 hours"}).Click())
		must(t, see.Page(plain).ToHaveURL(regexp.MustCompile("range=24h.*tq="+team)))
		picture(t, plain, "dashboard-without-javascript")
	})
}

// readsTheChart reads figures off the picture by keyboard, and finds the same in
// the table.
func readsTheChart(t *testing.T, page playwright.Page) {
	t.Helper()
	patient := playwright.NewPlaywrightAssertions(30_000) // until history has a whole step
	words, plot := page.Locator("#held-chart .chart-words"), page.Locator("#held-chart-plot")
	known := regexp.MustCompile(`Capacity \d`) // an average, also of nodes that came meanwhile
	must(t, patient.Locator(words).ToContainText(known))
	must(t, see.Locator(plot.Locator("canvas")).ToBeVisible())
	must(t, plot.Focus())
	must(t, page.Keyboard().Press("Home"))
	must(t, see.Locator(words).ToContainText("Capacity no data"))
	must(t, plot.Blur()) // back to the latest that is known
	must(t, see.Locator(words).ToContainText(known))
	table := page.Locator("#held-chart-figures")
	must(t, see.Locator(table.Locator("table")).ToBeHidden())
	must(t, table.Locator("summary").Click())
	must(t, see.Locator(table.Locator("tbody tr", playwright.LocatorLocatorOptions{HasNotText: "no data"})).Not().ToHaveCount(0))
}

func dashboardLooksWell(t *testing.T, page playwright.Page) {
	for _, look := range []struct {
		name   string
		scheme *playwright.ColorScheme
		width  int
	}{{"light", playwright.ColorSchemeLight, 1280}, {"dark", playwright.ColorSchemeDark, 1280}, {"390", playwright.ColorSchemeLight, 390}} {
		must(t, page.EmulateMedia(playwright.PageEmulateMediaOptions{ColorScheme: look.scheme}))
		must(t, page.SetViewportSize(look.width, 844))
		for name, path := range map[string]string{"dashboard": "/?range=1h", "dashboard-range": "/?from=x", "teams": "/teams"} {
			open(t, page, path)
			must(t, page.Locator("#figure-help summary").Click())
			if name != "teams" {
				must(t, see.Locator(page.Locator("#held-chart canvas")).ToBeVisible())
			}
			fits(t, page, name+"-"+look.name)
			accessible(t, page, name+"-"+look.name)
			picture(t, page, name+"-"+look.name)
		}
	}
	printsAPage(t, page)
}

// printsAPage changes the colours of an open page, and prints it.
func printsAPage(t *testing.T, page playwright.Page) {
	t.Helper()
	open(t, page, "/?range=1h")
	canvas := page.Locator("#held-chart canvas")
	must(t, see.Locator(canvas).ToBeVisible())
	must(t, page.EmulateMedia(playwright.PageEmulateMediaOptions{ColorScheme: playwright.ColorSchemeDark}))
	must(t, see.Locator(canvas).ToBeVisible())
	_, err := page.PDF(playwright.PagePdfOptions{Path: playwright.String(filepath.Join(artefacts(), "dashboard.pdf"))})
	must(t, err)
	must(t, see.Locator(canvas).ToHaveCount(1))
}

// A CSV of each section is what the page shows, as a table.
func TestDashboardCSV(t *testing.T) {
	t.Parallel()
	client := person(t, console(t), "admin")
	for path, head := range map[string]string{"/capacity.csv": "pool,resource,unit,", "/teams.csv": "team,name,namespace,", "/classes.csv": "priority class,running,"} {
		if status, body := fetch(t, client, console(t)+path); status != 200 || !strings.HasPrefix(body, head) {
			t.Errorf("%s answers %d: %.100s", path, status, body)
		}
	}
}
