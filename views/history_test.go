package views_test

import (
	"strings"
	"testing"

	"kuota.dev/kuota/views"
	"kuota.dev/kuota/views/htmlcheck"
	versionviews "kuota.dev/kuota/views/versions"
)

func sampleVersion() versionviews.VersionPage {
	return versionviews.VersionPage{
		Chrome: sampleChrome("Version 3 of vision", "policies"), UpURL: "/policies/allocations/vision", UpLabel: "vision",
		Line:    views.HistoryLine{Number: "3", URL: "/v/3", When: "2026-03-05T10:00:00Z", Who: "kubectl-edit", WhoNote: "field manager", Reason: "more work", Changes: "Weight: 1 → 2", Missing: "1 change is not kept."},
		Changes: []views.ValueChange{{"Weight", "1", "2"}}, YAML: []views.YAMLLine{{Text: "spec:"}, {Text: "  weight: 1", Removed: true}, {Text: "  weight: 2", Added: true}},
		RestoreURL: "/restore", OlderURL: "/v/2", NewerURL: "/v/4",
	}
}

// Text in specs and reasons is escaped.
func TestHostileHistoryStaysText(t *testing.T) {
	page := sampleVersion()
	for _, s := range []*string{&page.Line.Who, &page.Line.Reason, &page.Line.Changes, &page.Changes[0].Before, &page.Changes[0].After, &page.YAML[1].Text} {
		*s = hostile
	}
	list := versionviews.HistoryPage{Chrome: page.Chrome, UpURL: "/x", UpLabel: "y", History: views.History{Lines: []views.HistoryLine{page.Line}}}
	for name, doc := range map[string]interface{ Text() string }{
		"version": htmlcheck.Render(t, versionviews.VersionDetail(page)).Find("main"), "versions": htmlcheck.Render(t, versionviews.HistoryList(list)).Find("main"),
	} {
		if !strings.Contains(doc.Text(), hostile) {
			t.Errorf("%s does not show it as text", name)
		}
	}
	if n := htmlcheck.Render(t, versionviews.VersionDetail(page)).Find("main script, main img").Length(); n != 0 {
		t.Errorf("%d elements came of it", n)
	}
}
