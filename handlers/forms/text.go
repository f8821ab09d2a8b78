package forms

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"kuota.dev/kuota/handlers/format"
)

// CheckText says what is wrong with a line of text; empty when it is right.
func CheckText(text string, most int) string {
	switch n := utf8.RuneCountInString(text); {
	case n > most:
		return fmt.Sprintf("has %s characters; at most %s fit", format.Thousands(int64(n)), format.Thousands(int64(most)))
	case !utf8.ValidString(text) || strings.ContainsFunc(text, isControl):
		return "has line breaks or other control characters; remove them"
	}
	return ""
}

// isControl reports whether a character is not shown itself and changes how others
// are: control characters, line separators, and those that turn the direction of
// writing. The schema refuses the same in display names.
func isControl(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' || r == '\ufeff'
}
