package forms

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/views"
)

// ReasonField returns the input for the reason of a change, in a review.
func ReasonField(reason, readers string) views.ReasonField {
	return views.ReasonField{Value: reason, Hint: fmt.Sprintf("Visible in the history to %s. At most %d characters.", readers, v1alpha1.MaxReason)}
}

// DeletionReason returns the input for the reason of a deletion.
func DeletionReason(reason string) views.ReasonField {
	return views.ReasonField{Value: reason, Hint: fmt.Sprintf("Visible in the versions of the deleted team. At most %d characters.", v1alpha1.MaxReason)}
}

// ReasonText returns a typed reason as one line, cut to MaxReason characters.
func ReasonText(text string) string {
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, ""), func(r rune) bool { return unicode.IsControl(r) || r == ' ' }), " ")
	if characters := []rune(text); len(characters) > v1alpha1.MaxReason {
		text = string(characters[:v1alpha1.MaxReason])
	}
	return text
}

// WithoutReason removes the reason, for a page that has an input for it.
func WithoutReason(fields []views.HiddenField) []views.HiddenField {
	return slices.DeleteFunc(slices.Clone(fields), func(f views.HiddenField) bool { return f.Name == "reason" })
}
