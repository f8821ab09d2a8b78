package departments

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/gitops"
	"kuota.dev/kuota/governance/departments"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/figures"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/listing"
	"kuota.dev/kuota/handlers/previews"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views/ui"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	apiDepartments = "/departments"
	apiDepartment  = apiDepartments + "/:name"
)

// registerAPI adds the endpoints of departments.
func (h *Pages) registerAPI(s *web.Server) {
	reason := web.Parameter{Name: "reason", About: "why, for the activity"}
	saved := []web.Parameter{{Name: "dryRun", About: "true saves nothing and answers what would change"}, reason}
	version := web.Parameter{Name: "resourceVersion", About: "of the department that was read; without it, the one now"}
	add := func(method, path, summary string, body, answer any, handler func(echo.Context) error, query ...web.Parameter) {
		if method != http.MethodGet {
			handler = h.Writing(handler)
		}
		s.API(web.Endpoint{Method: method, Path: path, Summary: summary, Query: query, Body: body, Answer: answer, Keyed: method == http.MethodPost, Handler: h.Handler(handler)})
	}
	add(http.MethodGet, apiDepartments, "List departments with quota and usage", nil, departmentsAnswer{}, h.json, console.PageParameter)
	add(http.MethodGet, apiDepartment, "Return a department", nil, v1alpha1.Department{}, h.getDepartment)
	add(http.MethodPost, apiDepartments, "Create a department, or review it", v1alpha1.Department{}, SaveAnswer{}, h.postDepartment, saved...)
	add(http.MethodPut, apiDepartment, "Change a department, or review the change", v1alpha1.Department{}, SaveAnswer{}, h.putDepartment, saved...)
	add(http.MethodDelete, apiDepartment, "Delete a department without teams and departments", nil, DeleteAnswer{}, h.removeDepartment, reason, version)
}

// departmentsOnPage is the number of departments in a page of the file.
const departmentsOnPage = 100

// departmentsAnswer is the answer of GET /departments.json. Amounts are vCPU and memory in
// GiB, and counts of others.
type departmentsAnswer struct {
	At          time.Time        `json:"at"`
	Total       int              `json:"total"`
	Page        int              `json:"page,omitempty"` // if the request names one
	Pages       int              `json:"pages,omitempty"`
	Departments []departmentJSON `json:"departments"` // each before those below it
}

type departmentJSON struct {
	Name        string         `json:"name"`
	DisplayName string         `json:"displayName,omitempty"`
	Parent      string         `json:"parent,omitempty"`
	Path        string         `json:"path"` // of its page
	Status      string         `json:"status,omitempty"`
	Reason      string         `json:"reason,omitempty"`
	Teams       []string       `json:"teams,omitempty"` // directly in it
	Resources   []resourceJSON `json:"resources"`
	Running     *int           `json:"runningTasks,omitempty"` // this and the next are only for members of the department
	Waiting     *int           `json:"waitingTasks,omitempty"`
}

type resourceJSON struct {
	Pool      string       `json:"pool"`
	Resource  string       `json:"resource"`
	Unit      string       `json:"unit"`
	Quota     *json.Number `json:"quota"`
	Allocated *json.Number `json:"allocated,omitempty"` // this and the next are only for members of the department
	Reserve   *json.Number `json:"reserve,omitempty"`
	Used      *json.Number `json:"used,omitempty"`
	Borrowed  *json.Number `json:"borrowed,omitempty"`
	Lent      *json.Number `json:"lent,omitempty"`
	From      []loanJSON   `json:"borrowedFrom,omitempty"`
	To        []loanJSON   `json:"lentTo,omitempty"`
}

// loanJSON is a loan; without names, with others.
type loanJSON struct {
	Department string       `json:"department,omitempty"`
	Team       string       `json:"team,omitempty"`
	Amount     *json.Number `json:"amount"`
	Since      *time.Time   `json:"since,omitempty"` // of at most a day; absent where it is not known
}

// json answers GET /departments.json, and the API.
func (h *Pages) json(c echo.Context) error {
	s, err := h.read(c.Request().Context(), console.UserOf(c))
	if err != nil {
		return err
	}
	names := slices.DeleteFunc(s.Tree.Below(""), func(name string) bool { return s.Find(name) == nil })
	from, to, page, pages := listing.Part(c.QueryParam("page"), departmentsOnPage, len(names))
	h.setSince(c.Request().Context(), &s, slices.DeleteFunc(slices.Clone(names[from:to]), func(name string) bool { return !s.Sees(name) })...)
	answer := departmentsAnswer{At: h.Now().UTC(), Total: len(names), Page: page, Pages: pages, Departments: []departmentJSON{}}
	for _, name := range names[from:to] {
		d := s.Find(name)
		f, all := s.figures[name], s.Sees(name)
		one := departmentJSON{Name: name, DisplayName: d.Spec.DisplayName, Parent: d.Spec.Parent, Path: string(ui.At(c.Request().Context(), urls.Department(name))), Resources: []resourceJSON{}}
		if all {
			status := figures.DepartmentStatus(d)
			one.Status, one.Reason, one.Running, one.Waiting = status.Label, status.Text, &f.Running, &f.Waiting
			for _, team := range s.Tree.Teams(name) {
				one.Teams = append(one.Teams, team.Name)
			}
		}
		for _, r := range f.Resources {
			if !all && r.Quota == 0 {
				continue
			}
			amount := func(n resources.Amount) *json.Number {
				if !all {
					return nil
				}
				return format.JSONAmount(r.Resource, n)
			}
			loans := func(list []departments.Loan) (out []loanJSON) {
				for _, l := range list {
					if all {
						loan := loanJSON{Department: l.Department, Team: l.Team, Amount: amount(l.Amount)}
						if !l.Since.IsZero() {
							loan.Since = new(l.Since.UTC())
						}
						out = append(out, loan)
					}
				}
				return out
			}
			one.Resources = append(one.Resources, resourceJSON{
				Pool: r.Flavor, Resource: r.Resource, Unit: format.Unit(r.Resource), Quota: format.JSONAmount(r.Resource, r.Quota), Allocated: amount(r.Allocated), Reserve: amount(r.Reserve),
				Used: amount(r.Used), Borrowed: amount(r.Borrowed), Lent: amount(r.Lent), From: loans(r.From), To: loans(r.To),
			})
		}
		answer.Departments = append(answer.Departments, one)
	}
	return c.JSON(http.StatusOK, answer)
}

// csv answers GET /departments.csv: a line for each resource of each department.
func (h *Pages) csv(c echo.Context) error {
	s, err := h.read(c.Request().Context(), console.UserOf(c))
	if err != nil {
		return err
	}
	rows := [][]string{{"department", "name", "parent", "pool", "resource", "unit", "quota", "allocated", "reserve", "used", "borrowed", "lent"}}
	for _, name := range s.Tree.Below("") {
		d := s.Find(name)
		if d == nil {
			continue
		}
		for _, r := range s.figures[name].Resources {
			row := []string{name, d.Spec.DisplayName, d.Spec.Parent, r.Flavor, r.Resource, format.Unit(r.Resource), quota.Number(r.Resource, r.Quota), "", "", "", "", ""}
			if s.Sees(name) {
				for i, amount := range []resources.Amount{r.Allocated, r.Reserve, r.Used, r.Borrowed, r.Lent} {
					row[7+i] = quota.Number(r.Resource, amount)
				}
			} else if r.Quota == 0 {
				continue
			}
			rows = append(rows, row)
		}
	}
	return console.CSVFile(c, "departments", rows)
}

// SaveAnswer is what saving changed or, as a dry run, would change.
type SaveAnswer struct {
	Saved      bool                   `json:"saved"`
	Unchanged  bool                   `json:"unchanged,omitempty"` // saving changes nothing
	Interrupts bool                   `json:"interrupts"`          // running tasks, or it is not known whether it does
	Settings   []previews.FieldChange `json:"settings,omitempty"`
	Effect     *previews.Effect       `json:"effect,omitempty"`     // of a dry run
	Department *v1alpha1.Department   `json:"department,omitempty"` // as it is saved
}

// DeleteAnswer is what a deletion did.
type DeleteAnswer struct {
	Deleted bool `json:"deleted"`
}

// asSaved returns a department as the API has it.
func asSaved(d *v1alpha1.Department) *v1alpha1.Department {
	d = d.DeepCopy()
	d.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Department"}
	d.ManagedFields = nil
	return d
}

func (h *Pages) getDepartment(c echo.Context) error {
	d, err := h.find(c)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, asSaved(d))
}

// readDepartment reads the body of a save.
func readDepartment(c echo.Context) (*v1alpha1.Department, error) {
	var sent v1alpha1.Department
	if err := web.ReadJSON(c, &sent); err != nil {
		return nil, err
	}
	if err := console.CheckSent(c, &sent.TypeMeta, &sent.ObjectMeta, "Department", "department"); err != nil {
		return nil, err
	}
	wanted := &v1alpha1.Department{Spec: sent.Spec}
	wanted.Name, wanted.ResourceVersion = sent.Name, sent.ResourceVersion
	v1alpha1.SetReason(wanted, c.QueryParam("reason"))
	return wanted, nil
}

func (h *Pages) postDepartment(c echo.Context) error {
	wanted, err := readDepartment(c)
	if err != nil {
		return err
	}
	wanted.ResourceVersion = ""
	return h.saveDepartment(c, wanted, func(state departments.State) error {
		return h.Departments.Create(c.Request().Context(), console.UserOf(c), state, wanted, console.RequestOf(c))
	})
}

func (h *Pages) putDepartment(c echo.Context) error {
	wanted, err := readDepartment(c)
	if err != nil {
		return err
	}
	return h.saveDepartment(c, wanted, func(state departments.State) error {
		now := state.Find(wanted.Name)
		if now == nil {
			return departments.Unknown(wanted.Name)
		}
		if m, managed := gitops.ManagerOf(now); managed {
			return &governance.Error{Kind: governance.Conflict, Op: "save department", Message: m.Message("Department " + now.Name)}
		}
		return h.Departments.Update(c.Request().Context(), console.UserOf(c), state, wanted)
	})
}

// saveDepartment saves a department, or answers what saving does.
func (h *Pages) saveDepartment(c echo.Context, wanted *v1alpha1.Department, save func(departments.State) error) error {
	ctx, user := c.Request().Context(), console.UserOf(c)
	state, err := h.Departments.State(ctx, user)
	if err != nil {
		return err
	}
	if c.QueryParam("dryRun") != "true" {
		if err := save(state); err != nil {
			return err
		}
		if state, err = h.Departments.State(ctx, user); err != nil {
			return err
		}
		answer := SaveAnswer{Saved: true}
		if now := state.Find(wanted.Name); now != nil && state.Sees(wanted.Name) {
			answer.Department = asSaved(now)
		}
		return c.JSON(http.StatusOK, answer)
	}
	review, err := h.Departments.Review(ctx, user, state, wanted)
	if err != nil {
		return err
	}
	answer := SaveAnswer{Unchanged: review.Empty(), Settings: previews.FieldChanges(review.Changes)}
	if !answer.Unchanged {
		effect, interrupts := h.Previews.EffectOf(ctx, h.saveVariant(user, wanted))
		answer.Effect, answer.Interrupts = &effect, interrupts
	}
	return c.JSON(http.StatusOK, answer)
}

func (h *Pages) removeDepartment(c echo.Context) error {
	state, d, err := h.deletable(c)
	if err != nil {
		return err
	}
	version := c.QueryParam("resourceVersion")
	if version == "" {
		version = d.ResourceVersion
	}
	if err := h.Departments.Delete(c.Request().Context(), console.UserOf(c), state, d.Name, version, c.QueryParam("reason")); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, DeleteAnswer{Deleted: true})
}
