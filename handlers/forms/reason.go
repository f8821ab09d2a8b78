package forms

import (
	"fmt"
	"strings"
	"unicode"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/views"
)

// ReasonField asks why, in a review.
func ReasonField(reason, readers string) views.ReasonField {
	return views.ReasonField{Value: reason, Hint: fmt.Sprintf("Visible in the history to %s. At most %d characters.", readers, v1alpha1.MaxReason)}
}

// DeletionReason asks why, where a team is deleted.
func DeletionReason(reason string) views.ReasonField {
	return views.ReasonField{Value: reason, Hint: fmt.Sprintf("Visible in the versions of the deleted team. At most %d characters.", v1alpha1.MaxReason)}
}

// ReasonText makes one line of what was typed as a reason, and cuts what is too
// long.
func ReasonText(text string) string {
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, ""), func(r rune) bool { return unicode.IsControl(r) || r == ' ' }), " ")
	if characters := []rune(text); len(characters) > v1alpha1.MaxReason {
		text = string(characters[:v1alpha1.MaxReason])
	}
	return text
}

// WithoutReason are hidden inputs of a page that asks for the reason itself.
func WithoutReason(fields []views.HiddenField) []views.HiddenField {
	var kept []views.HiddenField
	for _, field := range fields {
		if field.Name != "reason" {
			kept = append(kept, field)
		}
	}
	return kept
}
