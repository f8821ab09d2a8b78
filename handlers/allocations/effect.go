package allocations

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/spec/describe"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/previews"
	"kuota.dev/kuota/views"
	allocationviews "kuota.dev/kuota/views/allocations"
)

// effect returns what saving the form does, as far as its values say: wanted with what is
// wrong. The page asks for the simulation where Verify is set.
func (f *allocationForm) effect(wanted *v1alpha1.ComputeAllocation, wrong []governance.FieldError, types catalog.Catalog) (view allocationviews.Effect) {
	missing := len(f.missing()) > 0
	switch {
	case f.edits == nil && missing && f.kind == ofDepartment:
		view.Text = "Name the department and give it quota: then this is what is left for its teams."
	case f.edits == nil && missing:
		view.Text = "Name the team and give it quota: then this is what saving does to tasks and teams."
	case missing || len(wrong) > 0:
		view.Text = "Some values are not valid yet."
	case f.unchanged(wanted):
		view.Text, view.Unchanged = "Nothing is changed yet.", true
	default:
		view.Verify = true
	}
	if f.kind == ofDepartment && !missing && len(wrong) == 0 {
		view.Note = f.reserveWords(wanted, types)
	}
	return view
}

// unchanged reports whether saving wanted changes nothing.
func (f *allocationForm) unchanged(wanted *v1alpha1.ComputeAllocation) bool {
	if saved := f.savedDepartment(); f.kind == ofDepartment && saved != nil {
		return len(describe.DepartmentChanges(&saved.Spec, &f.departmentOf(wanted).Spec)) == 0
	}
	return f.edits != nil && len(describe.AllocationChanges(&f.edits.allocation.Spec, &wanted.Spec)) == 0
}

// simulate replaces an effect that waits for the simulation by its answer.
func (h *Pages) simulate(ctx context.Context, user governance.User, form *allocationForm, wanted *v1alpha1.ComputeAllocation, view *allocationviews.Effect) {
	switch {
	case !view.Verify:
	case h.Previews.Backend == nil:
		*view = allocationviews.Effect{Text: "Effects on running tasks are not simulated here.", Note: view.Note}
	case form.verify:
		variant, preview := h.Previews.Once(ctx, h.saving(user, form, wanted, true))
		*view = allocationviews.Effect{Preview: variant, Note: view.Note, Shown: form.fingerprint(preview)}
	}
}

// Reasons not to save at once, as hidden values of the form.
const (
	askedInterrupts = "interrupts" // running tasks
	askedUnknown    = "unknown"    // whether it interrupts any
	askedChanged    = "changed"    // what saving does has changed since it was shown
)

// ask returns why saving has to be confirmed; empty if it need not. The review of a department
// is empty.
func (h *Pages) ask(ctx context.Context, user governance.User, form *allocationForm, wanted *v1alpha1.ComputeAllocation, review allocations.Review) string {
	if len(review.Evicted)+len(review.Unadmittable) > 0 {
		return askedInterrupts
	}
	if h.Previews.Backend == nil {
		return askedUnknown
	}
	variant, preview := h.Previews.Once(ctx, h.saving(user, form, wanted, true))
	switch {
	case variant.State != views.PreviewReady || review.Unknown != "":
		return askedUnknown
	case previews.Interrupts(preview):
		return askedInterrupts
	case differ(form.shown, form.fingerprint(preview)):
		return askedChanged
	}
	return ""
}

// fingerprint identifies what was typed, and the objects that saving changes: their hashes,
// with a point between them.
func (f *allocationForm) fingerprint(p queries.Preview) string {
	values := f.values()
	for _, name := range []string{"version", "generation", "asked", "reason", "submitted", "resumed", "request-id"} {
		values.Del(name)
	}
	objects, _ := json.Marshal(p.Objects) // it has texts only
	return fmt.Sprintf("%x.%x", sha256.Sum256([]byte(values.Encode())), sha256.Sum256(objects))
}

// differ reports whether two fingerprints of the same typed values have different objects.
func differ(shown, now string) bool {
	typed, objects, _ := strings.Cut(shown, ".")
	typedNow, objectsNow, _ := strings.Cut(now, ".")
	return typed == typedNow && objects != objectsNow
}
