package ui_test

import (
	"testing"

	"kuota.dev/kuota/views/htmlcheck"
	"kuota.dev/kuota/views/ui"
)

func TestMomentsInSentencesAreLocalTimes(t *testing.T) {
	for text, want := range map[string][]string{
		"":        nil,
		"in 2026": nil,
		"averages since 2026-11-22T09:30:00Z, when history begins": {"2026-11-22T09:30:00Z"},
		"2026-11-22T09:30:00Z to 2026-11-23T09:30:00Z":             {"2026-11-22T09:30:00Z", "2026-11-23T09:30:00Z"},
	} {
		page := htmlcheck.Render(t, ui.Sentence(text))
		times := page.Find("time[data-local]")
		if times.Length() != len(want) {
			t.Fatalf("%q has %d times, want %d", text, times.Length(), len(want))
		}
		for i, at := range want {
			if got := times.Eq(i).AttrOr("datetime", ""); got != at {
				t.Errorf("time %d of %q is %q, want %q", i, text, got, at)
			}
		}
	}
}
