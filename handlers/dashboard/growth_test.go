package dashboard_test

import (
	"strings"
	"testing"

	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"
)

// The dashboard shows what growth uses, now and over time.
func TestGrowthOnDashboard(t *testing.T) {
	amounts := map[history.SeriesKey]float64{
		{Pool: "p5", Resource: catalog.GPU, Measure: history.Physical}: 16, {Pool: "p5", Resource: catalog.GPU, Measure: history.OwnBound}: 8,
	}
	d := &handlerstest.Backend{Past: &historyDomain{amounts: amounts}, CapacityBackend: handlerstest.CapacityBackend{Snapshot: handlerstest.Cluster()}}
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+"/")
	if text := page.Find(".stats, #held-chart").Text(); strings.Contains(text, "rowth") {
		t.Errorf("growth is shown where there is none: %s", text)
	}
	d.CapacityBackend.Snapshot.Pools[2].Resources[0].Growth = 5
	amounts[history.SeriesKey{Pool: "p5", Resource: catalog.GPU, Measure: history.Growth}] = 4
	_, page = handlerstest.Get(t, address+"/")
	htmlcheck.Page(t, page)
	if text := handlerstest.Text(page.Find(`[id="stat-nvidia.com/gpu"]`)); !strings.Contains(text, "3 borrowed · 5 growth") {
		t.Errorf("the card shows %s", text)
	}
	if text := handlerstest.Text(page.Find("#held-chart .chart-legend")); !strings.Contains(text, "Growth") {
		t.Errorf("the chart has %s", text)
	}
	if text := handlerstest.Download(t, address+"/capacity.csv?pool=p5&resource=nvidia.com/gpu"); !strings.Contains(text, "largest block,growth") || !strings.HasSuffix(strings.TrimSpace(text), ",4,5,0,0") {
		t.Errorf("the file is %s", text)
	}
}
