package tasks

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/bulk"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/actions"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/listing"
	"kuota.dev/kuota/handlers/previews"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// manyActions are the actions that can be run on many tasks.
var manyActions = []actions.Action{actions.Stop, actions.Resume, actions.Class, actions.Again, actions.Delete}

// selection is what an action on many tasks is about.
type selection struct {
	action actions.Action
	class  string
	items  []queries.Item // that it can be run on
	// excluded are those that it cannot be run on, and why.
	excluded []queries.Item
	why      []string
	more     int // that a review has no room for
}

// selects reports whether the list has check boxes.
func (h *Pages) selects() bool { return h.Actions != nil && h.ReadOnlyReason() == "" }

// manyForm returns the form of the selected tasks of a list, with the filters of the list.
func (h *Pages) manyForm(q taskQuery) *views.ManyForm {
	if !h.selects() {
		return nil
	}
	form := q.ManyForm(urls.ManyTasks, "tasks")
	for _, action := range manyActions {
		if q.Phase == index.Finished && action != actions.Delete && action != actions.Again {
			continue
		}
		form.Buttons = append(form.Buttons, views.Option{Value: string(action), Label: actionNames[action]})
	}
	return form
}

// many answers POST /tasks/many: with a review of the selected tasks, or of all that the filters
// match; and the review with its start.
func (h *Pages) many(c echo.Context, scope access.Scope) error {
	values, err := web.FormValues(c)
	if err != nil {
		return err
	}
	action := actions.Action(values.Get("do"))
	if h.Actions == nil || !slices.Contains(manyActions, action) {
		return c.Redirect(http.StatusSeeOther, urls.Tasks)
	}
	s, err := h.selected(c.Request().Context(), console.UserOf(c), scope, action, values)
	if err != nil {
		return err
	}
	page, err := h.manyPage(c, s, values)
	confirm := strconv.Itoa(len(values["task"]))
	switch {
	case err != nil:
		return err
	case page.ChoiceError != "" || page.Number != nil && page.Number.Error != "":
		return h.showMany(c, http.StatusUnprocessableEntity, page, s)
	case values.Get("reviewed") != "true" || page.Obstacle != "" || page.Legend != "":
		return h.showMany(c, http.StatusOK, page, s)
	case action == actions.Delete && values.Get("confirm") != confirm:
		page.Confirm = &views.TextField{Value: values.Get("confirm"), Error: "Type " + confirm + " exactly."}
		return h.showMany(c, http.StatusUnprocessableEntity, page, s)
	}
	run, at := s.run(page.Title, page.UpURL)
	for _, uid := range values["task"] {
		if !slices.ContainsFunc(slices.Concat(s.items, s.excluded), func(t queries.Item) bool { return t.UID == uid }) {
			run.Items = append(run.Items, bulk.Item{Name: "A task that no longer exists", Problem: "It was deleted meanwhile."})
		}
	}
	do, err := h.doMany(c.Request().Context(), console.UserOf(c), s, &run, at)
	if err != nil {
		return err
	}
	return h.Bulk.Start(c, run, do)
}

// run returns the run of an action on the selected tasks, and which its first items are. What
// it cannot be run on comes last.
func (s selection) run(title, back string) (bulk.Run, []tasks.Address) {
	run, at := bulk.Run{Title: title, Back: back}, make([]tasks.Address, len(s.items))
	for i, t := range s.items {
		at[i] = tasks.Address{Namespace: t.Namespace, Kind: t.Kind, Name: t.Name, UID: t.UID}
		run.Items = append(run.Items, bulk.Item{Name: t.Name, Team: t.Team, URL: urls.Task(t.Task)})
	}
	for i, t := range s.excluded {
		run.Items = append(run.Items, bulk.Item{Name: t.Name, Team: t.Team, URL: urls.Task(t.Task), Problem: s.why[i]})
	}
	return run, at
}

// doMany returns what a run does with each item. It writes the names of tasks that are submitted
// again into run.
func (h *Pages) doMany(ctx context.Context, user governance.User, s selection, run *bulk.Run, at []tasks.Address) (func(context.Context, governance.User, int) error, error) {
	if s.action != actions.Again {
		return func(ctx context.Context, user governance.User, i int) error {
			return h.Actions.Run(ctx, user, at[i], s.action, s.class)
		}, nil
	}
	names, err := h.Again.NamesAgain(ctx, user, at)
	if err != nil {
		return nil, err
	}
	teams := make([]string, len(names))
	for i, name := range names {
		run.Items[i].Name += " as " + name
		run.Items[i].URL, teams[i] = urls.TaskOf(at[i].Namespace, at[i].Kind, name), run.Items[i].Team
	}
	return func(ctx context.Context, user governance.User, i int) error {
		return h.Again.Repeat(ctx, user, teams[i], at[i], names[i], nil)
	}, nil
}

// obstacles returns why an action cannot be run on each of these tasks; empty where it can.
func (h *Pages) obstacles(ctx context.Context, user governance.User, action actions.Action, list []queries.Item) ([]string, error) {
	found, why := make([]*tasks.Task, len(list)), make([]string, len(list))
	for i, item := range list {
		if found[i] = item.Task; action != actions.Again {
			continue
		}
		may, err := h.Again.MayAgain(ctx, user, item.Namespace, item.Kind)
		switch {
		case err != nil:
			return nil, err
		case item.Team == "":
			why[i] = "It belongs to no team."
		case !may:
			why[i] = "Tasks of the kind " + item.Kind + " cannot be submitted again here, or you have no permission to create them."
		}
	}
	if action == actions.Again {
		return why, nil
	}
	return h.Actions.Obstacles(ctx, user, action, found)
}

func (h *Pages) showMany(c echo.Context, status int, page views.ActionPage, s selection) error {
	if page.Obstacle == "" && page.Legend == "" {
		user, list := console.UserOf(c), make([]*tasks.Task, len(s.items))
		for i := range s.items {
			list[i] = s.items[i].Task
		}
		page.Preview = h.Previews.Now(c.Request().Context(), previews.Variant{Key: "many", Title: "Effect on other tasks", Preview: func(ctx context.Context) (queries.Preview, error) {
			return h.Previews.Backend.Action(ctx, user, s.action, list, s.class)
		}})
	}
	return web.Render(c, status, views.Action(page))
}

// selected returns the tasks that a form is about: those with the posted UIDs, or all that the
// filters match now.
func (h *Pages) selected(ctx context.Context, user governance.User, scope access.Scope, action actions.Action, values url.Values) (selection, error) {
	q := h.taskQuery(listing.Filters(values))
	if values.Get("all") != "true" {
		q = h.taskQuery(nil)
		q.Phase, q.UIDs = "", map[string]bool{"": true} // so that no selection matches nothing
		for _, uid := range values["task"] {
			q.UIDs[uid] = true
		}
	}
	class, _ := chosenClass(values) // manyPage shows what is wrong
	return h.selectedBy(ctx, user, scope, selection{action: action, class: class}, q, func(queries.Item) bool { return true })
}

// selectedBy adds the tasks that a query selects to a selection, of those that match.
func (h *Pages) selectedBy(ctx context.Context, user governance.User, scope access.Scope, s selection, q taskQuery, matches func(queries.Item) bool) (selection, error) {
	q.All = true
	teams, err := h.TeamsOf(ctx, q.department, q.teams)
	if err != nil {
		return s, err
	}
	list, err := h.Tasks.ListWithin(ctx, scope, q.Query, teams)
	if err != nil {
		return s, err
	}
	list.Items = slices.DeleteFunc(slices.Clone(list.Items), func(t queries.Item) bool { return !matches(t) })
	why, err := h.obstacles(ctx, user, s.action, list.Items)
	if err != nil {
		return s, err
	}
	for i, item := range list.Items {
		switch {
		case why[i] != "":
			s.excluded, s.why = append(s.excluded, item), append(s.why, why[i])
		case len(s.items) == bulk.MaxItems:
			s.more++
		default:
			s.items = append(s.items, item)
		}
	}
	return s, nil
}

// manyPage is the review of an action on many tasks. Its form has their UIDs: it changes no
// others.
func (h *Pages) manyPage(c echo.Context, s selection, values url.Values) (views.ActionPage, error) {
	page := views.ActionPage{
		Chrome: h.Chrome(c), UpLabel: "Tasks", Action: urls.ManyTasks, InPlace: true,
		Submit: heading(s.action, format.Tasks(len(s.items))), Danger: s.action == actions.Stop || s.action == actions.Delete,
	}
	page.Title, page.Active = page.Submit, "tasks"
	page.UpURL, page.Fields = listing.Back(values, urls.Tasks)
	page.Fields = append(page.Fields, views.HiddenField{Name: "do", Value: string(s.action)})
	if len(s.items) == 0 && values.Get("reviewed") != "true" {
		page.Title, page.Obstacle = actionNames[s.action], "Select tasks in the list first."
		if len(s.excluded) > 0 {
			page.Obstacle = "This cannot be done to any of the selected tasks. " + s.excluded[0].Name + ": " + s.why[0]
		}
		return page, nil
	}
	usage, running, waiting := quota.Resources{}, 0, 0
	for _, t := range s.items {
		page.Fields = append(page.Fields, views.HiddenField{Name: "task", Value: t.UID})
		switch {
		case t.State.UsesQuota():
			running++
			usage.Add(t.Usage)
		case t.State.Waiting():
			waiting++
		}
	}
	page.Effects = manyEffects(s, running, waiting, format.Amounts(usage))
	chosen := s.action != actions.Class
	if s.action == actions.Class {
		classes, err := h.Actions.PriorityClasses(c.Request().Context())
		if err != nil {
			return page, err
		}
		_, problem := chosenClass(values)
		for _, class := range slices.Backward(classes) {
			chosen = chosen || class.Name == s.class && problem == ""
			if desired.IsNumber(class.Name) {
				page.Number = numberField(values.Get("number"), problem)
				continue
			}
			page.Choices = append(page.Choices, views.ActionChoice{Value: class.Name, Label: fmt.Sprintf("%s · weight %d", format.ClassName(class.Name), class.Priority)})
		}
		switch page.Legend = "Priority class"; {
		case len(classes) == 0:
			page.Obstacle = "There are no priority classes."
		case chosen:
			page.Legend, page.Choices, page.Number, page.Fields = "", nil, nil, append(page.Fields, views.HiddenField{Name: "choice", Value: s.class})
			page.Effects = append([]string{"They get the " + format.ClassWords(s.class) + "."}, page.Effects...)
		case problem != "":
		case values.Has("asked"):
			page.ChoiceError = "Choose a priority class."
		}
	}
	if chosen {
		page.Fields = append(page.Fields, views.HiddenField{Name: "reviewed", Value: "true"})
	} else { // the review is of the class that is chosen first
		page.Submit, page.Danger, page.Fields = "Review", false, append(page.Fields, views.HiddenField{Name: "asked", Value: "true"})
	}
	if s.action == actions.Delete {
		page.Type, page.Confirm = fmt.Sprintf("Type %d to confirm", len(s.items)), &views.TextField{}
		if values.Get("reviewed") == "true" {
			page.Type = fmt.Sprintf("Type %d to confirm", len(values["task"]))
		}
	}
	var excluded []string
	for i, t := range s.excluded {
		excluded = append(excluded, t.Name+": "+s.why[i])
	}
	page.Effects = append(page.Effects, listing.LeftOut(format.Tasks(len(excluded)), excluded)...)
	if s.more > 0 {
		page.Effects = append(page.Effects, fmt.Sprintf("These are the first %s. %s more match: select them afterwards.", format.Thousands(bulk.MaxItems), format.Thousands(int64(s.more))))
	}
	return page, nil
}

// heading returns the button of an action on a number of tasks, such as "Stop 2 tasks".
func heading(action actions.Action, number string) string {
	switch action {
	case actions.Class:
		return "Change the class of " + number
	case actions.Again:
		return "Submit " + number + " again"
	}
	return format.Upper(string(action)) + " " + number
}

// manyEffects describes what an action does to tasks.
func manyEffects(s selection, running, waiting int, usage string) (list []string) {
	parts := format.JoinedBy(", ", format.CountedAs(running, "running"), format.CountedAs(waiting, "waiting"), format.CountedAs(len(s.items)-running-waiting, "stopped or finished"))
	list = append(list, format.Upper(parts)+".")
	switch s.action {
	case actions.Again:
		return append(list, "Each gets a new name, and its manifest as it was submitted. These tasks stay as they are.")
	case actions.Stop, actions.Delete:
		if running > 0 {
			list = append(list, fmt.Sprintf("The running ones lose %s at once. Unsaved work is lost.", usage))
		}
		if s.action == actions.Stop {
			return append(list, "They stay stopped until someone resumes them.")
		}
		return append(list, "They are deleted with their pods and Workloads. You cannot undo this.")
	case actions.Resume:
		return append(list, "They wait in their queues, by their class and their submission time.")
	}
	if running > 0 {
		list = append(list, "The running ones keep running. Their class decides which tasks may preempt them.")
	}
	return append(list, "You can change the class of a task, but not remove it.")
}
