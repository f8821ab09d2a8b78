package allocations

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/record/revisions"
	"kuota.dev/kuota/governance/spec/change"
	"kuota.dev/kuota/governance/spec/describe"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/forms"
	"kuota.dev/kuota/handlers/versions"
	"kuota.dev/kuota/views"

	"github.com/labstack/echo/v4"
)

// askedMerged is a reason not to save at once: another user saved meanwhile, and the form
// has both changes. The names of what the other user changed follow.
const askedMerged = "merged:"

// renderConflict answers a review or a save after another user's save. Where both changed the
// same values, it asks; otherwise it shows the form with both changes. Without the version
// that the form was opened with, all values that differ count as changed by both.
func (h *Pages) renderConflict(c echo.Context, form allocationForm, state allocations.State) error {
	now, typed := form.edits.allocation, form.values()
	read := form.again()
	mine, theirs, both := typed, typed, true
	opened, known := h.openedSpec(c, &form)
	if known {
		base := v1alpha1.ComputeAllocation{Spec: *opened}
		mine, theirs, both = merge(formOf(base), form, read)
	}
	types := state.Types.With(form.newPools()...)
	merged := form.reading(mine)
	merged.offerSaved(state.Types)
	merged.changes(form.edits)
	// Keeping the typed values changes the version that is saved now.
	form.Version, form.Generation, merged.Version, merged.Generation = read.Version, read.Generation, read.Version, read.Generation
	if !both {
		merged.Submitted = false
		merged.asked = askedMerged + strings.Join(paths(describe.AllocationChanges(opened, &now.Spec)), ", ")
		merged.offer(state.Types)
		return h.renderForm(c, http.StatusConflict, merged, state, nil)
	}
	wanted, _ := merged.parse(types)
	lines := merged.changesFrom(&now, wanted)
	if known {
		wants, _ := form.parse(types)
		lines = inBoth(lines, paths(describe.AllocationChanges(opened, &now.Spec)), paths(describe.AllocationChanges(opened, &wants.Spec)))
	}
	place := form.place()
	page := views.Conflict{
		Chrome: h.Chrome(c), What: form.place().what, Action: place.action, UpURL: place.up, UpLabel: place.upLabel, TheirsURL: place.action,
		Lines: versions.ValueChanges(lines), Fields: merged.hidden(c), InPlace: forms.InPlace(c),
	}
	if known {
		other := form.reading(theirs)
		other.offerSaved(state.Types)
		other.changes(form.edits)
		other.Version, other.Generation = read.Version, read.Generation
		page.Theirs = other.hidden(c)
	}
	if h.RecordsUsers == nil || h.RecordsUsers() { // otherwise everyone can write the annotation
		page.By = now.Annotations[v1alpha1.AnnotationChangedBy]
	}
	page.Title, page.Active = "Saved by someone else meanwhile", "policies"
	return h.AnswerForm(c, http.StatusConflict, forms.ReviewURL(place.action), place.action, typed, views.ConflictPage(page))
}

// again returns the form of what is saved now.
func (f *allocationForm) again() allocationForm {
	if saved := f.savedDepartment(); f.kind == ofDepartment && saved != nil {
		return departmentFormOf(saved)
	}
	return formOf(f.edits.allocation)
}

// reading returns a form of the same kind with other values.
func (f *allocationForm) reading(values url.Values) allocationForm {
	form := readForm(f.kind, values)
	form.tree = f.tree
	return form
}

// changesFrom returns the differences between what is saved and what the form has.
func (f *allocationForm) changesFrom(saved, wanted *v1alpha1.ComputeAllocation) []change.Field {
	if now := f.savedDepartment(); f.kind == ofDepartment && now != nil {
		return describe.DepartmentChanges(&now.Spec, &f.departmentOf(wanted).Spec)
	}
	return describe.AllocationChanges(&saved.Spec, &wanted.Spec)
}

// openedSpec returns the spec that the form was opened with, if its version is kept.
func (h *Pages) openedSpec(c echo.Context, form *allocationForm) (*v1alpha1.ComputeAllocationSpec, bool) {
	if form.kind == ofDepartment {
		return nil, false
	}
	ctx, user, owner := c.Request().Context(), console.UserOf(c), revisions.AllocationOwner(form.team)
	history, err := h.Revisions.History(ctx, user, owner)
	i := slices.IndexFunc(history, func(r revisions.Revision) bool {
		return r.UID == string(form.edits.allocation.UID) && strconv.FormatInt(r.Generation, 10) == form.Generation
	})
	if err != nil || i < 0 {
		return nil, false
	}
	version, err := h.Revisions.Version(ctx, user, owner, history[i].Number)
	return version.Allocation, err == nil && version.Allocation != nil
}

// merge joins what was typed with what was saved meanwhile: of each input, and of each list
// of rows as a whole, the version that differs from how the form was opened. Where both
// differ from it, and from each other, mine has what was typed, theirs what was saved, and
// both is true.
func merge(opened, typed, saved allocationForm) (mine, theirs url.Values, both bool) {
	base, left, right := opened.compact(), typed.compact(), saved.compact()
	groups := map[string]bool{}
	for _, values := range []url.Values{base, left, right} {
		for name := range values {
			groups[group(name)] = true
		}
	}
	mine, theirs = typed.compact(), typed.compact()
	for g := range groups {
		was, typed, saved := part(base, g), part(left, g), part(right, g)
		switch {
		case equal(saved, was) || equal(typed, saved) || ofForm[g]:
			continue
		case equal(typed, was):
			replace(mine, typed, saved)
		default:
			both = true
		}
		replace(theirs, typed, saved)
	}
	return mine, theirs, both
}

// ofForm are the values that are no part of a spec.
var ofForm = map[string]bool{"version": true, "generation": true, "request-id": true, "restores": true, "reason": true, "submitted": true, "resumed": true, "batch": true, "asked": true}

// compact returns the values of the form without empty rows.
func (f allocationForm) compact() url.Values {
	f.rows, f.limits = slices.DeleteFunc(slices.Clone(f.rows), formRow.empty), slices.DeleteFunc(slices.Clone(f.limits), formRow.empty)
	for i := range f.rows {
		f.rows[i].offered = ""
	}
	f.members = slices.DeleteFunc(slices.Clone(f.members), func(m formMember) bool { return m.name == "" })
	f.shares = slices.DeleteFunc(slices.Clone(f.shares), formShare.empty)
	f.windows = slices.DeleteFunc(slices.Clone(f.windows), formWindow.empty)
	values := f.values()
	maps.DeleteFunc(values, func(_ string, all []string) bool { return len(all) == 1 && all[0] == "" })
	return values
}

// group returns what an input is merged with: its list of rows, or itself.
func group(name string) string {
	for _, list := range []string{"row-", "limit-", "member-", "share-", "window-", "new-pool-", "budget-"} {
		if strings.HasPrefix(name, list) {
			return list
		}
	}
	return name
}

func part(values url.Values, g string) url.Values {
	found := url.Values{}
	for name, all := range values {
		if group(name) == g {
			found[name] = all
		}
	}
	return found
}

func equal(a, b url.Values) bool { return a.Encode() == b.Encode() }

func replace(in, old, by url.Values) {
	for name := range old {
		delete(in, name)
	}
	maps.Copy(in, by)
}

func paths(changes []change.Field) (all []string) {
	for _, c := range changes {
		all = append(all, c.Path)
	}
	return all
}

// inBoth returns the changes whose paths are in both lists; all of them if none is.
func inBoth(changes []change.Field, a, b []string) []change.Field {
	both := slices.DeleteFunc(slices.Clone(changes), func(c change.Field) bool { return !slices.Contains(a, c.Path) || !slices.Contains(b, c.Path) })
	if len(both) == 0 {
		return changes
	}
	return both
}
