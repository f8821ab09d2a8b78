package forms_test

import (
	"testing"
	"time"

	"kuota.dev/kuota/handlers/forms"
)

func TestTimeLimit(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"90m": 90 * time.Minute, "1h30m": 90 * time.Minute, "3d": 72 * time.Hour, "1d12h": 36 * time.Hour,
		"d": 0, "3": 0, "3d4": 0, "-1d": 0, "1d-2h": 22 * time.Hour, "9999d": 0, "1.5d": 0, "0d": 0, "3 d": 0,
	} {
		seconds, problem := forms.ParseTimeLimit(text)
		if got := time.Duration(seconds) * time.Second; got != want || (problem == "") != (want > 0) {
			t.Errorf("%q: got %s, %q, want %s", text, got, problem, want)
		}
	}
}
