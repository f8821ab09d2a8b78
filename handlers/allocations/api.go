package allocations

import (
	"net/http"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/previews"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	apiAllocations = "/allocations"
	apiAllocation  = apiAllocations + "/:name"
)

// registerAPI adds the endpoints of allocations.
func (h *Pages) registerAPI(s *web.Server) {
	reason := web.Parameter{Name: "reason", About: "why, for the versions and the activity"}
	saved := []web.Parameter{{Name: "dryRun", About: "true saves nothing and answers what would change"}, reason}
	version := web.Parameter{Name: "resourceVersion", About: "of the allocation that was read; without it, the one now"}
	add := func(method, path, summary string, body, answer any, handler func(echo.Context) error, query ...web.Parameter) {
		if method != http.MethodGet {
			handler = h.Writing(handler)
		}
		s.API(web.Endpoint{Method: method, Path: path, Summary: summary, Query: query, Body: body, Answer: answer, Keyed: method == http.MethodPost && path == apiAllocations, Handler: h.Handler(handler)})
	}
	add(http.MethodGet, apiAllocations, "List compute allocations", nil, allocationsAnswer{}, h.policiesJSON, web.Parameter{Name: "q", About: "whose name contains this"}, web.Parameter{Name: "department", About: "of the teams in this department and below it"}, console.PageParameter)
	add(http.MethodGet, apiAllocation, "Return a compute allocation", nil, v1alpha1.ComputeAllocation{}, h.getAllocation)
	add(http.MethodPost, apiAllocations, "Create a compute allocation, or review it", v1alpha1.ComputeAllocation{}, SaveAnswer{}, h.postAllocation, saved...)
	add(http.MethodPut, apiAllocation, "Change a compute allocation, or review the change", v1alpha1.ComputeAllocation{}, SaveAnswer{}, h.putAllocation, saved...)
	add(http.MethodDelete, apiAllocation, "Delete a compute allocation, or list what that removes", nil, DeleteAnswer{}, h.removeAllocation,
		append(saved, version, web.Parameter{Name: "drain", About: "true requeues running tasks, which otherwise prevent it"}, web.Parameter{Name: "release", About: "true keeps the queues of an adopted team"})...)
	for action, to := range map[string]v1alpha1.Activation{"hold": v1alpha1.Hold, "drain": v1alpha1.Drain, "resume": v1alpha1.Active} {
		add(http.MethodPost, apiAllocation+"/"+action, map[string]string{"hold": "Hold the queue of a team: no task starts", "drain": "Hold the queue of a team, and requeue its running tasks", "resume": "Resume the queue of a team"}[action], nil, SaveAnswer{}, h.setQueue(to), append(saved, version)...)
	}
	s.API(web.Endpoint{
		Method: http.MethodPost, Path: apiAllocations + "/many", Summary: "Hold, resume, weigh, move or delete the allocations of several teams, or review it",
		Query: saved[:1], Body: ManyRequest{}, Answer: ManyAnswer{}, Status: http.StatusAccepted, Handler: h.Handler(h.Writing(h.postMany)),
	})
}

// SaveAnswer is what saving changed or, as a dry run, would change.
type SaveAnswer struct {
	Saved      bool                        `json:"saved"`
	Unchanged  bool                        `json:"unchanged,omitempty"` // saving changes nothing
	Interrupts bool                        `json:"interrupts"`          // running tasks, or it is not known whether it does
	Quota      []QuotaChange               `json:"quota,omitempty"`
	Settings   []previews.FieldChange      `json:"settings,omitempty"`
	Objects    []previews.ObjectChange     `json:"objects,omitempty"` // of Kubernetes and Kueue
	Capacity   []OverCapacity              `json:"overCapacity,omitempty"`
	Effect     *previews.Effect            `json:"effect,omitempty"`     // of a dry run
	Unknown    string                      `json:"unknown,omitempty"`    // what could not be reviewed
	Allocation *v1alpha1.ComputeAllocation `json:"allocation,omitempty"` // as it is saved
}

// QuotaChange is one resource of a pool before and after, in the units of pages.
type QuotaChange struct {
	Pool     string `json:"pool"`
	Resource string `json:"resource"`
	Before   string `json:"before"`
	After    string `json:"after"`
}

// OverCapacity is a resource of which all teams together have more quota than the nodes of its
// pool have.
type OverCapacity struct {
	Pool      string `json:"pool"`
	Resource  string `json:"resource"`
	Allocated string `json:"allocated"` // after the change
	Physical  string `json:"physical"`
}

// DeleteAnswer is what a deletion removes.
type DeleteAnswer struct {
	Deleted bool     `json:"deleted"`
	Running int      `json:"running"` // tasks that prevent it, or are requeued
	Waiting int      `json:"waiting"`
	Removed []string `json:"removed"` // objects
}

// getAllocation answers GET …/{name}.
func (h *Pages) getAllocation(c echo.Context) error {
	found, err := h.Allocations.Find(c.Request().Context(), console.UserOf(c), c.Param("name"))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, asSaved(found))
}

// asSaved returns an allocation as the API has it.
func asSaved(a v1alpha1.ComputeAllocation) *v1alpha1.ComputeAllocation {
	a.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ComputeAllocation"}
	a.ManagedFields = nil
	return &a
}

// readAllocation reads the body of a save.
func readAllocation(c echo.Context) (*v1alpha1.ComputeAllocation, error) {
	var sent v1alpha1.ComputeAllocation
	if err := web.ReadJSON(c, &sent); err != nil {
		return nil, err
	}
	if err := console.CheckSent(c, &sent.TypeMeta, &sent.ObjectMeta, "ComputeAllocation", "allocation"); err != nil {
		return nil, err
	}
	wanted := &v1alpha1.ComputeAllocation{Spec: sent.Spec}
	wanted.Name, wanted.ResourceVersion = sent.Name, sent.ResourceVersion
	v1alpha1.SetReason(wanted, c.QueryParam("reason"))
	return wanted, nil
}

// may returns an error unless the user has a permission.
func (h *Pages) may(c echo.Context, has func(allocations.Permissions) bool) error {
	if h.mayDo(c, has) == nil {
		return nil
	}
	if err := h.mayDo(c, has); console.Unavailable(err) {
		return err
	}
	return &governance.Error{Kind: governance.Forbidden, Op: "save allocation", Message: "You may not change compute allocations. Ask a cluster admin."}
}

// postAllocation answers POST /allocations.
func (h *Pages) postAllocation(c echo.Context) error {
	wanted, err := readAllocation(c)
	if err == nil {
		err = h.may(c, toCreate)
	}
	if err != nil {
		return err
	}
	ctx, user := c.Request().Context(), console.UserOf(c)
	return h.saveAllocation(c, wanted, func(state allocations.State) error {
		return h.Allocations.Create(ctx, user, state, wanted, nil, console.RequestOf(c))
	})
}

// putAllocation answers PUT /allocations/{name}.
func (h *Pages) putAllocation(c echo.Context) error {
	wanted, err := readAllocation(c)
	if err == nil {
		err = h.may(c, toUpdate)
	}
	if err != nil {
		return err
	}
	return h.updateAllocation(c, wanted)
}

func (h *Pages) updateAllocation(c echo.Context, wanted *v1alpha1.ComputeAllocation) error {
	ctx, user := c.Request().Context(), console.UserOf(c)
	now, err := h.Allocations.Find(ctx, user, wanted.Name)
	if err != nil {
		return err
	}
	if m, managed := managerOf(&now); managed {
		return &governance.Error{Kind: governance.Conflict, Op: "save allocation", Message: m.sentence}
	}
	return h.saveAllocation(c, wanted, func(state allocations.State) error {
		return h.Allocations.Update(ctx, user, state, wanted, nil)
	})
}

// saveAllocation saves an allocation, or answers what saving does.
func (h *Pages) saveAllocation(c echo.Context, wanted *v1alpha1.ComputeAllocation, save func(allocations.State) error) error {
	ctx, user := c.Request().Context(), console.UserOf(c)
	state, err := h.Allocations.State(ctx, user)
	if err != nil {
		return err
	}
	if c.QueryParam("dryRun") != "true" {
		if err := save(state); err != nil {
			return err
		}
		now, err := h.Allocations.Find(ctx, user, wanted.Name)
		if err != nil {
			return err
		}
		return c.JSON(http.StatusOK, SaveAnswer{Saved: true, Allocation: asSaved(now)})
	}
	review, err := h.Allocations.Review(ctx, user, state, wanted, nil)
	if err != nil {
		return err
	}
	answer := SaveAnswer{Unchanged: review.Empty() && review.Unknown == "", Settings: previews.FieldChanges(review.Settings), Objects: previews.ObjectChanges(review.Objects), Unknown: review.Unknown}
	for _, p := range quotaChanges(review.Pools) {
		answer.Quota = append(answer.Quota, QuotaChange{Pool: p.Pool, Resource: p.Resource, Before: p.Before, After: p.After})
	}
	for _, line := range review.Capacity {
		if line.OverCapacity() {
			answer.Capacity = append(answer.Capacity, OverCapacity{Pool: line.Pool, Resource: format.ResourceLabel(line.Resource), Allocated: quota.Grouped(line.Resource, line.After), Physical: quota.Grouped(line.Resource, line.Physical)})
		}
	}
	if !answer.Unchanged {
		effect, interrupts := h.Previews.EffectOf(ctx, h.saveVariant(user, wanted, nil))
		answer.Effect, answer.Interrupts = &effect, interrupts || review.Unknown != "" || len(review.Evicted)+len(review.Unadmittable) > 0
	}
	return c.JSON(http.StatusOK, answer)
}

// setQueue answers POST …/{name}/hold, /drain and /resume.
func (h *Pages) setQueue(to v1alpha1.Activation) func(echo.Context) error {
	return func(c echo.Context) error {
		if err := h.may(c, toUpdate); err != nil {
			return err
		}
		now, err := h.Allocations.Find(c.Request().Context(), console.UserOf(c), c.Param("name"))
		if err != nil {
			return err
		}
		wanted := &v1alpha1.ComputeAllocation{Spec: *now.Spec.DeepCopy()}
		wanted.Name, wanted.ResourceVersion, wanted.Spec.Activation = now.Name, now.ResourceVersion, to
		if v := c.QueryParam("resourceVersion"); v != "" && v != now.ResourceVersion {
			return &governance.Error{Kind: governance.Conflict, Op: "save allocation", Message: "The allocation of " + now.Name + " has changed since version " + v + ". Read it again."}
		}
		v1alpha1.SetReason(wanted, c.QueryParam("reason"))
		return h.updateAllocation(c, wanted)
	}
}

// removeAllocation answers DELETE …/{name}.
func (h *Pages) removeAllocation(c echo.Context) error {
	if err := h.may(c, toDelete); err != nil {
		return err
	}
	ctx, user := c.Request().Context(), console.UserOf(c)
	now, err := h.Allocations.Find(ctx, user, c.Param("name"))
	if err != nil {
		return err
	}
	if m, managed := managerOf(&now); managed && now.DeletionTimestamp == nil {
		return &governance.Error{Kind: governance.Conflict, Op: "delete allocation", Message: m.sentence}
	}
	if c.QueryParam("release") == "true" && !now.Spec.Adopted() {
		return &governance.Error{Kind: governance.Invalid, Op: "delete allocation", Message: "Some values are not valid.", Fields: []governance.FieldError{{Path: "release", Message: "is for adopted teams: this team's queues are Kuota's"}}}
	}
	departure, err := h.Allocations.PreviewDeletion(ctx, user, now.Name)
	if err != nil {
		return err
	}
	answer := DeleteAnswer{Running: len(departure.Running), Waiting: departure.Waiting, Removed: []string{}}
	for _, object := range departure.Removed {
		answer.Removed = append(answer.Removed, object.Kind+" "+object.Name)
	}
	if c.QueryParam("dryRun") == "true" {
		return c.JSON(http.StatusOK, answer)
	}
	deletion := allocations.Deletion{ResourceVersion: now.ResourceVersion, Drain: c.QueryParam("drain") == "true", Release: c.QueryParam("release") == "true", Reason: c.QueryParam("reason")}
	if v := c.QueryParam("resourceVersion"); v != "" {
		deletion.ResourceVersion = v
	}
	if err := h.Allocations.Delete(ctx, user, now.Name, deletion); err != nil {
		return err
	}
	answer.Deleted = true
	return c.JSON(http.StatusOK, answer)
}
