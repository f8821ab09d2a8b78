package listing_test

import (
	"fmt"
	"strings"
	"testing"

	"kuota.dev/kuota/handlers/listing"
)

// TestUnknownChoice checks that a filter says which values exist if the address names
// another one, and keeps it in the form.
func TestUnknownChoice(t *testing.T) {
	for name, tc := range map[string]struct {
		choices           []string
		chosen            string
		wantTaken, wantIn string
		wantOther         bool
	}{
		"none":         {[]string{"a", "b"}, "", "", "", false},
		"a value":      {[]string{"a", "b"}, "a", "a", "", false},
		"its label":    {[]string{"a", "b"}, "the B", "b", "", false},
		"of all":       {[]string{"a"}, "all pools", "", "", false},
		"unknown":      {[]string{"a", "b"}, "c", "", `"c" is none of the choices, which are All pools, The a, The b.`, true},
		"no choices":   {nil, "c", "", "", true},
		"many choices": {strings.Split("abcdefghijkl", ""), "long" + strings.Repeat("x", 99), "", "The g, 5 more.", true},
	} {
		f := listing.NewFilter("pool", "Pool", "All pools", tc.chosen)
		for _, choice := range tc.choices {
			f.Add(choice, "The "+choice)
		}
		if got := f.Chosen(); got != tc.wantTaken {
			t.Errorf("%s: chosen is %q, want %q", name, got, tc.wantTaken)
		}
		done := f.Done()
		if !strings.Contains(done.Wrong, tc.wantIn) || (done.Wrong != "") != (tc.wantIn != "") || len(done.Wrong) > 250 {
			t.Errorf("%s: got %q, want %q", name, done.Wrong, tc.wantIn)
		}
		if other := len(done.Options) > len(tc.choices)+1; other != tc.wantOther {
			t.Errorf("%s: options %s", name, fmt.Sprint(done.Options))
		}
	}
}
