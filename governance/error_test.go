package governance

import (
	"errors"
	"testing"
)

// The message of an Error is a sentence, whose period ends the text only if nothing
// follows it.
func TestErrorText(t *testing.T) {
	for want, err := range map[string]*Error{
		"read settings: Page not found.":         {Op: "read settings", Message: "Page not found."},
		"read settings: Page not found: refused": {Op: "read settings", Message: "Page not found.", Err: errors.New("refused")},
		"Some fail; a: too long.":                {Message: "Some fail.", Fields: []FieldError{{Path: "a", Message: "too long."}}},
	} {
		if got := err.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
