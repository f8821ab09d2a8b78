package forms

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"kuota.dev/kuota/handlers/format"
)

// CheckText returns what is wrong with a line of text; empty for nothing.
func CheckText(text string, most int) string {
	switch n := utf8.RuneCountInString(text); {
	case n > most:
		return fmt.Sprintf("has %s characters; at most %s fit", format.Thousands(int64(n)), format.Thousands(int64(most)))
	case !utf8.ValidString(text) || strings.ContainsFunc(text, isControl):
		return "has line breaks or other control characters; remove them"
	}
	return ""
}

// isControl reports whether a character is invisible and changes how others are
// shown: control characters, line separators and directional formatting. The schema
// rejects the same characters in display names.
func isControl(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' || r == '\ufeff'
}

// ParseLines calls parse with the words of each line that has any, and returns all problems
// with their lines; empty for none.
func ParseLines(text string, parse func(fields []string) (problem string)) string {
	var problems []string
	n := 0
	for line := range strings.SplitSeq(text, "\n") {
		n++
		if fields := strings.Fields(line); len(fields) > 0 {
			if problem := parse(fields); problem != "" {
				problems = append(problems, fmt.Sprintf("line %d: %s", n, problem))
			}
		}
	}
	return strings.Join(problems, "; ")
}
