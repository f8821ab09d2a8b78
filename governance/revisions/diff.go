package revisions

import (
	"strings"

	"kuota.dev/kuota/governance/textdiff"
)

// compare returns the lines of two YAML texts, with the added and removed ones
// marked.
func compare(before, after string) []textdiff.Line {
	return textdiff.Lines(split(before), split(after))
}

func split(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}
