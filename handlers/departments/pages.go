package departments

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/cluster/gitops"
	"kuota.dev/kuota/governance/departments"
	"kuota.dev/kuota/governance/observe/capacity"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/spec/describe"
	"kuota.dev/kuota/governance/spec/manifest"
	"kuota.dev/kuota/handlers/charts"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/figures"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/forms"
	"kuota.dev/kuota/handlers/previews"
	"kuota.dev/kuota/handlers/timerange"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	departmentviews "kuota.dev/kuota/views/departments"
	"kuota.dev/kuota/views/ui"
	"kuota.dev/kuota/web"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
)

// Pages answers the routes of departments, but for their forms.
type Pages struct {
	*console.Console
	forms.Addresses
	History  console.History // nil for none
	Previews *previews.Previews
	Changes  console.Listener // of allocations and departments
}

// Register adds the routes of this package to the server.
func (h *Pages) Register(s *web.Server) {
	s.Page(urls.Departments, h.Handler(func(c echo.Context) error { return c.Redirect(http.StatusSeeOther, urls.Teams) }))
	s.Page(urls.DepartmentsCSV, h.Handler(h.csv))
	s.Page(urls.DepartmentsJSON, h.Handler(h.json))
	s.Page(urls.DepartmentPrefix+":name", h.Handler(h.department))
	s.Page(urls.DepartmentPrefix+":name/yaml", h.Handler(h.yaml))
	s.Events(urls.DepartmentPrefix+":name/events", h.Handler(h.events(s)))
	s.Form(urls.DepartmentPrefix+":name/delete", h.Handler(h.Writing(h.confirmDelete)), h.Handler(h.Writing(h.delete)))
	s.Events(urls.DepartmentPrefix+":name/delete/events", h.Handler(h.previewDelete(s)))
	h.registerAPI(s)
}

// seen is what a reader sees of departments at one moment.
type seen struct {
	departments.State
	scope    access.Scope
	snapshot *capacity.Snapshot
	figures  map[string]departments.Figures
}

// read returns what a user sees.
func (h *Pages) read(ctx context.Context, user governance.User) (s seen, err error) {
	if s.State, err = h.Departments.State(ctx, user); err != nil {
		return s, err
	}
	if s.scope, err = h.Tasks.Scope(ctx, user); err != nil && governance.KindOf(err) != governance.Outside {
		return s, err
	}
	if s.snapshot, err = h.Capacity.Within(ctx, s.scope); err != nil {
		return s, err
	}
	s.figures, err = h.Departments.Figures(ctx, s.State, func(team string) bool {
		return slices.ContainsFunc(s.snapshot.Teams, func(t capacity.TeamSnapshot) bool { return t.Name == team })
	})
	return s, err
}

// department answers GET /departments/{name}. ?done= says what was just done.
func (h *Pages) department(c echo.Context) error {
	page, err := h.page(c.Request().Context(), console.UserOf(c), c.Param("name"))
	if err != nil {
		return err
	}
	title := page.Title
	page.Chrome = h.Chrome(c)
	page.Title, page.Active, page.Stream = title, "teams", urls.Department(page.Name)+"/events"
	page.Notice = map[string]string{"created": "Created. Choose the department in the allocations of its teams.", "saved": "Saved.", "unchanged": "Nothing was changed."}[c.QueryParam("done")]
	return web.Render(c, http.StatusOK, departmentviews.Department(page))
}

// events answers GET /departments/{name}/events: the same, as it changes.
func (h *Pages) events(s *web.Server) func(echo.Context) error {
	return func(c echo.Context) error {
		if _, err := h.page(c.Request().Context(), console.UserOf(c), c.Param("name")); err != nil {
			return err
		}
		changed := func(ctx context.Context) <-chan struct{} { return cluster.Either(ctx, h.CapacityChanges, h.Changes) }
		return s.Stream(c, web.Part{Changed: changed, MinGap: console.FiguresMinGap, Render: func(ctx context.Context) (templ.Component, error) {
			page, err := h.page(ctx, console.UserOf(c), c.Param("name"))
			if governance.KindOf(err) == governance.NotFound {
				return departmentviews.DepartmentDeleted(c.Param("name"), urls.Teams), nil
			}
			return console.Live("department", departmentviews.DepartmentLive(page), err)
		}}, h.Frame(c))
	}
}

func (h *Pages) yaml(c echo.Context) error {
	d, err := h.find(c)
	if err != nil {
		return err
	}
	return console.YAMLFile(c, d.Name, manifest.DepartmentYAML(d))
}

// find returns the department of the address, if the reader sees everything of it.
func (h *Pages) find(c echo.Context) (*v1alpha1.Department, error) {
	state, err := h.Departments.State(c.Request().Context(), console.UserOf(c))
	if err != nil {
		return nil, err
	}
	d := state.Find(c.Param("name"))
	if d == nil || !state.Sees(d.Name) {
		return nil, departments.Unknown(c.Param("name"))
	}
	return d, nil
}

func (h *Pages) page(ctx context.Context, user governance.User, name string) (page departmentviews.DepartmentPage, err error) {
	s, err := h.read(ctx, user)
	if err != nil {
		return page, err
	}
	d := s.Find(name)
	if d == nil {
		return page, departments.Unknown(name)
	}
	page = departmentviews.DepartmentPage{Name: name, Description: d.Spec.Description, Brief: !s.Sees(name), Path: []views.NamedLink{{Name: "Teams", URL: urls.Teams}}}
	page.Title = quota.Title(d)
	for _, above := range slices.Backward(s.Tree.Chain(name)[1:]) {
		page.Path = append(page.Path, views.NamedLink{Name: quota.Title(s.Tree.Find(above)), URL: urls.Department(above)})
	}
	page.Rows = h.rows(&s, name)
	if page.Brief {
		return page, nil
	}
	page.Status = figures.DepartmentStatus(d)
	page.Overrides = describe.Active(d.Allocation())
	if used := describe.BudgetUsage(d.Allocation()); used != "" {
		page.Overrides = append(page.Overrides, used)
	}
	q := figures.Parse(urls.Department(name), "q", "page", url.Values{}, timerange.Range{})
	q.Resource = mostOf(s.figures[name])
	page.Below = q.Below(s.State, d, s.figures, s.snapshot, q.Counted(s.snapshot))
	h.setSince(ctx, &s, name)
	page.Loans = s.loans(name, h.Now())
	for _, m := range d.Spec.Members {
		page.Members = append(page.Members, describe.DepartmentMember(m))
	}
	for _, c := range describe.DepartmentChanges(nil, &d.Spec) {
		switch {
		case c.Path == "Member", c.Path == "Display name", c.Path == "Description", c.Path == "Parent", strings.HasPrefix(c.Path, "Quota, "): // shown elsewhere on the page
		default:
			page.Settings = append(page.Settings, views.ValueLine{Name: c.Path, Value: c.After})
		}
	}
	page.Settings = append(page.Settings, views.ValueLine{Name: "Cohort", Value: format.OrDash(d.Status.Cohort)})
	page.ActivityURL = urls.ActivityOf(string(d.UID))
	page.YAML, page.YAMLURL = manifest.DepartmentYAML(d), urls.Department(name)+"/yaml"
	if m, managed := gitops.ManagerOf(d); managed {
		page.Managed = m.Message("Department " + name)
	}
	if h.ReadOnlyReason() != "" {
		return page, nil
	}
	if s.MayChange(name) && page.Managed == "" && d.DeletionTimestamp == nil {
		page.EditURL, page.DeleteURL = urls.EditDepartment(name), urls.DeleteDepartment(name)
	}
	if s.Governed.Includes(name) && d.DeletionTimestamp == nil {
		page.NewTeamURL = urls.With(urls.NewAllocation, nil, "department", name)
		if len(s.Tree.Chain(name)) < v1alpha1.MaxDepartmentLevels {
			page.NewURL = urls.With(urls.NewDepartment, nil, "parent", name)
		}
	}
	return page, nil
}

// mostOf returns the accelerators of which a department has most, else its vCPUs; empty
// without quota.
func mostOf(f departments.Figures) (name string) {
	sums, most := map[string]resources.Amount{}, resources.Amount(0)
	for _, r := range f.Resources {
		sums[r.Resource] = sums[r.Resource].Plus(r.Quota)
		switch sum := sums[r.Resource]; {
		case catalog.IsAccelerator(r.Resource) && sum > most:
			name, most = r.Resource, sum
		case r.Resource == catalog.CPU:
			name = cmp.Or(name, r.Resource)
		}
	}
	return name
}

// rows returns the quota of a department by pool. Pools without accelerators come last.
func (h *Pages) rows(s *seen, name string) (rows []departmentviews.ResourceRow) {
	list := slices.DeleteFunc(slices.Clone(s.figures[name].Resources), func(r departments.Resource) bool { return r.Resource == catalog.Network })
	first, models := map[string]string{}, map[string]string{}
	for _, r := range list {
		if of, ok := first[r.Flavor]; !ok || quota.Compare(r.Resource, of) < 0 {
			first[r.Flavor] = r.Resource
		}
	}
	for i := range s.snapshot.Pools {
		models[s.snapshot.Pools[i].Name] = s.snapshot.Pools[i].AcceleratorModel
	}
	slices.SortStableFunc(list, func(a, b departments.Resource) int {
		return cmp.Or(quota.Compare(first[a.Flavor], first[b.Flavor]), strings.Compare(a.Flavor, b.Flavor), quota.Compare(a.Resource, b.Resource))
	})
	for i, r := range list {
		number := func(amount resources.Amount) string { return quota.Grouped(r.Resource, amount) }
		row := departmentviews.ResourceRow{
			ID: "quota-" + r.Flavor + "-" + r.Resource, Pool: r.Flavor, SamePool: i > 0 && list[i-1].Flavor == r.Flavor, Model: models[r.Flavor], Resource: format.ResourceLabel(r.Resource),
			Quota: number(r.Quota), Allocated: "–", Reserve: "–", Used: "–", Borrowed: "–", Lent: "–",
		}
		if s.Sees(name) {
			row.Allocated, row.Reserve, row.Used, row.Borrowed, row.Lent = number(r.Allocated), number(r.Reserve), number(r.Used), number(r.Borrowed), number(r.Lent)
			row.Borrowing = r.Borrowed > 0
			row.Meter = ui.MeterProps{
				Label: fmt.Sprintf("%s used of a quota of %s", number(r.Used), quota.Amount(r.Resource, r.Quota)), Max: charts.BarMax(r.Resource, r.Quota, r.Used), Mark: float64(r.Quota),
				Parts: []ui.MeterPart{{Use: "own", Value: float64(r.Used.Minus(r.Borrowed))}, {Use: "borrowed", Value: float64(r.Borrowed)}, {Use: "idle", Value: float64(max(0, r.Quota.Minus(r.Used)))}},
			}
		} else if r.Quota == 0 {
			continue
		}
		rows = append(rows, row)
	}
	return rows
}

// loans returns what a department borrows and lends, by resource. vCPU and memory follow
// accelerators, and are left out where a pool has these.
func (s *seen) loans(name string, now time.Time) (lines []departmentviews.LoanLine) {
	accelerated := map[string]bool{}
	for _, r := range s.figures[name].Resources {
		if catalog.IsAccelerator(r.Resource) {
			accelerated[r.Flavor] = true
		}
	}
	shared := "compute that no department or team has"
	if parent := s.Tree.Find(s.Tree.Find(name).Spec.Parent); parent != nil {
		shared = "the reserve of " + quota.Title(parent)
	}
	for _, r := range s.figures[name].Resources {
		if r.Resource == catalog.Network || accelerated[r.Flavor] && catalog.FollowsAccelerators(r.Resource) {
			continue
		}
		add := func(loans []departments.Loan, lends bool) {
			for _, l := range loans {
				line := departmentviews.LoanLine{Lends: lends, Amount: quota.Amount(r.Resource, l.Amount) + " of " + r.Flavor}
				switch {
				case l.Since.IsZero():
				case now.Sub(l.Since) >= longestLoan:
					line.Long = "for more than a day"
				default:
					line.Since = format.Time(l.Since)
				}
				switch {
				case l.Team != "":
					line.WhoPrefix, line.Who, line.URL = "team", l.Team, urls.Team(l.Team)
				case l.Department != "":
					line.WhoPrefix, line.Who, line.URL = "department", quota.Title(s.Tree.Find(l.Department)), urls.Department(l.Department)
				case lends:
					line.Who = "others"
				default:
					line.Who = shared + ", and others"
					if s.Sees(name) && s.scope.All {
						line.Who = shared
					}
				}
				lines = append(lines, line)
			}
		}
		add(r.From, false)
		add(r.To, true)
	}
	return lines
}
