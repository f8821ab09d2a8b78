package handlers

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/gitops"
	"kuota.dev/kuota/views"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// confirmDelete answers GET /policies/allocations/{name}/delete: what deleting
// would do.
func (h *Handlers) confirmDelete(c echo.Context) error {
	now, err := h.deletable(c)
	if err != nil {
		return err
	}
	if m, managed := gitops.Of(&now); managed && now.DeletionTimestamp == nil {
		return h.showManaged(c, managedAllocation(m, &now, "Delete "+now.Name))
	}
	return h.renderDelete(c, http.StatusOK, now, "", nil)
}

// deleteAllocation answers POST /policies/allocations/{name}/delete: it
// deletes the allocation, or holds its queue until its tasks have ended.
func (h *Handlers) deleteAllocation(c echo.Context) error {
	values, err := web.FormValues(c)
	if err != nil {
		return err
	}
	now, err := h.deletable(c)
	if err != nil {
		return err
	}
	if m, managed := gitops.Of(&now); managed && now.DeletionTimestamp == nil {
		return h.refuseManaged(c, managedAllocation(m, &now, "Delete "+now.Name), "")
	}
	confirmed := values.Get("confirm")
	form := allocationForm{team: now.Name, edits: edit(now), version: values.Get("version"), generation: values.Get("generation")}
	read := &v1alpha1.ComputeAllocation{}
	read.ResourceVersion = form.version
	leadTo := policiesURL + "?deleted=" + url.QueryEscape(now.Name)
	switch action := values.Get("action"); {
	case action == "hold":
		leadTo = allocationURL(now.Name) + "?held=true"
		err = h.again(c, &form, read, func(ctx context.Context, user governance.User) error {
			held := form.edits.allocation.DeepCopy()
			held.Spec.Activation, held.ResourceVersion = v1alpha1.Hold, read.ResourceVersion
			return h.Allocations.Update(ctx, user, held, nil)
		})
	case action != "delete":
		return h.renderDelete(c, http.StatusOK, now, confirmed, nil)
	case confirmed != now.Name:
		return h.renderDelete(c, http.StatusUnprocessableEntity, now, confirmed, &governance.Error{
			Kind: governance.Invalid, Fields: []governance.FieldError{{Path: "confirm", Message: "type " + now.Name + ", to the letter"}},
		})
	default:
		err = h.again(c, &form, read, func(ctx context.Context, user governance.User) error {
			return h.Allocations.Delete(ctx, user, now.Name, read.ResourceVersion, values.Get("how") == "drain")
		})
	}
	var ours *governance.Error
	switch {
	case err == nil:
		return c.Redirect(http.StatusSeeOther, leadTo)
	case !errors.As(err, &ours) || ours.Kind == governance.Internal || ours.Kind == governance.NotFound:
		return err
	}
	return h.renderDelete(c, statuses[ours.Kind], form.edits.allocation, confirmed, ours)
}

// deletable finds the allocation of the address for somebody who may delete it.
func (h *Handlers) deletable(c echo.Context) (v1alpha1.ComputeAllocation, error) {
	if err := h.mayDo(c, toDelete); err != nil {
		return v1alpha1.ComputeAllocation{}, err
	}
	return h.Allocations.Find(c.Request().Context(), userOf(c), c.Param("name"))
}

// renderDelete shows what deleting would do now. refused is why it did not
// happen.
func (h *Handlers) renderDelete(c echo.Context, status int, now v1alpha1.ComputeAllocation, confirmed string, refused *governance.Error) error {
	departure, err := h.Allocations.Departure(c.Request().Context(), userOf(c), now.Name)
	if err != nil && refused == nil {
		return err
	}
	page := views.AllocationDelete{
		Chrome: h.Chrome(c), Team: now.Name, Action: allocationURL(now.Name) + "/delete", CancelURL: allocationURL(now.Name),
		Version: now.ResourceVersion, Generation: strconv.FormatInt(now.Generation, 10),
		Running: len(departure.Running), Waiting: departure.Waiting, Kept: departure.Kept,
		Held: now.Spec.Activation == v1alpha1.Hold, Deleting: now.DeletionTimestamp != nil,
		Confirm: views.TextField{Value: confirmed},
	}
	page.Title, page.Active = "Delete "+now.Name, "policies"
	page.Tasks, page.More = taskNames(departure.Running)
	for _, object := range departure.Removed {
		page.Removed = append(page.Removed, object.Kind+" "+object.Name)
	}
	if refused != nil {
		if len(refused.Fields) == 0 {
			page.Failure = refused.Message
		}
		for _, f := range refused.Fields {
			message := views.Message{Text: capital(f.Message)}
			if f.Path == "confirm" {
				message.Field, message.Label, page.Confirm.Error = "confirm", "Confirm", sentence(f.Message)
			}
			page.Errors = append(page.Errors, message)
		}
	}
	return web.Render(c, status, views.AllocationDeletePage(page))
}
