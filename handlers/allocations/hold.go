package allocations

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/forms"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"

	"github.com/labstack/echo/v4"
)

// holdURLs returns the address of the page that holds or resumes the queue; the
// other one is empty.
func holdURLs(a *v1alpha1.ComputeAllocation) (hold, resume string) {
	if open(a) {
		return urls.Allocation(a.Name) + "/hold", ""
	}
	return "", urls.Allocation(a.Name) + "/resume"
}

// open reports whether the allocation lets its queue start tasks.
func open(a *v1alpha1.ComputeAllocation) bool { return openSpec(&a.Spec) }

func openSpec(s *v1alpha1.ComputeAllocationSpec) bool {
	return s.Activation == "" || s.Activation == v1alpha1.Active
}

// activation answers GET and POST /policies/allocations/{name}/hold, or /resume: what it would
// do to hold, drain or resume the team's queue, and doing it.
func (h *Pages) activation(to v1alpha1.Activation) (confirm, do echo.HandlerFunc) {
	return func(c echo.Context) error { return h.confirmActivation(c, to) }, func(c echo.Context) error { return h.activate(c, to) }
}

func (h *Pages) confirmActivation(c echo.Context, to v1alpha1.Activation) error {
	now, page, err := h.activationPage(c, to)
	if err != nil {
		return err
	}
	if m, managed := managerOf(&now); managed {
		return h.ShowManaged(c, managedAllocation(m, &now, page.Title))
	}
	values, _ := h.TypedValues(c, page.Action)
	status, refused := forms.AnswerOf(values)
	return h.renderActivation(c, status, now, page, values, refused)
}

func (h *Pages) activate(c echo.Context, to v1alpha1.Activation) error {
	values, err := forms.Posted(c)
	if err != nil {
		return err
	}
	now, page, err := h.activationPage(c, to)
	if err != nil {
		return err
	}
	if m, managed := managerOf(&now); managed {
		return h.RefuseManaged(c, managedAllocation(m, &now, page.Title), "")
	}
	if to == v1alpha1.Hold && values.Get("choice") == string(v1alpha1.Drain) {
		to = v1alpha1.Drain
		if values.Get("confirm") != now.Name {
			return h.renderActivation(c, http.StatusUnprocessableEntity, now, page, values, &governance.Error{
				Kind: governance.Invalid, Fields: []governance.FieldError{{Path: "confirm", Message: "type " + now.Name + ", to the letter: its running tasks are stopped"}},
			})
		}
	}
	form := h.changeOf(now, values)
	err = form.Retry(func() error { return h.setActivation(c, form, to) }, h.reread(c, form))
	refused := forms.Refusal(err)
	switch {
	case err == nil:
		return c.Redirect(http.StatusSeeOther, urls.Allocation(now.Name)+"?saved=true")
	case refused == nil || refused.Kind == governance.NotFound:
		return err
	}
	return h.renderActivation(c, console.Statuses[refused.Kind], now, page, values, refused)
}

// changeOf is the form of a page that changes one thing of an allocation.
func (h *Pages) changeOf(now v1alpha1.ComputeAllocation, values url.Values) *allocationForm {
	return &allocationForm{
		Form: forms.Form{Version: values.Get("version"), Generation: values.Get("generation"), Reason: forms.ReasonText(values.Get("reason"))},
		team: now.Name, edits: edit(now),
	}
}

func (h *Pages) setActivation(c echo.Context, form *allocationForm, to v1alpha1.Activation) error {
	wanted := form.edits.allocation.DeepCopy()
	wanted.Spec.Activation, wanted.ResourceVersion = to, form.Version
	v1alpha1.SetReason(wanted, form.Reason)
	ctx, user := c.Request().Context(), console.UserOf(c)
	state, err := h.Allocations.State(ctx, user)
	if err != nil {
		return err
	}
	return h.Allocations.Update(ctx, user, state, wanted, nil)
}

// renderActivation shows the page with the typed values. refused is the error of a
// change that failed.
func (h *Pages) renderActivation(c echo.Context, status int, now v1alpha1.ComputeAllocation, page views.ActionPage, typed url.Values, refused *governance.Error) error {
	values := url.Values{"choice": {typed.Get("choice")}, "confirm": {typed.Get("confirm")}, "reason": {forms.ReasonText(typed.Get("reason"))}}
	reason := forms.ReasonField(values.Get("reason"), "everyone who sees the team")
	page.Reason, page.InPlace = &reason, forms.InPlace(c)
	if values.Get("choice") == string(v1alpha1.Drain) && page.Confirm != nil || refused != nil && values.Get("choice") == string(v1alpha1.Drain) {
		for i := range page.Choices {
			page.Choices[i].Checked = page.Choices[i].Value == string(v1alpha1.Drain)
		}
		if len(page.Choices) == 0 { // no task runs any more
			page.Fields = append(page.Fields, views.HiddenField{Name: "choice", Value: string(v1alpha1.Drain)})
		}
		page.Type = "To stop running tasks, type " + now.Name
		page.Confirm = &views.TextField{Value: values.Get("confirm")}
	}
	if refused != nil {
		page.Failure = refused.Message
		for _, f := range refused.Fields {
			if f.Path == "confirm" && page.Confirm != nil {
				page.Confirm.Error = format.Sentence(f.Message)
			} else {
				page.Failure = strings.TrimSpace(page.Failure + " " + format.Sentence(f.Message))
			}
		}
	}
	forms.SetAnswer(values, status, refused)
	return h.AnswerForm(c, status, page.Action, page.Action, values, views.Action(page))
}

// activationPage describes the effects of a change of the activation. It returns 404
// if the reader may not change it.
func (h *Pages) activationPage(c echo.Context, to v1alpha1.Activation) (v1alpha1.ComputeAllocation, views.ActionPage, error) {
	if err := h.mayDo(c, toUpdate); err != nil {
		return v1alpha1.ComputeAllocation{}, views.ActionPage{}, err
	}
	ctx, user := c.Request().Context(), console.UserOf(c)
	now, err := h.Allocations.Find(ctx, user, c.Param("name"))
	if err != nil {
		return now, views.ActionPage{}, err
	}
	activity, err := h.Allocations.QueueActivity(ctx, user, now.Name)
	if err != nil {
		return now, views.ActionPage{}, err
	}
	page := views.ActionPage{
		Chrome: h.Chrome(c), UpLabel: now.Name, UpURL: urls.Allocation(now.Name), Action: urls.Allocation(now.Name) + "/resume",
		Fields: []views.HiddenField{{Name: "version", Value: now.ResourceVersion}, {Name: "generation", Value: strconv.FormatInt(now.Generation, 10)}},
		Submit: "Resume the queue", Effects: resumeEffects(activity),
	}
	page.Title, page.Active = "Resume the queue of "+now.Name, "policies"
	if to == v1alpha1.Hold {
		page.Title, page.Action, page.Submit = "Hold the queue of "+now.Name, urls.Allocation(now.Name)+"/hold", "Hold the queue"
		page.Legend, page.Effects, page.Choices = "Running tasks", holdEffects(activity), holdChoices(activity)
		if len(activity.Running) > 0 {
			page.Confirm = &views.TextField{}
			page.Type = "To stop running tasks, type " + now.Name
		}
	}
	if open(&now) == (to == v1alpha1.Active) {
		page.Obstacle = "The queue is already on hold. Resume it, or edit the allocation to drain it."
		if to == v1alpha1.Active {
			page.Obstacle = "The queue is not on hold."
		}
		return now, page, nil
	}
	page.Preview = h.Previews.At(&page.Chrome, page.Action+"/events", h.activationVariants(user, now, to, len(page.Choices) > 0)...)
	return now, page, nil
}

func holdEffects(a allocations.QueueActivity) []string {
	return []string{
		waitingWords(a.Waiting) + " No task starts until the queue is resumed.",
		"The team keeps its quota. Other teams can borrow what is idle, if the allocation lends it.",
	}
}

func resumeEffects(a allocations.QueueActivity) []string {
	list := []string{waitingWords(a.Waiting) + " Kueue starts them as quota allows, by priority class and submission time. Drained tasks can start after newer ones."}
	if n := len(a.Running); n > 0 {
		list = append(list, format.Count(n, "task")+" of the team use quota, and continue.")
		if n == 1 {
			list[1] = "1 task of the team uses quota, and continues."
		}
	}
	return list
}

func waitingWords(n int) string {
	switch n {
	case 0:
		return "No task waits in the queue."
	case 1:
		return "1 task waits in the queue."
	}
	return fmt.Sprintf("%d tasks wait in the queue.", n)
}

// holdChoices returns the choices for running tasks; none if no task runs.
func holdChoices(a allocations.QueueActivity) []views.ActionChoice {
	if len(a.Running) == 0 {
		return nil
	}
	names, more := taskNames(a.Running)
	if more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	listed := strings.Join(names, ", ")
	return []views.ActionChoice{
		{Value: string(v1alpha1.Hold), Label: runningWords(len(a.Running)), Text: "They keep their quota until they end: " + listed + ".", Checked: true},
		{Value: string(v1alpha1.Drain), Label: "Stop running tasks", Text: "They are requeued, and unsaved work is lost: " + listed + "."},
	}
}

func runningWords(n int) string {
	if n == 1 {
		return "The running task continues"
	}
	return fmt.Sprintf("The %d running tasks continue", n)
}
