package tasks

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/actions"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	taskviews "kuota.dev/kuota/views/tasks"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// registerActions adds a form for each action below a task's address.
func (h *Pages) registerActions(s *web.Server) {
	for _, action := range []actions.Action{actions.Stop, actions.Resume, actions.Scale, actions.Resize, actions.Front, actions.Class, actions.Delete} {
		s.Form(urls.Tasks+"/:namespace/:kind/:name/"+string(action), h.Handler(h.Writing(h.confirmAction(action))), h.Handler(h.Writing(h.doAction(action))))
	}
}

// confirmAction answers GET /tasks/{namespace}/{kind}/{name}/{action} with the
// effects that the action would have now.
func (h *Pages) confirmAction(action actions.Action) func(echo.Context) error {
	return func(c echo.Context) error {
		r, err := h.Actions.Review(c.Request().Context(), console.UserOf(c), address(c, c.QueryParam("uid")), action)
		if err != nil {
			return err
		}
		if action == actions.Resize && r.Obstacle == "" {
			return web.Render(c, http.StatusOK, views.Action(h.resizePage(c, r, sizesForm(r.Resizing), nil)))
		}
		return web.Render(c, http.StatusOK, views.Action(h.actionPage(c, r)))
	}
}

// doAction answers POST to the same address: it runs the action on the task of the
// reviewed UID.
func (h *Pages) doAction(action actions.Action) func(echo.Context) error {
	return func(c echo.Context) error {
		values, err := web.FormValues(c)
		if err != nil {
			return err
		}
		ctx, user, at := c.Request().Context(), console.UserOf(c), address(c, values.Get("uid"))
		r, err := h.Actions.Review(ctx, user, at, action)
		if err != nil {
			return err
		}
		page, at := h.actionPage(c, r), tasks.Address{Namespace: r.Namespace, Kind: r.Kind, Name: r.Name, UID: r.UID}
		if action == actions.Resize {
			return h.doResize(c, r, at, values)
		}
		if action == actions.Scale {
			return h.doScale(c, r, at, values)
		}
		chosen, problem := chosenClass(values)
		among := r.Numbers && desired.IsNumber(chosen) || slices.ContainsFunc(r.Choices, func(choice actions.Choice) bool { return choice.Name == chosen })
		switch {
		case action == actions.Stop:
			err = h.Actions.Stop(ctx, user, at)
		case action == actions.Resume:
			err = h.Actions.Resume(ctx, user, at)
		case action == actions.Delete && values.Get("confirm") != r.Name:
			page.Confirm = &views.TextField{Value: values.Get("confirm"), Error: "Type " + r.Name + " exactly."}
			return web.Render(c, http.StatusUnprocessableEntity, views.Action(page))
		case action == actions.Delete:
			err = h.Actions.Delete(ctx, user, at)
		case action == actions.Front && r.Position == 1: // it moved there without the action
		case action == actions.Front && !among && r.Obstacle == "":
			err = &governance.Error{Kind: governance.Conflict, Op: "move to the front", Message: "The queue or the classes changed meanwhile, and that class no longer puts it first. Review the page and try again."}
		case action == actions.Class && problem != "" && r.Obstacle == "":
			page.Number = numberField(values.Get("number"), problem)
			return web.Render(c, http.StatusUnprocessableEntity, views.Action(page))
		case action == actions.Class && !among && r.Obstacle == "":
			page.ChoiceError = "Choose an existing class."
			return web.Render(c, http.StatusUnprocessableEntity, views.Action(page))
		case action == actions.Front:
			err = h.Actions.MoveToFront(ctx, user, at, chosen)
		default:
			err = h.Actions.SetClass(ctx, user, at, chosen)
		}
		switch {
		case err != nil:
			return refused(c, page, err)
		case action == actions.Delete:
			return c.Redirect(http.StatusSeeOther, urls.Tasks+"?deleted="+deletedTask)
		}
		return c.Redirect(http.StatusSeeOther, withDone(below(c, ""), action))
	}
}

// refused shows the page of an action again with the reason why it was not run. Internal
// errors, and tasks that no longer exist, have pages of their own.
func refused(c echo.Context, page views.ActionPage, err error) error {
	var ours *governance.Error
	if !errors.As(err, &ours) || ours.Kind == governance.Internal || ours.Kind == governance.NotFound {
		return err
	}
	page.Failure = ours.Message
	return web.Render(c, console.Statuses[ours.Kind], views.Action(page))
}

// taskActions returns the actions that the user is allowed to run on a task; nil if
// the console is read-only.
func (h *Pages) taskActions(ctx context.Context, c echo.Context, d queries.Detail) (*taskviews.TaskActions, error) {
	if h.Actions == nil || h.ReadOnlyReason() != "" {
		return nil, nil
	}
	again, err := h.Again.MayAgain(ctx, console.UserOf(c), d.Namespace, d.Kind)
	if err != nil {
		return nil, err
	}
	offers, err := h.Actions.Offers(ctx, console.UserOf(c), d)
	if err != nil {
		return nil, err
	}
	shown := &taskviews.TaskActions{Missing: missingWords(offers)}
	for _, offer := range offers {
		if offer.Missing == nil {
			shown.Buttons = append(shown.Buttons, views.ActionButton{ID: buttonID(offer.Action), Label: actionNames[offer.Action], URL: below(c, "/"+string(offer.Action)), Danger: offer.Action == actions.Delete})
		}
	}
	if again && d.Team != "" {
		shown.Buttons = slices.Insert(shown.Buttons, len(shown.Buttons)-deletes(shown.Buttons), againButton(d.Team, d.Kind, d.Name, d.UID))
	}
	if len(shown.Buttons) == 0 && shown.Missing == "" {
		return nil, nil
	}
	return shown, nil
}

// deletes is 1 if the last button deletes the task.
func deletes(buttons []views.ActionButton) int {
	if n := len(buttons); n > 0 && buttons[n-1].Danger {
		return 1
	}
	return 0
}

// againOf returns the button of an action row that submits the task again; nil for none.
func againOf(shown *taskviews.TaskActions) *views.ActionButton {
	if shown == nil {
		return nil
	}
	i := slices.IndexFunc(shown.Buttons, func(b views.ActionButton) bool { return b.Label == actionNames[actions.Again] })
	if i < 0 {
		return nil
	}
	return &shown.Buttons[i]
}

// againButton links to the form that submits a task again.
func againButton(team, kind, name, uid string) views.ActionButton {
	return views.ActionButton{ID: buttonID(actions.Again), Label: actionNames[actions.Again], URL: urls.TeamAgain(team, kind, name, uid)}
}

func buttonID(action actions.Action) string { return "button-" + string(action) }

func address(c echo.Context, uid string) tasks.Address {
	return tasks.Address{Namespace: c.Param("namespace"), Kind: c.Param("kind"), Name: c.Param("name"), UID: uid}
}
