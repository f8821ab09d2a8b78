package allocations

import (
	"net/http"
	"net/url"
	"strconv"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/forms"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	allocationviews "kuota.dev/kuota/views/allocations"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// deleteURL returns the address of the page that deletes a team's allocation.
func deleteURL(team string) string { return urls.Allocation(team) + "/delete" }

// confirmDelete answers GET /policies/allocations/{name}/delete: what deleting
// would do.
func (h *Pages) confirmDelete(c echo.Context) error {
	now, err := h.deletable(c)
	if err != nil {
		return err
	}
	values, _ := h.TypedValues(c, deleteURL(now.Name))
	if m, managed := managerOf(&now); managed && now.DeletionTimestamp == nil {
		return h.ShowManaged(c, managedAllocation(m, &now, "Delete "+now.Name))
	}
	status, refused := forms.AnswerOf(values)
	return h.renderDelete(c, status, now, values, refused)
}

// deleteAllocation answers POST /policies/allocations/{name}/delete: it
// deletes the allocation, releases its queues, or holds its queue until its tasks have
// ended.
func (h *Pages) deleteAllocation(c echo.Context) error {
	values, err := forms.Posted(c)
	if err != nil {
		return err
	}
	now, err := h.deletable(c)
	if err != nil {
		return err
	}
	if m, managed := managerOf(&now); managed && now.DeletionTimestamp == nil {
		return h.RefuseManaged(c, managedAllocation(m, &now, "Delete "+now.Name), "")
	}
	form := h.changeOf(now, values)
	leadTo := urls.Policies + "?deleted=" + url.QueryEscape(now.Name)
	switch action := values.Get("action"); {
	case action == "hold":
		leadTo = urls.Allocation(now.Name) + "?held=true"
		err = form.Retry(func() error { return h.setActivation(c, form, v1alpha1.Hold) }, h.reread(c, form))
	case action == "release" && now.Spec.Adopted():
		leadTo = urls.Policies + "?released=" + url.QueryEscape(now.Name)
		err = form.Retry(func() error {
			return h.Allocations.Delete(c.Request().Context(), console.UserOf(c), now.Name, allocations.Deletion{ResourceVersion: form.Version, Release: true, Reason: form.Reason})
		}, h.reread(c, form))
	case action != "delete":
		return h.renderDelete(c, http.StatusOK, now, values, nil)
	case values.Get("confirm") != now.Name:
		return h.renderDelete(c, http.StatusUnprocessableEntity, now, values, &governance.Error{
			Kind: governance.Invalid, Fields: []governance.FieldError{{Path: "confirm", Message: "type " + now.Name + ", to the letter"}},
		})
	default:
		err = form.Retry(func() error {
			deletion := allocations.Deletion{ResourceVersion: form.Version, Drain: values.Get("how") == "drain", Reason: form.Reason}
			return h.Allocations.Delete(c.Request().Context(), console.UserOf(c), now.Name, deletion)
		}, h.reread(c, form))
	}
	refused := forms.Refusal(err)
	switch {
	case err == nil:
		return c.Redirect(http.StatusSeeOther, leadTo)
	case refused == nil || refused.Kind == governance.NotFound:
		return err
	}
	return h.renderDelete(c, console.Statuses[refused.Kind], form.edits.allocation, values, refused)
}

// deletable returns the allocation of the address if the reader may delete it.
func (h *Pages) deletable(c echo.Context) (v1alpha1.ComputeAllocation, error) {
	if err := h.mayDo(c, toDelete); err != nil {
		return v1alpha1.ComputeAllocation{}, err
	}
	return h.Allocations.Find(c.Request().Context(), console.UserOf(c), c.Param("name"))
}

// renderDelete shows the effects of deleting, with the typed values. refused is the
// error of a deletion that failed.
func (h *Pages) renderDelete(c echo.Context, status int, now v1alpha1.ComputeAllocation, typed url.Values, refused *governance.Error) error {
	path := deleteURL(now.Name)
	values := url.Values{"confirm": {typed.Get("confirm")}, "reason": {forms.ReasonText(typed.Get("reason"))}}
	forms.SetAnswer(values, status, refused)
	if redirected, err := h.RedirectToForm(c, path, path, values); redirected {
		return err
	}
	departure, err := h.Allocations.PreviewDeletion(c.Request().Context(), console.UserOf(c), now.Name)
	if err != nil && refused == nil {
		return err
	}
	page := allocationviews.AllocationDelete{
		Chrome: h.Chrome(c), Team: now.Name, Action: path, InPlace: forms.InPlace(c), CancelURL: urls.Allocation(now.Name),
		Version: now.ResourceVersion, Generation: strconv.FormatInt(now.Generation, 10),
		Running: len(departure.Running), Waiting: departure.Waiting, Kept: departure.Namespace,
		OnHold: now.Spec.Activation == v1alpha1.Hold, Deleting: now.DeletionTimestamp != nil, Adopted: now.Spec.ClusterQueueName,
		Confirm: views.TextField{Value: values.Get("confirm")}, Reason: forms.DeletionReason(values.Get("reason")),
	}
	page.Title, page.Active = "Delete "+now.Name, "policies"
	if now.DeletionTimestamp == nil {
		page.Preview = h.Previews.At(&page.Chrome, path+"/events", h.deleteVariant(console.UserOf(c), now.Name))
	}
	page.Tasks, page.More = taskNames(departure.Running)
	for _, object := range departure.Removed {
		page.Removed = append(page.Removed, object.Kind+" "+object.Name)
	}
	if refused != nil {
		page.Failure = forms.Failure(refused)
		for _, f := range refused.Fields {
			message := views.Message{Text: format.Capitalize(f.Message)}
			if f.Path == "confirm" {
				message.Field, message.Label, page.Confirm.Error = "confirm", "Confirm", format.Sentence(f.Message)
			}
			page.Errors = append(page.Errors, message)
		}
	}
	return web.Render(c, status, allocationviews.AllocationDeletePage(page))
}
