package allocations

import (
	"cmp"
	"context"
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
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/forms"
	"kuota.dev/kuota/handlers/listing"
	"kuota.dev/kuota/handlers/previews"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// teamAction is what can be done to many teams.
type teamAction struct {
	value, label string
	title        string // with the number of teams
	may          func(allocations.Permissions) bool
	obstacle     func(*v1alpha1.ComputeAllocationSpec) string // why it cannot be done; empty if it can
	change       func(*v1alpha1.ComputeAllocationSpec)        // nil deletes the allocation
}

const (
	changeWeight = "weight"
	moveTeams    = "move"
	deleteTeams  = "delete"
)

// target is the value that an action gives to teams.
type target struct {
	weight     int32   // -1 until it is chosen
	department *string // nil until it is chosen; empty for no department
}

// teamActions returns the actions with a target.
func teamActions(to target) []teamAction {
	when := func(obstacle bool, text string) string {
		if obstacle {
			return text
		}
		return ""
	}
	return []teamAction{
		{
			value: "hold", label: "Hold", title: "Hold the queues of %s", may: toUpdate,
			obstacle: func(s *v1alpha1.ComputeAllocationSpec) string {
				return when(!openSpec(s), "Its queue is on hold already.")
			},
			change: func(s *v1alpha1.ComputeAllocationSpec) { s.Activation = v1alpha1.Hold },
		},
		{
			value: "resume", label: "Resume", title: "Resume the queues of %s", may: toUpdate,
			obstacle: func(s *v1alpha1.ComputeAllocationSpec) string { return when(openSpec(s), "Its queue is not on hold.") },
			change:   func(s *v1alpha1.ComputeAllocationSpec) { s.Activation = v1alpha1.Active },
		},
		{
			value: changeWeight, label: "Change weight", title: "Change the weight of %s", may: toUpdate,
			obstacle: func(s *v1alpha1.ComputeAllocationSpec) string {
				return when(s.FairShareWeight == to.weight, "It has this weight already.")
			},
			change: func(s *v1alpha1.ComputeAllocationSpec) { s.FairShareWeight = to.weight },
		},
		{
			value: moveTeams, label: "Move to department", title: moveTitle(to.department), may: toUpdate,
			obstacle: func(s *v1alpha1.ComputeAllocationSpec) string {
				return when(to.department != nil && s.Department == *to.department, "It is there already.")
			},
			change: func(s *v1alpha1.ComputeAllocationSpec) { s.Department = *to.department },
		},
		{
			value: deleteTeams, label: "Delete", title: "Delete %s", may: toDelete,
			obstacle: func(*v1alpha1.ComputeAllocationSpec) string { return "" },
		},
	}
}

// moveTitle returns the title of a move; nil is no department yet.
func moveTitle(department *string) string {
	switch {
	case department == nil:
		return "Move %s to a department"
	case *department == "":
		return "Move %s out of all departments"
	}
	return "Move %s to department " + *department
}

// manyForm returns the form of the selected teams of the list; nil for readers who may do
// nothing to them. departments is whether there are any.
func (q listQuery) manyForm(may allocations.Permissions, departments bool) *views.ManyForm {
	form := q.ManyForm(urls.PoliciesMany, "teams")
	for _, action := range teamActions(target{weight: -1}) {
		if action.may(may) && (departments || action.value != moveTeams) {
			form.Buttons = append(form.Buttons, views.Option{Value: action.value, Label: action.label})
		}
	}
	if len(form.Buttons) == 0 {
		return nil
	}
	return form
}

// teamSelection is what an action on many teams is about.
type teamSelection struct {
	teamAction
	target
	permissions allocations.Permissions
	reviewed    bool // whether the form is that of a review
	teams       []v1alpha1.ComputeAllocation
	excluded    []excludedTeam
	more        int // that a review has no room for
}

// excludedTeam is a team that an action is not done to.
type excludedTeam struct{ name, why string }

// selectTeams returns the teams that a form is about: those that it has seen, as they were
// then, or else those that are checked or that the filters match now.
func selectTeams(state allocations.State, s teamSelection, values url.Values) teamSelection {
	taken := map[string]bool{}
	add := func(name, version string) {
		i := slices.IndexFunc(state.Allocations, func(a v1alpha1.ComputeAllocation) bool { return a.Name == name })
		why := ""
		switch {
		case taken[name]:
			return
		case i < 0 && version == "":
			return
		case i < 0:
			why = "It was deleted meanwhile."
		case version != "" && version != specVersion(&state.Allocations[i]):
			why = "It was changed meanwhile."
		case state.Allocations[i].DeletionTimestamp != nil:
			why = "It is being deleted."
		case !s.permitted(state.Allocations[i].Spec.Department):
			why = "You are not an admin of its department."
		default:
			if m, managed := managerOf(&state.Allocations[i]); managed {
				why = m.short + "."
			} else {
				why = s.obstacle(&state.Allocations[i].Spec)
			}
		}
		switch taken[name] = true; {
		case why != "":
			s.excluded = append(s.excluded, excludedTeam{name, why})
		case len(s.teams) == bulk.MaxItems:
			s.more++
		default:
			s.teams = append(s.teams, state.Allocations[i])
		}
	}
	seen := values["seen"]
	for _, text := range seen {
		name, version, _ := strings.Cut(text, "=")
		add(name, cmp.Or(version, "none"))
	}
	switch {
	case len(seen) > 0:
	case values.Get("all") == "true":
		for _, l := range parseListQuery(listing.Filters(values)).found(listOf(state), state.Departments) {
			add(l.Name, "")
		}
	default:
		for _, name := range values["team"] {
			add(name, "")
		}
	}
	s.reviewed = len(seen) > 0 && values.Get("reviewed") == "true"
	return s
}

// permitted reports whether the reader may do the action to the teams of a department.
func (s *teamSelection) permitted(department string) bool {
	if s.change == nil {
		return s.permissions.DeletesIn(department)
	}
	return s.permissions.UpdatesIn(department)
}

// moveProblem returns why the teams cannot be in the chosen department together; empty if they
// can.
func (s *teamSelection) moveProblem(state allocations.State) string {
	switch {
	case s.value != moveTeams || s.department == nil:
		return ""
	case !s.permissions.UpdatesIn(*s.department):
		return "choose a department of which you are an admin"
	}
	return state.Departments.CheckMove(s.teams, *s.department)
}

// selected answers POST /policies/many: with a review of the selected teams, or of all that the
// filters match; and the review with its start.
func (h *Pages) selected(c echo.Context) error {
	values, err := web.FormValues(c)
	if err != nil {
		return err
	}
	s, problem := teamSelection{target: target{weight: -1}}, ""
	if text := strings.TrimSpace(values.Get("weight")); values.Has("weight") {
		n := int64(-1)
		if n, problem = forms.ParseWhole(text, 0, v1alpha1.MaxWeight); problem == "" {
			s.weight = int32(n)
		}
	}
	if department := values.Get("department"); values.Has("department") {
		s.department = &department
	}
	actions := teamActions(s.target)
	i := slices.IndexFunc(actions, func(a teamAction) bool { return a.value == values.Get("do") })
	if i < 0 {
		return c.Redirect(http.StatusSeeOther, urls.Policies)
	}
	s.teamAction = actions[i]
	ctx, user := c.Request().Context(), console.UserOf(c)
	if s.permissions, err = h.May(ctx, user); err != nil {
		return err
	}
	if !s.may(s.permissions) {
		return echo.ErrNotFound
	}
	state, err := h.Allocations.State(ctx, user)
	if err != nil {
		return err
	}
	selected := selectTeams(state, s, values)
	if moved := selected.moveProblem(state); moved != "" { // another department is chosen for all of them
		problem, s.target = moved, target{weight: -1}
		s.teamAction = teamActions(s.target)[i]
		selected = selectTeams(state, s, values)
	}
	s = selected
	page, err := h.selectedPage(c, state, s, values)
	confirm := strconv.Itoa(len(values["seen"]))
	status := http.StatusOK
	switch {
	case err != nil:
		return err
	case page.Obstacle != "":
	case problem != "" && page.Menu != nil:
		page.Menu.Error, status = format.Sentence(problem), http.StatusUnprocessableEntity
	case problem != "" && page.Number != nil:
		page.Number.Value, page.Number.Error, status = values.Get("weight"), format.Sentence(problem), http.StatusUnprocessableEntity
	case s.open() || !s.reviewed:
	case s.change == nil && values.Get("confirm") != confirm:
		page.Confirm, status = &views.TextField{Value: values.Get("confirm"), Error: "Type " + confirm + " exactly."}, http.StatusUnprocessableEntity
	default:
		run, do := h.run(state, s, page.UpURL, forms.ReasonText(values.Get("reason")), func(team string) bool { return slices.Contains(values["drain"], team) })
		return h.Bulk.Start(c, run, do)
	}
	if page.Obstacle == "" && !s.open() {
		page.Preview = h.Previews.Now(ctx, h.selectedVariant(user, s))
	}
	return web.Render(c, status, views.Action(page))
}

// run returns an action on many teams, under the state of its start: to read it for each of a
// thousand teams would compute the quota of a million.
func (h *Pages) run(state allocations.State, s teamSelection, back, reason string, drains func(team string) bool) (bulk.Run, func(ctx context.Context, user governance.User, i int) error) {
	run := bulk.Run{Title: s.heading(), Back: back}
	address := urls.Allocation
	if s.change == nil {
		address = urls.AllocationVersions // which stay
	}
	for i := range s.teams {
		run.Items = append(run.Items, bulk.Item{Name: s.teams[i].Name, Team: s.teams[i].Name, URL: address(s.teams[i].Name)})
	}
	for _, e := range s.excluded { // which changed since the review
		run.Items = append(run.Items, bulk.Item{Name: e.name, Team: e.name, URL: urls.AllocationVersions(e.name), Problem: e.why})
	}
	return run, func(ctx context.Context, user governance.User, i int) error {
		found := &s.teams[i]
		if s.change == nil {
			return h.retried(ctx, user, found, func(version string) error {
				return h.Allocations.Delete(ctx, user, found.Name, allocations.Deletion{ResourceVersion: version, Drain: drains(found.Name), Reason: reason})
			})
		}
		wanted := s.wanted(found)
		v1alpha1.SetReason(wanted, reason)
		return h.retried(ctx, user, found, func(version string) error {
			wanted.ResourceVersion = version
			return h.Allocations.Update(ctx, user, state, wanted, nil)
		})
	}
}

// open reports whether the target of the action is still to be chosen.
func (s *teamSelection) open() bool {
	return s.value == changeWeight && s.weight < 0 || s.value == moveTeams && s.department == nil
}

// heading returns what the action does to how many teams.
func (s *teamSelection) heading() string {
	text := fmt.Sprintf(s.title, format.Count(len(s.teams), "team"))
	if len(s.teams) == 1 {
		text = strings.Replace(text, "queues", "queue", 1)
	}
	return text
}

// wanted returns an allocation as the action changes it.
func (s *teamSelection) wanted(found *v1alpha1.ComputeAllocation) *v1alpha1.ComputeAllocation {
	wanted := found.DeepCopy()
	s.change(&wanted.Spec)
	return wanted
}

// selectedVariant simulates the action on all teams together.
func (h *Pages) selectedVariant(user governance.User, s teamSelection) previews.Variant {
	return previews.Variant{Key: "many", Title: "Effect on tasks and teams", Preview: func(ctx context.Context) (queries.Preview, error) {
		if s.change == nil {
			return h.Previews.Backend.Deletion(ctx, user, s.names()...)
		}
		var wanted []*v1alpha1.ComputeAllocation
		for i := range s.teams {
			wanted = append(wanted, s.wanted(&s.teams[i]))
		}
		return h.Previews.Backend.Allocations(ctx, user, wanted)
	}}
}

func (s *teamSelection) names() (names []string) {
	for i := range s.teams {
		names = append(names, s.teams[i].Name)
	}
	return names
}

// selectedPage is the review of an action on many teams. Its form has what it has seen of them:
// the action is done to no others.
func (h *Pages) selectedPage(c echo.Context, state allocations.State, s teamSelection, values url.Values) (views.ActionPage, error) {
	page := views.ActionPage{
		Chrome: h.Chrome(c), UpLabel: "Policies", Action: urls.PoliciesMany, InPlace: true,
		Submit: s.heading(), Danger: s.change == nil,
	}
	page.Title, page.Active = page.Submit, "policies"
	page.UpURL, page.Fields = listing.Back(values, urls.Policies)
	page.Fields = append(page.Fields, views.HiddenField{Name: "do", Value: s.value})
	if len(s.teams) == 0 && !s.reviewed {
		page.Title, page.Obstacle = s.label, "Select teams in the list first."
		if len(s.excluded) > 0 {
			page.Obstacle = "This cannot be done to any of the selected teams. " + s.excluded[0].name + ": " + s.excluded[0].why
		}
		return page, nil
	}
	counts, err := h.Allocations.TaskCounts(c.Request().Context(), console.UserOf(c), s.teams)
	if err != nil {
		return page, err
	}
	seen, drained := values["seen"], values["drain"]
	if !s.reviewed {
		seen, drained = nil, nil
		for i := range s.teams {
			seen = append(seen, s.teams[i].Name+"="+specVersion(&s.teams[i]))
			if s.change == nil && counts[s.teams[i].Name].Running > 0 {
				drained = append(drained, s.teams[i].Name)
			}
		}
	}
	page.Fields = append(page.Fields, forms.HiddenFields(url.Values{"seen": seen, "drain": drained})...)
	page.Effects = append([]string{namesOf(s.names())}, s.effects(state, counts)...)
	switch {
	case s.open():
		page.Submit = "Review"
		if s.value == changeWeight {
			page.Number = &views.NumberField{ID: "weight", Label: "Fair-share weight", Hint: fmt.Sprintf("0 to %d", v1alpha1.MaxWeight)}
			break
		}
		tree, err := h.Departments.State(c.Request().Context(), console.UserOf(c))
		if err != nil {
			return page, err
		}
		form := allocationForm{tree: tree, typed: map[string]string{"department": values.Get("department")}}
		page.Menu = &views.MenuField{ID: "department", Label: "Department", SelectField: form.departmentMenu("")}
	default:
		switch s.value {
		case changeWeight:
			page.Fields = append(page.Fields, views.HiddenField{Name: "weight", Value: strconv.Itoa(int(s.weight))})
		case moveTeams:
			page.Fields = append(page.Fields, views.HiddenField{Name: "department", Value: *s.department})
		}
		page.Fields, page.Reason = append(page.Fields, views.HiddenField{Name: "reviewed", Value: "true"}), reasonOf(values)
	}
	if s.change == nil {
		page.Type, page.Confirm = fmt.Sprintf("Type %d to confirm", len(seen)), &views.TextField{}
	}
	var excluded []string
	for _, e := range s.excluded {
		excluded = append(excluded, e.name+": "+e.why)
	}
	page.Effects = append(page.Effects, listing.LeftOut(format.Count(len(excluded), "team"), excluded)...)
	if s.more > 0 {
		page.Effects = append(page.Effects, fmt.Sprintf("These are the first %s. %s more match: do the same with them afterwards.", format.Thousands(bulk.MaxItems), format.Thousands(s.more)))
	}
	return page, nil
}

// namesOf lists the first teams, and how many more there are.
func namesOf(teams []string) string {
	text := strings.Join(teams[:min(len(teams), shownTasks)], ", ")
	if more := len(teams) - shownTasks; more > 0 {
		text += " and " + format.Thousands(more) + " more"
	}
	return text + "."
}

// effects describes what the action does to teams with these tasks.
func (s *teamSelection) effects(state allocations.State, counts map[string]allocations.TaskCounts) []string {
	running, waiting := 0, 0
	for _, count := range counts {
		running, waiting = running+count.Running, waiting+count.Waiting
	}
	tasks := "No task of theirs runs or waits."
	if running+waiting > 0 {
		tasks = "Their tasks: " + format.JoinedBy(", ", format.CountedAs(running, "running"), format.CountedAs(waiting, "waiting")) + "."
	}
	list := []string{tasks}
	switch s.value {
	case "hold":
		return append(list, "Running tasks continue, and none starts until the queues are resumed.", "The teams keep their quota. Other teams can borrow what is idle, if the allocation lends it.")
	case "resume":
		return append(list, "Kueue starts waiting tasks as quota allows, by priority class and submission time. Drained tasks can start after newer ones.")
	case changeWeight:
		return append(list, s.weights()...)
	case moveTeams:
		list = append(list, "The teams keep their quota. Running tasks continue; borrowed quota can be reclaimed.")
		if s.department != nil && *s.department == "" {
			return append(list, "Only admins of the cluster can change them afterwards.")
		}
		return append(list, "Their quota and usage count in the department, whose limits, hold and budget apply to them. Its admins can change them.")
	}
	if running > 0 {
		list = append(list, "Running tasks are drained: stopped and requeued. Unsaved work is lost.")
	}
	if waiting+running > 0 {
		list = append(list, "Tasks are kept, and can start once their team has a queue again.")
	}
	return append(list, s.deletes(state)...)
}

// weights describes how the weights change.
func (s *teamSelection) weights() (list []string) {
	least, most := int32(v1alpha1.MaxWeight), int32(0)
	for i := range s.teams {
		least, most = min(least, s.teams[i].Spec.FairShareWeight), max(most, s.teams[i].Spec.FairShareWeight)
	}
	now := fmt.Sprintf("Their fair-share weight is %d", least)
	if least < most {
		now = fmt.Sprintf("Their fair-share weights are %d to %d", least, most)
	}
	if s.weight >= 0 {
		now += fmt.Sprintf(" now, and %d afterwards", s.weight)
	}
	return []string{now + ".", "Idle compute is shared by weight. Running tasks continue; borrowed quota can be reclaimed."}
}

// deletes describes what is deleted and what is kept.
func (s *teamSelection) deletes(state allocations.State) (list []string) {
	freed, adopted, pools, deleted := quota.PoolResources{}, 0, map[string]bool{}, map[string]bool{}
	for i := range s.teams {
		resolved, _ := quota.Effective(&s.teams[i], state.Types)
		freed.AddNominal(resolved)
		if deleted[s.teams[i].Name] = true; s.teams[i].Spec.Adopted() {
			adopted++
		}
	}
	for _, pool := range state.Types.Pools() {
		if text := format.Amounts(freed[pool.Name]); text != "" {
			pools[pool.Name] = true
			list = append(list, "Quota of "+pool.Name+" that is deleted: "+text+".")
		}
	}
	after := slices.DeleteFunc(slices.Clone(state.Allocations), func(a v1alpha1.ComputeAllocation) bool { return deleted[a.Name] })
	list = append(list, overAll(state, allocatedAfter(state, after), pools)...)
	list = append(list, "Queues and the permissions of members are deleted. The namespaces are kept, with all jobs, volumes and secrets in them.")
	if adopted > 0 {
		list = append(list, fmt.Sprintf("The ClusterQueues of %s existed before Kuota adopted them, and are deleted too. To keep one, release its team on its page.", format.Count(adopted, "team")))
	}
	return list
}
