package allocations

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/gitops"
	"kuota.dev/kuota/governance/departments"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/spec/change"
	"kuota.dev/kuota/governance/spec/manifest"
	"kuota.dev/kuota/governance/spec/schema"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/forms"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/handlers/versions"
	"kuota.dev/kuota/views"
	allocationviews "kuota.dev/kuota/views/allocations"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// formKind is what a form is about.
type formKind int

const (
	ofTeam       formKind = iota // a compute allocation
	ofDepartment                 // a department, whose spec is read and written as that of an allocation
)

// has reports whether the forms of a kind have a field.
func (k formKind) has(f field) bool { return k == ofTeam || !f.teamOnly }

func (k formKind) mostMembers() int {
	if k == ofDepartment {
		return v1alpha1.MaxDepartmentMembers
	}
	return v1alpha1.MaxMembers
}

// inputs returns the inputs of the forms of a kind by the paths of their errors.
func (k formKind) inputs() forms.Inputs {
	if k == ofDepartment {
		return departmentInputs
	}
	return inputs
}

// departmentInputs are inputs with the names that they have for a department.
var departmentInputs = func() forms.Inputs {
	all := slices.Clone(inputs)
	for i := range all {
		switch all[i].Path {
		case "metadata.name":
			all[i].Label = "Name"
		case departmentPath:
			all[i].Path, all[i].Label = parentPath, "Parent"
		}
	}
	return all
}()

const (
	departmentPath = "spec.department"
	parentPath     = "spec.parent"
)

// departmentFormOf returns the form of a saved department.
func departmentFormOf(d *v1alpha1.Department) allocationForm {
	a := d.Allocation()
	a.Spec.Department = d.Spec.Parent
	form := formOf(*a)
	form.kind = ofDepartment
	for _, m := range d.Spec.Members {
		form.members = append(form.members, formMember{kind: m.Kind, name: m.Name, role: string(m.Role)})
	}
	return form
}

// departmentOf returns the department that was parsed as an allocation.
func (f *allocationForm) departmentOf(a *v1alpha1.ComputeAllocation) *v1alpha1.Department {
	spec := a.Spec.DeepCopy()
	d := &v1alpha1.Department{ObjectMeta: a.ObjectMeta, Spec: v1alpha1.DepartmentSpec{
		DisplayName: spec.DisplayName, Description: spec.Description, Parent: spec.Department, Activation: spec.Activation, FairShareWeight: spec.FairShareWeight,
		Quota: spec.Quota, Sharing: spec.Sharing, Windows: spec.Windows, Budget: spec.Budget,
	}}
	for i, row := range forms.Filled(f.members, formMember.empty) {
		d.Spec.Members = append(d.Spec.Members, v1alpha1.DepartmentMember{Member: spec.Members[i], Role: v1alpha1.DepartmentRole(f.members[row].role)})
	}
	if saved := f.savedDepartment(); saved != nil {
		d.Spec.CohortName = saved.Spec.CohortName
	}
	return d
}

func (m formMember) empty() bool { return m.name == "" }

// savedDepartment returns the department that the form changes; nil for a new one.
func (f *allocationForm) savedDepartment() *v1alpha1.Department {
	if f.edits == nil {
		return nil
	}
	return f.tree.Tree.Find(f.edits.allocation.Name)
}

// validate returns what the CRD rejects.
func (f *allocationForm) validate(a *v1alpha1.ComputeAllocation) governance.FieldErrors {
	var saved client.Object
	if f.kind == ofDepartment {
		if of := f.savedDepartment(); of != nil {
			saved = of
		}
		return schema.Department.Validate(f.departmentOf(a), saved)
	}
	if f.edits != nil {
		saved = &f.edits.allocation
	}
	return schema.ComputeAllocation.Validate(a, saved)
}

// refused returns what the policy, and the department that the form names, do not allow.
func (f *allocationForm) refused(state allocations.State, a *v1alpha1.ComputeAllocation, types catalog.Catalog) (wrong []governance.FieldError) {
	path := departmentPath
	if f.kind == ofDepartment {
		path = parentPath
		wrong = f.tree.Tree.CheckDepartment(f.departmentOf(a), f.savedDepartment())
	} else {
		var saved *v1alpha1.ComputeAllocation
		if f.edits != nil {
			saved = &f.edits.allocation
		}
		wrong = append(state.Refused(a, saved, types), state.Departments.CheckTeam(a, saved)...)
	}
	if len(wrong) == 0 && f.Submitted && f.outside(a) {
		wrong = append(wrong, governance.FieldError{Path: path, Message: "choose a department of which you are an admin"})
	}
	return wrong
}

// outside reports whether the reader governs departments, but not the one of the form.
func (f *allocationForm) outside(a *v1alpha1.ComputeAllocation) bool {
	return !f.tree.Governed.Empty() && !f.tree.Governed.Includes(a.Spec.Department)
}

// stateOf reads the state under which a form is shown and saved, and the departments of form.
func (h *Pages) stateOf(ctx context.Context, user governance.User, form *allocationForm) (allocations.State, error) {
	state, err := h.Allocations.State(ctx, user)
	if err == nil && h.Departments != nil {
		form.tree, err = h.Departments.State(ctx, user)
	}
	return state, err
}

// departmentMenu returns the departments that the reader may choose, with what is left of the
// quota of each; without options where there is none to choose.
func (f *allocationForm) departmentMenu(problem string) (menu views.SelectField) {
	chosen := f.typed["department"]
	none := "None"
	if f.kind == ofDepartment {
		none = "None: at the top"
	}
	if all := f.tree.Governed.All; all || chosen == "" {
		if !all && !f.tree.Governed.Empty() {
			none = "Choose a department"
		}
		menu.Options = append(menu.Options, views.Option{Label: none, Selected: chosen == ""})
	}
	for _, name := range f.tree.Tree.Below("") {
		switch {
		case name == "":
		case name != chosen && !f.tree.Governed.Includes(name):
		case f.kind == ofDepartment && name != chosen && f.tree.Tree.CheckParent(f.team, name) != "":
		default:
			label := f.tree.Tree.Path(name)
			if left := f.leftWords(name, f.left(name), 2); left != "" {
				label += " · " + left
			}
			menu.Options = append(menu.Options, views.Option{Value: name, Label: label, Selected: name == chosen})
		}
	}
	if chosen != "" && f.tree.Tree.Find(chosen) == nil {
		menu.Options = append(menu.Options, views.Option{Value: chosen, Label: chosen, Selected: true})
	}
	if len(menu.Options) < 2 && chosen == "" && problem == "" {
		return views.SelectField{}
	}
	menu.Error = problem
	return menu
}

// left returns what a department has left for what the form is about.
func (f *allocationForm) left(name string) quota.PoolResources {
	team, below := f.team, ""
	if f.kind == ofDepartment {
		team, below = "", f.team
	}
	if name == "" {
		return nil
	}
	return f.tree.Tree.Quota(name).Minus(f.tree.Tree.Taken(name, team, below))
}

// leftWords returns what is left of a department's quota, such as "12 of 64 H100 left", in at
// most so many pools.
func (f *allocationForm) leftWords(name string, left quota.PoolResources, most int) string {
	var parts []string
	of := f.tree.Tree.Quota(name)
	for _, pool := range f.tree.Types.Pools() {
		resource := pool.Instance.AcceleratorResource
		if resource == "" {
			resource = catalog.CPU
		}
		if all := of[pool.Name][resource]; all > 0 {
			unit := quota.Unit(resource, all)
			if pool.Instance.AcceleratorModel != "" {
				unit = pool.Instance.AcceleratorModel
			}
			parts = append(parts, fmt.Sprintf("%s of %s %s", quota.Grouped(resource, left[pool.Name][resource]), quota.Grouped(resource, all), unit))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	text := strings.Join(parts[:min(most, len(parts))], ", ") + " left"
	if len(parts) > most {
		text += " …"
	}
	return text
}

// afterWords returns what is left of the chosen department after saving a; empty without one.
func (f *allocationForm) afterWords(a *v1alpha1.ComputeAllocation, types catalog.Catalog) string {
	name := a.Spec.Department
	resolved, wrong := quota.Resolve(&a.Spec, types)
	if f.tree.Tree.Find(name) == nil || len(wrong) > 0 {
		return ""
	}
	own := quota.PoolResources{}
	own.AddNominal(resolved)
	words := f.leftWords(name, f.left(name).Minus(own), v1alpha1.MaxQuotaRows)
	if words == "" {
		return ""
	}
	return words + " in " + quota.Title(f.tree.Tree.Find(name)) + " with this quota."
}

// reserveWords returns the reserve of the department that the form has.
func (f *allocationForm) reserveWords(a *v1alpha1.ComputeAllocation, types catalog.Catalog) string {
	resolved, _ := quota.Resolve(&a.Spec, types)
	all := quota.PoolResources{}
	all.AddNominal(resolved)
	left := all.Minus(f.tree.Tree.Taken(f.team, "", ""))
	var parts []string
	for _, pool := range resolved.Pools {
		resource, amount := pool.Nominal.Accelerator()
		if resource == "" {
			resource, amount = catalog.CPU, pool.Nominal[catalog.CPU]
		}
		if amount > 0 {
			of := quota.Amount(resource, amount)
			if found, _ := types.Find(pool.Name); found.Instance.AcceleratorModel != "" {
				of = quota.Grouped(resource, amount) + " " + found.Instance.AcceleratorModel
			}
			parts = append(parts, quota.Grouped(resource, left[pool.Name][resource])+" of "+of)
		}
	}
	if len(parts) == 0 {
		return "It has no quota: its teams can have none."
	}
	return "Reserve: " + strings.Join(parts, ", ") + ". It is what its teams and departments do not have, and all of them borrow it first."
}

// newDepartment answers GET /departments/new.
func (h *Pages) newDepartment(s *web.Server) func(echo.Context) error {
	return func(c echo.Context) error {
		values, lost := h.TypedValues(c, urls.NewDepartment)
		if values != nil {
			return h.takeDepartment(c, values, forms.ActionShow)
		}
		form := emptyForm()
		form.kind, form.typed["department"] = ofDepartment, c.QueryParam("parent")
		form.Lost = lost
		return h.openDepartment(c, s, form)
	}
}

// editDepartment answers GET /departments/{name}/edit.
func (h *Pages) editDepartment(s *web.Server) func(echo.Context) error {
	return func(c echo.Context) error {
		values, lost := h.TypedValues(c, urls.EditDepartment(c.Param("name")))
		if values != nil {
			return h.takeDepartment(c, values, forms.ActionShow)
		}
		state, err := h.Departments.State(c.Request().Context(), console.UserOf(c))
		if err != nil {
			return err
		}
		found := state.Find(c.Param("name"))
		if found == nil {
			return departments.Unknown(c.Param("name"))
		}
		form := departmentFormOf(found)
		form.Lost = lost
		return h.openDepartment(c, s, form)
	}
}

// openDepartment shows a form of a department with its initial values.
func (h *Pages) openDepartment(c echo.Context, s *web.Server, form allocationForm) error {
	state, err := h.stateOf(c.Request().Context(), console.UserOf(c), &form)
	if err == nil {
		err = form.mayDepartment()
	}
	if err != nil {
		return err
	}
	if m, managed := gitops.ManagerOf(form.savedOrNew()); managed {
		return h.ShowManaged(c, form.managedDepartment(m))
	}
	return h.showForm(c, s, form, state)
}

// savedOrNew returns the saved department, or an empty one.
func (f *allocationForm) savedOrNew() *v1alpha1.Department {
	if saved := f.savedDepartment(); saved != nil {
		return saved
	}
	return &v1alpha1.Department{}
}

// managedDepartment returns the page in place of the form of a department that a GitOps tool
// manages.
func (f *allocationForm) managedDepartment(m gitops.Manager) views.Managed {
	page := views.Managed{UpLabel: f.team, UpURL: urls.Department(f.team), Sentence: m.Message("Department " + f.team), Text: manifest.DepartmentYAML(f.savedOrNew())}
	page.Title = "Edit " + f.team
	return page
}

// mayDepartment returns an error unless the reader may save the form.
func (f *allocationForm) mayDepartment() error {
	if f.edits != nil && f.tree.MayChange(f.edits.allocation.Name) || f.edits == nil && !f.tree.Governed.Empty() {
		return nil
	}
	return departments.Unknown(f.team)
}

// readDepartment reads the form of the department of the address, or of a new one, as far as
// the reader may save it.
func (h *Pages) readDepartment(c echo.Context, values url.Values) (form allocationForm, state allocations.State, err error) {
	form = readForm(ofDepartment, values)
	if state, err = h.stateOf(c.Request().Context(), console.UserOf(c), &form); err != nil {
		return form, state, err
	}
	if name := c.Param("name"); name != "" {
		found := form.tree.Find(name)
		if found == nil {
			return form, state, departments.Unknown(name)
		}
		form.changes(departmentFormOf(found).edits)
	}
	return form, state, form.mayDepartment()
}

// takeDepartment answers an action on the form of a department.
func (h *Pages) takeDepartment(c echo.Context, values url.Values, action string) error {
	form, _, err := h.readDepartment(c, values)
	if err != nil && !console.Unavailable(err) {
		return err
	}
	if m, managed := gitops.ManagerOf(form.savedOrNew()); managed && err == nil {
		return h.RefuseManaged(c, form.managedDepartment(m), "")
	}
	return h.takeForm(c, form, action, err)
}

// saveDepartment reviews or saves the department of a form.
func (h *Pages) saveDepartment(ctx context.Context, user governance.User, form *allocationForm, a *v1alpha1.ComputeAllocation, action string) (review departments.Review, err error) {
	d := form.departmentOf(a)
	if action == forms.ActionReview || action == forms.ActionApply {
		review, err = h.Departments.Review(ctx, user, form.tree, d)
		if err != nil || action == forms.ActionReview {
			return review, err
		}
		if form.asked = h.ask(ctx, user, form, a, allocations.Review{}); form.asked != "" {
			return review, nil
		}
	}
	if form.edits != nil {
		return review, h.Departments.Update(ctx, user, form.tree, d)
	}
	return review, h.Departments.Create(ctx, user, form.tree, d, form.request)
}

// done returns the notice of the page after a save.
func (f *allocationForm) done(unchanged bool) string {
	switch {
	case unchanged:
		return "unchanged"
	case f.edits == nil:
		return "created"
	}
	return "saved"
}

// rereadDepartment reads the department that form changes again.
func (h *Pages) rereadDepartment(c echo.Context, form *allocationForm) (version, generation string, ok bool) {
	tree, err := h.Departments.State(c.Request().Context(), console.UserOf(c))
	if err != nil || tree.Find(form.team) == nil {
		return "", "", false
	}
	form.tree = tree
	now := departmentFormOf(tree.Find(form.team))
	form.edits = now.edits
	return now.Version, now.Generation, true
}

// renderDepartmentReview shows the effects of saving the form of a department.
func (h *Pages) renderDepartmentReview(c echo.Context, form allocationForm, wanted *v1alpha1.ComputeAllocation, review departments.Review) error {
	place := form.place()
	page := allocationviews.AllocationReview{
		Chrome: h.Chrome(c), Action: place.action, CancelURL: place.up, UpLabel: place.upLabel, Save: place.save, Asked: form.askedWords(),
		New: form.edits == nil, InPlace: forms.InPlace(c), Fields: forms.WithoutReason(form.hidden(c)), Reason: forms.ReasonField(form.Reason, "everyone who sees the department"),
		Unchanged: review.Empty(), Quota: quotaChanges(review.Pools),
	}
	page.Settings = versions.ValueChanges(slices.DeleteFunc(slices.Clone(review.Changes), func(c change.Field) bool { return len(review.Pools) > 0 && strings.HasPrefix(c.Path, "Quota, ") }))
	if !page.Unchanged {
		page.Preview = h.Previews.For(c, &page.Chrome, h.saving(console.UserOf(c), &form, wanted, false))
	}
	page.Title, page.Active = "Review: "+form.team, "teams"
	return web.Render(c, http.StatusOK, allocationviews.AllocationReviewPage(page))
}
