package console

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance/departments"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"

	"github.com/labstack/echo/v4"
)

// noTeam is the name of no team.
const noTeam = "-"

// TeamsOf returns the teams that a filter by team and department selects; nil for all, and
// the name of no team for none. A department selects the teams in it and below it.
func (h *Console) TeamsOf(ctx context.Context, department string, teams []string) ([]string, error) {
	if department == "" {
		return teams, nil
	}
	below, err := h.Departments.TeamsBelow(ctx, department)
	if err != nil {
		return nil, err
	}
	if len(teams) > 0 {
		below = slices.DeleteFunc(slices.Clone(below), func(team string) bool { return !slices.Contains(teams, team) })
	}
	if len(below) == 0 {
		return []string{noTeam}, nil
	}
	return below, nil
}

// DepartmentPath returns links to the list of teams and to the departments of a team, from the
// top, as far as the reader sees them.
func (h *Console) DepartmentPath(c echo.Context, team string) ([]views.NamedLink, error) {
	state, err := h.Departments.State(c.Request().Context(), UserOf(c))
	path := []views.NamedLink{{Name: "Teams", URL: urls.Teams}}
	for _, name := range slices.Backward(state.Tree.Chain(state.Tree.DepartmentOf(team))) {
		if d := state.Find(name); d != nil {
			path = append(path, views.NamedLink{Name: quota.Title(d), URL: urls.Department(name)})
		}
	}
	return path, err
}

// OfferDepartments adds the filter by department, where the reader sees one, behind that by
// team.
func (h *Console) OfferDepartments(c echo.Context, filters []views.Filter, chosen string) ([]views.Filter, error) {
	state, err := h.Departments.State(c.Request().Context(), UserOf(c))
	filter := DepartmentFilter(state, chosen)
	if err != nil || filter.ID == "" {
		return filters, err
	}
	i := slices.IndexFunc(filters, func(f views.Filter) bool { return f.ID == "team" }) + 1
	return slices.Insert(filters, i, filter), nil
}

// DepartmentFilter returns the filter by department; without an ID where there is none.
func DepartmentFilter(state departments.State, chosen string) (filter views.Filter) {
	if len(state.Departments) == 0 && chosen == "" {
		return filter
	}
	filter = views.Filter{ID: "department", Label: "Department", Options: []views.Option{{Label: "All departments", Selected: chosen == ""}}}
	known := chosen == ""
	for _, name := range state.Tree.Below("") {
		if d := state.Find(name); d != nil {
			known = known || name == chosen
			indent := strings.Repeat("\u2003", len(state.Tree.Chain(name))-1)
			filter.Options = append(filter.Options, views.Option{Value: name, Label: indent + quota.Title(d), Selected: name == chosen})
		}
	}
	if !known {
		filter.Options = append(filter.Options, views.Option{Value: chosen, Label: chosen, Selected: true})
		filter.Wrong = strconv.Quote(chosen) + " is no department that you can see."
	}
	return filter
}
