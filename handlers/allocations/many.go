package allocations

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/bulk"
	"kuota.dev/kuota/governance/imports"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/spec/change"
	"kuota.dev/kuota/governance/spec/describe"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/forms"
	"kuota.dev/kuota/handlers/previews"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// Actions of the import on all teams of a text.
const (
	ReviewMany = "review-many"
	SaveMany   = "save-many"
	EditMany   = "edit-many" // the text again
)

// imported is a team of a text, as saving it would be.
type imported struct {
	wanted   *v1alpha1.ComputeAllocation
	found    *v1alpha1.ComputeAllocation // nil for a new team
	changes  []change.Field
	problems []string // why it is not saved
	notes    []string // what was not read
}

// saves reports whether saving changes the team.
func (i *imported) saves() bool {
	return len(i.problems) == 0 && (i.found == nil || len(i.changes) > 0)
}

// version identifies what the review saw of the team.
func (i *imported) version() string {
	if i.found == nil {
		return "new"
	}
	return specVersion(i.found)
}

// specVersion identifies one spec of an allocation.
func specVersion(a *v1alpha1.ComputeAllocation) string {
	return string(a.UID) + "/" + strconv.FormatInt(a.Generation, 10)
}

// readMany returns the teams of a text, each with what is wrong with it.
func (h *Pages) readMany(state allocations.State, may allocations.Permissions, objects []imports.Object) (teams []imported) {
	for _, o := range objects {
		if o.Allocation == nil {
			continue
		}
		var form allocationForm
		one := imported{notes: forms.Lines(o.Problems)}
		if o.Overlay != nil { // a cell that cannot be read is a mistake, and no field that Kuota lacks
			one.problems, one.notes = one.notes, nil
		}
		if i := slices.IndexFunc(state.Allocations, func(a v1alpha1.ComputeAllocation) bool { return a.Name == o.Allocation.Name }); i >= 0 {
			one.found = &state.Allocations[i]
			form = formOf(*overlaid(one.found, o))
			form.edits = edit(*one.found)
			if _, managed := managerOf(one.found); managed {
				one.problems = append(one.problems, "Another program manages it, and would change it back.")
			}
		} else {
			form = newFormOf(o.Allocation)
		}
		form.Submitted = true
		var wrong []governance.FieldError
		one.wanted, wrong = form.wrong(state, state.Types, true)
		for _, m := range inputs.Summary(wrong, func(string) bool { return false }, format.Sentence) {
			one.problems = append(one.problems, format.JoinedBy(": ", m.Label, m.Text))
		}
		switch {
		case one.found == nil && !may.CreatesIn(one.wanted.Spec.Department), one.found != nil && (!may.UpdatesIn(one.found.Spec.Department) || !may.UpdatesIn(one.wanted.Spec.Department)):
			one.problems = append(one.problems, "You are not allowed to save it.")
		case one.found != nil && one.found.DeletionTimestamp != nil:
			one.problems = append(one.problems, "It is being deleted.")
		case one.found != nil:
			one.changes = describe.AllocationChanges(&one.found.Spec, &one.wanted.Spec)
		}
		teams = append(teams, one)
	}
	return teams
}

// Many answers the review of all teams of a text, and saves them.
func (h *Pages) Many(c echo.Context, state allocations.State, may allocations.Permissions, objects []imports.Object, values url.Values) error {
	ctx, user := c.Request().Context(), console.UserOf(c)
	teams := h.readMany(state, may, objects)
	page := h.manyPage(c, state, teams, values)
	if values.Get("action") != SaveMany || page.Obstacle != "" {
		if page.Obstacle == "" {
			page.Preview = h.previewMany(ctx, user, teams)
		}
		return web.Render(c, http.StatusOK, views.Action(page))
	}
	seen := map[string]string{}
	for _, text := range values["seen"] {
		team, version, _ := strings.Cut(text, "=")
		seen[team] = version
	}
	run, request := bulk.Run{Title: page.Title, Back: urls.Policies}, values.Get("request-id")
	var saved []*imported
	for i := range teams {
		one := &teams[i]
		name := one.wanted.Name
		if !one.saves() && seen[name] == "" {
			continue // as the review said
		}
		item := bulk.Item{Name: name, Team: name, URL: urls.Allocation(name)}
		switch {
		case len(one.problems) > 0:
			item.Problem = one.problems[0]
		case seen[name] != one.version():
			item.Problem = "It was changed since the review. Import it again to see its values."
		}
		v1alpha1.SetReason(one.wanted, forms.ReasonText(values.Get("reason")))
		run.Items, saved = append(run.Items, item), append(saved, one)
	}
	return h.Bulk.Start(c, run, func(ctx context.Context, user governance.User, i int) error {
		return h.saveOne(ctx, user, saved[i], request)
	})
}

// saveOne saves a team: all of it, or nothing.
func (h *Pages) saveOne(ctx context.Context, user governance.User, one *imported, request string) error {
	state, err := h.Allocations.State(ctx, user)
	if err != nil {
		return err
	}
	if one.found == nil {
		return inWords(h.Allocations.Create(ctx, user, state, one.wanted, nil, request+"-"+one.wanted.Name))
	}
	return h.retried(ctx, user, one.found, func(version string) error {
		one.wanted.ResourceVersion = version
		return h.Allocations.Update(ctx, user, state, one.wanted, nil)
	})
}

// retried changes an allocation at the version that was found, and again after a conflict where
// only its status changed.
func (h *Pages) retried(ctx context.Context, user governance.User, found *v1alpha1.ComputeAllocation, do func(version string) error) error {
	form := forms.Form{Version: found.ResourceVersion, Generation: specVersion(found)}
	return inWords(form.Retry(func() error { return do(form.Version) }, func() (version, generation string, ok bool) {
		now, err := h.Allocations.Find(ctx, user, found.Name)
		return now.ResourceVersion, specVersion(&now), err == nil
	}))
}

// inWords returns an error with the messages of its fields in its text.
func inWords(err error) error {
	var ours *governance.Error
	if !errors.As(err, &ours) || len(ours.Fields) == 0 {
		return err
	}
	var texts []string
	for _, m := range inputs.Summary(ours.Fields, func(string) bool { return false }, format.Sentence) {
		texts = append(texts, format.JoinedBy(": ", m.Label, m.Text))
	}
	return &governance.Error{Kind: ours.Kind, Op: ours.Op, Message: strings.Join(texts, " "), Err: err}
}

// previewMany simulates saving all teams together.
func (h *Pages) previewMany(ctx context.Context, user governance.User, teams []imported) views.Preview {
	var wanted []*v1alpha1.ComputeAllocation
	for i := range teams {
		if one := &teams[i]; one.saves() {
			next := one.wanted.DeepCopy()
			if one.found != nil {
				next.ResourceVersion = one.found.ResourceVersion
			}
			wanted = append(wanted, next)
		}
	}
	return h.Previews.Now(ctx, previews.Variant{Key: "many", Title: "Effect on tasks and teams", Preview: func(ctx context.Context) (queries.Preview, error) {
		return h.Previews.Backend.Allocations(ctx, user, wanted)
	}})
}

// manyPage is the review of all teams of a text.
func (h *Pages) manyPage(c echo.Context, state allocations.State, teams []imported, values url.Values) views.ActionPage {
	text, _ := forms.TextOrFile(values)
	page := views.ActionPage{
		Chrome: h.Chrome(c), UpLabel: "Import", UpURL: urls.Import, Action: urls.Import, InPlace: true,
		Fields:    []views.HiddenField{{Name: "action", Value: SaveMany}, {Name: "text", Value: text}, {Name: "request-id", Value: cmp.Or(values.Get("request-id"), rand.Text())}},
		RowsTitle: "Teams", Back: []views.HiddenField{{Name: "action", Value: EditMany}, {Name: "text", Value: text}},
	}
	after := slices.Clone(state.Allocations)
	pools := map[string]bool{}
	created, changed, same, wrong := 0, 0, 0, 0
	for i := range teams {
		one := &teams[i]
		row := views.ActionRow{Name: cmp.Or(one.wanted.Name, "No team name"), Lines: slices.Concat(one.problems, one.notes)}
		resolved, _ := quota.Resolve(&one.wanted.Spec, state.Types)
		switch {
		case len(one.problems) > 0:
			wrong++
			row.Status = views.Status{Tone: "bad", Label: "Not saved"}
		case one.found == nil:
			created++
			row.Status = views.Status{Tone: "ok", Label: "New"}
			row.Lines = append(row.Lines, quotaWords(resolved))
		case len(one.changes) > 0:
			changed++
			row.Status = views.Status{Tone: "wait", Label: "Changed"}
			for _, f := range one.changes {
				row.Lines = append(row.Lines, fmt.Sprintf("%s: %s → %s", f.Path, cmp.Or(f.Before, "none"), cmp.Or(f.After, "none")))
			}
		default:
			same++
			row.Status = views.Status{Tone: "idle", Label: "Unchanged"}
		}
		if one.saves() {
			page.Fields = append(page.Fields, views.HiddenField{Name: "seen", Value: one.wanted.Name + "=" + one.version()})
			next := v1alpha1.ComputeAllocation{Spec: one.wanted.Spec}
			next.Name = one.wanted.Name
			if at := slices.IndexFunc(after, func(a v1alpha1.ComputeAllocation) bool { return a.Name == next.Name }); at >= 0 {
				after[at] = next
			} else {
				after = append(after, next)
			}
			for _, pool := range resolved.Total().Pools {
				pools[pool.Name] = true
			}
		}
		page.Rows = append(page.Rows, row)
	}
	page.Submit = "Save " + format.Count(created+changed, "team")
	page.Title, page.Active = page.Submit, "policies"
	if created+changed == 0 {
		page.Title, page.Obstacle = "Save teams", "All teams have these values already."
		if wrong > 0 {
			page.Obstacle = "No team of this text can be saved: see what is wrong with each."
		}
		return page
	}
	page.Effects = append(page.Effects, format.Upper(format.JoinedBy(", ", format.CountedAs(created, "new"), format.CountedAs(changed, "changed"), format.CountedAs(same, "unchanged"), format.CountedAs(wrong, "not saved")))+". Each is saved as a whole, or not at all.")
	allocated := allocatedAfter(state, after)
	page.Effects = append(page.Effects, overAll(state, allocated, pools)...)
	if refused := quota.DescribeRefused(quota.Refused(state.Policy, state.Allocated, allocated, state.Types)); refused != "" {
		page.Obstacle = format.Sentence("together the teams have " + refused)
	}
	page.Reason = reasonOf(values)
	return page
}

// quotaWords lists the quota of each pool.
func quotaWords(resolved quota.Resolved) string {
	var parts []string
	for _, pool := range resolved.Total().Pools {
		parts = append(parts, pool.Name+": "+format.Amounts(pool.Nominal))
	}
	return strings.Join(parts, "; ")
}

// allocatedAfter returns the sum of all teams if these are those that the reader sees.
func allocatedAfter(state allocations.State, after []v1alpha1.ComputeAllocation) quota.PoolResources {
	allocated := quota.Allocated(after, state.Types, "")
	for pool, amounts := range state.Others {
		allocated.Add(pool, amounts)
	}
	return allocated
}

// overAll says of each of these pools how far it is over capacity when all teams are saved.
func overAll(state allocations.State, allocated quota.PoolResources, pools map[string]bool) (lines []string) {
	for _, pool := range state.Types.Pools() {
		if !pools[pool.Name] {
			continue
		}
		if text, _ := over(allocated.Exceeding([]quota.FlavorQuotas{{Name: pool.Name}}, state.Types), ""); text != "" {
			lines = append(lines, pool.Name+": "+text)
		}
	}
	return lines
}

func reasonOf(values url.Values) *views.ReasonField {
	reason := forms.ReasonField(forms.ReasonText(values.Get("reason")), "everyone who sees the teams")
	return &reason
}
