package handlers

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/revisions"
	"kuota.dev/kuota/views"

	"github.com/labstack/echo/v4"
)

// origin names a version of a team in an address or a form.
func origin(team string, number int64) string {
	return url.QueryEscape(fmt.Sprintf("%s:%d", team, number))
}

// restoring fills a form in with the version that the address asks for. The
// form stays what it was opened for: an edit of what is there, or a new team.
func (h *Handlers) restoring(c echo.Context, form allocationForm) (allocationForm, error) {
	from := c.QueryParam("restores")
	if from == "" {
		return form, nil
	}
	version, team, err := h.originOf(c, from)
	if err != nil {
		return form, err
	}
	old := v1alpha1.ComputeAllocation{Spec: *version.Allocation}
	old.Name = team
	filled := formOf(old)
	filled.earlier, filled.edits = filled.edits, nil
	filled.request, filled.version, filled.generation = form.request, form.version, form.generation
	filled.restores, filled.reason = from, restoresWords(version.Number)
	filled.changes(form.edits)
	return filled, nil
}

func restoresWords(number int64) string { return fmt.Sprintf("Restores version %d", number) }

// remember reads again what a form was filled in with: what nobody touched is
// saved as it was then, to the byte. A version that is not kept any more leaves
// what was typed.
func (h *Handlers) remember(c echo.Context, form *allocationForm) error {
	if form.restores == "" {
		return nil
	}
	version, team, err := h.originOf(c, form.restores)
	if err != nil && governance.KindOf(err) == governance.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	old := v1alpha1.ComputeAllocation{Spec: *version.Allocation}
	old.Name = team
	form.earlier = edit(old)
	return nil
}

func (h *Handlers) originOf(c echo.Context, from string) (revisions.Version, string, error) {
	team, number, _ := strings.Cut(from, ":")
	version, err := h.version(c, revisions.AllocationOwner(team), number)
	if err == echo.ErrNotFound {
		err = &governance.Error{Kind: governance.NotFound, Op: "restore", Message: "This version does not exist."}
	}
	return version, team, err
}

// restoringPolicy is restoring for the cluster policy.
func (h *Handlers) restoringPolicy(c echo.Context, form policyForm) (policyForm, error) {
	from := c.QueryParam("restores")
	if from == "" {
		return form, nil
	}
	version, err := h.version(c, revisions.PolicyOwner(), from)
	if err != nil {
		return form, err
	}
	filled := policyFormOf(&v1alpha1.ClusterPolicy{Spec: *version.Policy})
	filled.version, filled.generation = form.version, form.generation
	filled.restores, filled.reason = from, restoresWords(version.Number)
	return filled, nil
}

// restoredOf is what a form says that was opened with an older version.
func restoredOf(from string) views.Restored {
	if from == "" {
		return views.Restored{}
	}
	_, number, ok := strings.Cut(from, ":")
	if !ok {
		number = from
	}
	return views.Restored{Origin: from, Notice: "The form shows version " + number + ". Nothing is saved yet."}
}

// reasonField asks why, in a review.
func reasonField(reason, readers string) views.ReasonField {
	return views.ReasonField{Value: reason, Hint: fmt.Sprintf("Visible in the history to %s. At most %d characters.", readers, v1alpha1.MaxReason)}
}

// deletionReason asks why, where a team is deleted.
func deletionReason(reason string) views.ReasonField {
	return views.ReasonField{Value: reason, Hint: fmt.Sprintf("Visible in the versions of the deleted team. At most %d characters.", v1alpha1.MaxReason)}
}

// reasonText makes one line of what was typed as a reason, and cuts what is too
// long.
func reasonText(text string) string {
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, ""), func(r rune) bool { return unicode.IsControl(r) || r == ' ' }), " ")
	if characters := []rune(text); len(characters) > v1alpha1.MaxReason {
		text = string(characters[:v1alpha1.MaxReason])
	}
	return text
}

// withoutReason are hidden inputs of a page that asks for the reason itself.
func withoutReason(fields []views.HiddenField) []views.HiddenField {
	var kept []views.HiddenField
	for _, field := range fields {
		if field.Name != "reason" {
			kept = append(kept, field)
		}
	}
	return kept
}
