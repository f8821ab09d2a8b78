package teams_test

import (
	"strings"
	"testing"

	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"
)

// The page of a team shows what growth uses of its usage, now and over time.
func TestGrowthOfTeam(t *testing.T) {
	p := handlerstest.NewHistory()
	key := func(m history.Measure) history.SeriesKey {
		return history.SeriesKey{Team: "vision", Pool: handlerstest.H100, Resource: catalog.GPU, Measure: m}
	}
	p.Held = map[history.SeriesKey]int64{key(history.Used): 8, key(history.Quota): 15}
	d := &handlerstest.Backend{Past: p, Teams: []string{"vision"}, CapacityBackend: handlerstest.CapacityBackend{Snapshot: handlerstest.SmallCluster()}}
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+"/teams/vision")
	if text := page.Find("#team-usage, #team-history").Text(); strings.Contains(text, "rowth") {
		t.Errorf("growth is shown where there is none: %s", text)
	}
	d.CapacityBackend.Snapshot.Teams[0].Resources[0].Growth = 3
	p.Held[key(history.Growth)] = 3
	_, page = handlerstest.Get(t, address+"/teams/vision")
	htmlcheck.Page(t, page)
	row := page.Find("#shares-table tbody tr").First()
	if text := handlerstest.Text(row); !strings.Contains(text, "8 3 growth") {
		t.Errorf("the row is %s", text)
	}
	if label := row.Find("svg").AttrOr("aria-label", ""); !strings.Contains(label, "3 by growth") {
		t.Errorf("the bar is read as %q", label)
	}
	if text := handlerstest.Text(page.Find("#team-history .chart-legend").First()); !strings.Contains(text, "Growth") {
		t.Errorf("the chart has %s", text)
	}
	if text := handlerstest.Download(t, address+"/teams/vision/usage.csv?from=2026-11-20T00:00&to=2026-11-20T10:00"); !strings.Contains(text, "growth hours") || !strings.Contains(text, "80.000,80.000,0.000,30.000") {
		t.Errorf("the file is %s", text)
	}
}
