package imports

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/imports"
	"kuota.dev/kuota/governance/policy"
	"kuota.dev/kuota/governance/quota/catalog"
	allocationpages "kuota.dev/kuota/handlers/allocations"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/forms"
	policypages "kuota.dev/kuota/handlers/policy"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	importviews "kuota.dev/kuota/views/imports"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// importer has the permissions of the reader.
type importer struct {
	may    allocations.Permissions
	policy policy.State
}

// importing returns the reader's permissions, and 404 for readers who cannot save
// anything.
func (h *Pages) importing(c echo.Context) (i importer, err error) {
	ctx, user := c.Request().Context(), console.UserOf(c)
	if i.may, err = h.May(ctx, user); err != nil {
		return i, err
	}
	i.policy, err = h.Policy.State(ctx, user)
	if governance.KindOf(err) == governance.Outside {
		i.policy, err = policy.State{}, nil // they may create allocations and see none
	}
	if err == nil && !i.may.Creates() && !i.may.Updates() && !i.policy.MayEdit {
		err = echo.ErrNotFound
	}
	return i, err
}

// importForm answers GET /policies/import: an empty form, or the text that was posted
// after the session ended.
func (h *Pages) importForm(s *web.Server) func(echo.Context) error {
	return func(c echo.Context) error {
		if _, err := h.importing(c); err != nil {
			return err
		}
		if values, _ := h.TypedValues(c, urls.Import); values != nil {
			return h.readImport(c, values)
		}
		page := importviews.ImportPage{}
		if sent := s.Draft(c); sent != nil {
			page.Resumed = true
			page.Text.Value, _ = forms.TextOrFile(sent)
		}
		return h.renderImport(c, http.StatusOK, page, nil)
	}
}

// importObjects answers POST /policies/import: the one object that was read, in
// its form, or else what was read and what was not. pick opens one of several.
// Nothing is saved.
func (h *Pages) importObjects(c echo.Context) error {
	values, err := forms.Posted(c)
	if err != nil {
		return err
	}
	return h.readImport(c, values)
}

// readImport answers with what was read of the values.
func (h *Pages) readImport(c echo.Context, values url.Values) error {
	text, problem := forms.TextOrFile(values)
	page := importviews.ImportPage{Text: views.TextField{Value: text, Error: problem}}
	who, err := h.importing(c)
	switch {
	case console.Unavailable(err):
		page.Failure = "The cluster cannot be reached, so nothing was read. Your text is kept below; try again in a moment."
		return h.renderImport(c, http.StatusServiceUnavailable, page, values)
	case err != nil:
		return err
	case problem != "":
		return h.renderImport(c, http.StatusUnprocessableEntity, page, values)
	}
	if values.Get("action") == allocationpages.EditMany {
		return h.renderImport(c, http.StatusOK, page, values)
	}
	state, outside := h.Allocations.State(c.Request().Context(), console.UserOf(c))
	if outside != nil && governance.KindOf(outside) != governance.Outside {
		return outside
	}
	result := imports.ReadWith([]byte(text), poolOf(state.Types))
	page.NotImported = forms.Lines(result.Problems)
	for i := range result.Objects {
		who.warnOfSharing(&result.Objects[i])
	}
	action := values.Get("action")
	if action == "read" && result.Table && len(result.Objects) > 1 && len(result.Problems) == 0 { // nothing else can be done with it
		action = allocationpages.ReviewMany
		values.Set("action", action)
	}
	if len(result.Objects) > 0 && (action == allocationpages.ReviewMany || action == allocationpages.SaveMany) {
		if outside != nil { // who sees no allocation cannot review them
			return outside
		}
		return h.AllocationPages.Many(c, state, who.may, result.Objects, values)
	}
	pick, err := strconv.Atoi(values.Get("pick"))
	picked := err == nil && pick >= 0 && pick < len(result.Objects)
	if !picked && len(result.Objects) == 1 {
		pick, picked = 0, true
	}
	if picked {
		object := result.Objects[pick]
		if len(result.Objects) == 1 {
			object.Problems = append(object.Problems, result.Problems...)
		}
		var opened bool
		var note string
		switch {
		case object.ElasticJob != nil: // it is submitted to a team
		case object.Policy != nil:
			opened, note, err = h.PolicyPages.OpenImported(c, who.policy, object)
		default:
			opened, note, err = h.AllocationPages.OpenImported(c, who.may, object)
		}
		if opened || err != nil {
			return err
		}
		page.Failure = note
	}
	return h.renderImported(c, who, state, page, result, values)
}

// poolOf returns the function that finds the pool that the heading of a table means: by its
// name, its instance type, or the model of its accelerators if no other pool has it.
func poolOf(types catalog.Catalog) func(string) (string, string) {
	pools := slices.DeleteFunc(types.Pools(), func(p catalog.Pool) bool { return p.Nodes == 0 && !p.Named })
	return func(heading string) (name, problem string) {
		var models, all []string
		for _, p := range pools {
			if p.Name == heading || slices.Equal(p.Types, []string{heading}) {
				return heading, ""
			}
			if all = append(all, p.Name); strings.EqualFold(p.Instance.AcceleratorModel, heading) {
				models = append(models, p.Name)
			}
		}
		switch {
		case len(models) == 1:
			return models[0], ""
		case len(models) > 1:
			return "", "is the accelerator of several pools: write one of " + strings.Join(models, ", ")
		case len(pools) > 0 && !strings.Contains(heading, "."): // what has a dot can be planned hardware
			return "", "is neither a column nor a pool. The pools are " + strings.Join(all, ", ")
		}
		return heading, ""
	}
}

// renderImported lists the objects of the text.
func (h *Pages) renderImported(c echo.Context, who importer, state allocations.State, page importviews.ImportPage, result imports.Result, values url.Values) error {
	status := http.StatusOK
	if len(result.Objects) == 0 {
		status = http.StatusUnprocessableEntity
		page.Text.Error = "Nothing in this text can be imported. See above for the reasons."
	}
	for i, o := range result.Objects {
		object := importviews.ImportedObject{Index: i, Kind: "Compute allocation", NotImported: forms.Lines(o.Problems)}
		switch {
		case o.Policy != nil:
			object.Kind, object.Name = "Cluster policy", "Cluster policy"
		case o.ElasticJob != nil:
			object.Kind, object.Name = "Elastic task", cmp.Or(o.ElasticJob.Name, "No name")
		default:
			object.Name = cmp.Or(o.Allocation.Name, "No team name")
		}
		object.Note, object.CanOpen = who.prospect(o, state)
		if o.Allocation != nil && object.CanOpen {
			page.Teams++
		}
		page.Objects = append(page.Objects, object)
	}
	return h.renderImport(c, status, page, values)
}

// warnOfSharing says of a policy that would stop lending unallocated compute only
// because it does not mention it.
func (i importer) warnOfSharing(o *imports.Object) {
	if o.Policy != nil && o.SharingUnspecified && i.policy.Policy != nil && i.policy.Policy.Spec.IdleCompute.ShareUnallocated {
		o.Problems = append(o.Problems, governance.FieldError{
			Path: "IdleResourceSharing", Message: "is missing, so saving turns off lending of unallocated compute. Select it under Idle compute to keep it",
		})
	}
}

// prospect describes what opening an object does, and whether the reader may.
func (i importer) prospect(o imports.Object, state allocations.State) (note string, can bool) {
	const mayNot = "You are not allowed to save this."
	if o.ElasticJob != nil {
		return "Tasks are submitted on the page of their team: open it, and choose Submit from a manifest.", false
	}
	if o.Policy != nil {
		switch {
		case !i.policy.MayEdit:
			return mayNot, false
		case i.policy.Policy != nil:
			return "A cluster policy exists. Its form opens with these values in place of the saved ones.", true
		}
		return "", true
	}
	for _, a := range state.Allocations {
		if a.Name == o.Allocation.Name {
			if !i.may.UpdatesIn(a.Spec.Department) {
				return "The team exists, and you are not allowed to change it.", false
			}
			return "The team exists. Its form opens with these values in place of the saved ones.", true
		}
	}
	if !i.may.Creates() {
		return mayNot, false
	}
	return "", true
}

// renderImport shows the page that read the values.
func (h *Pages) renderImport(c echo.Context, status int, page importviews.ImportPage, values url.Values) error {
	page.Chrome = h.Chrome(c)
	page.Title, page.Active = "Import", "policies"
	page.Action, page.CancelURL, page.InPlace = urls.Import, urls.Policies, forms.InPlace(c)
	return h.AnswerForm(c, status, urls.Import, urls.Import, values, importviews.Import(page))
}

// Pages answers the routes of the import, which opens the form of what it reads.
type Pages struct {
	*console.Console
	forms.Addresses
	Policy          console.Policy
	AllocationPages *allocationpages.Pages
	PolicyPages     *policypages.Pages
}

// Register adds the routes of this package to the server.
func (h *Pages) Register(s *web.Server) {
	s.Form(urls.Import, h.Handler(h.Writing(h.importForm(s))), h.Handler(h.Writing(h.importObjects)))
}
