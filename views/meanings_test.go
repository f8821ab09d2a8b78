package views

import (
	"os"
	"strings"
	"testing"
)

// The help of the page and the documentation explain each figure in the same words.
func TestMeaningsMatchDocumentation(t *testing.T) {
	text, err := os.ReadFile("../docs/dashboard.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range meanings {
		if want := "| " + m.Name + " | " + m.Text + " |"; !strings.Contains(string(text), want) {
			t.Errorf("docs/dashboard.md has no line %q", want)
		}
	}
}
