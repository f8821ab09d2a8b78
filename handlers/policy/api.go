package policy

import (
	"net/http"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/gitops"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/previews"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// registerAPI adds the endpoints of the cluster policy.
func (h *Pages) registerAPI(s *web.Server) {
	s.API(web.Endpoint{Method: http.MethodGet, Path: "/policy", Summary: "Return the cluster policy", Answer: v1alpha1.ClusterPolicy{}, Handler: h.Handler(h.getPolicy)})
	s.API(web.Endpoint{
		Method: http.MethodPut, Path: "/policy", Summary: "Save the cluster policy, or review it",
		Query: []web.Parameter{{Name: "dryRun", About: "true saves nothing and answers what would change"}, {Name: "reason", About: "why, for the versions and the activity"}},
		Body:  v1alpha1.ClusterPolicy{}, Answer: SaveAnswer{}, Handler: h.Handler(h.Writing(h.putPolicy)),
	})
	s.API(web.Endpoint{Method: http.MethodPost, Path: "/policy/try-again", Summary: "Apply Kueue's configuration again, after another writer changed it back", Answer: console.DoneAnswer{}, Handler: h.Handler(h.Writing(h.apiTryAgain))})
}

// SaveAnswer is what saving changed or, as a dry run, would change.
type SaveAnswer struct {
	Saved      bool                    `json:"saved"`
	Unchanged  bool                    `json:"unchanged,omitempty"`
	Interrupts bool                    `json:"interrupts"`        // running tasks, or it is not known whether it does
	Restarts   bool                    `json:"restarts"`          // Kueue: for some seconds no task starts and no job can be submitted
	Reranks    bool                    `json:"reranks"`           // tasks get new priorities
	Manual     string                  `json:"manual,omitempty"`  // change of Kueue's configuration that an admin must apply
	Classes    []ClassChange           `json:"classes,omitempty"` // whose weight changes
	Settings   []previews.FieldChange  `json:"settings,omitempty"`
	Objects    []previews.ObjectChange `json:"objects,omitempty"`
	Warnings   []web.Field             `json:"warnings,omitempty"`
	Effect     *previews.Effect        `json:"effect,omitempty"`
	Unknown    string                  `json:"unknown,omitempty"`
	Policy     *v1alpha1.ClusterPolicy `json:"policy,omitempty"` // as it is saved
}

// ClassChange is the weight of a priority class before and after; absent where there is none.
type ClassChange struct {
	Name   string `json:"name"`
	Before *int32 `json:"before,omitempty"`
	After  *int32 `json:"after,omitempty"`
	Tasks  int    `json:"tasks"` // unfinished ones that have it
}

// getPolicy answers GET /policy.
func (h *Pages) getPolicy(c echo.Context) error {
	state, err := h.Policy.State(c.Request().Context(), console.UserOf(c))
	if err != nil {
		return err
	}
	if state.Policy == nil {
		return &governance.Error{Kind: governance.NotFound, Op: "read policy", Message: "There is no cluster policy yet."}
	}
	return c.JSON(http.StatusOK, asSaved(state.Policy))
}

// asSaved returns a policy as the API has it.
func asSaved(p *v1alpha1.ClusterPolicy) *v1alpha1.ClusterPolicy {
	p = p.DeepCopy()
	p.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ClusterPolicy"}
	p.ManagedFields = nil
	return p
}

// putPolicy answers PUT /policy.
func (h *Pages) putPolicy(c echo.Context) error {
	var sent v1alpha1.ClusterPolicy
	if err := web.ReadJSON(c, &sent); err != nil {
		return err
	}
	ctx, user := c.Request().Context(), console.UserOf(c)
	state, err := h.Policy.State(ctx, user)
	switch {
	case err != nil:
		return err
	case !state.MayEdit:
		return &governance.Error{Kind: governance.Forbidden, Op: "save policy", Message: "You may not change the cluster policy. Ask a cluster admin."}
	case state.Policy != nil && sent.ResourceVersion == "":
		return &governance.Error{Kind: governance.Invalid, Op: "save policy", Message: "Some values are not valid.", Fields: []governance.FieldError{{Path: "metadata.resourceVersion", Message: "is missing: read the policy first, and send its version"}}}
	}
	wanted := &v1alpha1.ClusterPolicy{Spec: sent.Spec}
	wanted.Name, wanted.ResourceVersion = v1alpha1.ClusterPolicyName, sent.ResourceVersion
	if state.Policy != nil {
		if m, managed := gitops.ManagerOf(state.Policy); managed {
			return &governance.Error{Kind: governance.Conflict, Op: "save policy", Message: m.Message("The cluster policy")}
		}
		wanted.Annotations = map[string]string{}
		for key, value := range state.Policy.Annotations {
			wanted.Annotations[key] = value
		}
	}
	if drop, ok := sent.Annotations[v1alpha1.AnnotationDropClasses]; ok {
		if wanted.Annotations == nil {
			wanted.Annotations = map[string]string{}
		}
		wanted.Annotations[v1alpha1.AnnotationDropClasses] = drop
	}
	if c.QueryParam("dryRun") != "true" {
		v1alpha1.SetReason(wanted, c.QueryParam("reason"))
		if err := h.Policy.Save(ctx, user, wanted); err != nil {
			return err
		}
		if state, err = h.Policy.State(ctx, user); err != nil || state.Policy == nil {
			return err
		}
		return c.JSON(http.StatusOK, SaveAnswer{Saved: true, Policy: asSaved(state.Policy)})
	}
	review, err := h.Policy.Review(ctx, user, wanted)
	if err != nil {
		return err
	}
	effect, interrupts := h.Previews.EffectOf(ctx, h.variant(user, wanted))
	answer := SaveAnswer{
		Unchanged: unchanged(state, wanted), Interrupts: interrupts || review.Unknown != "", Restarts: review.Restart, Reranks: review.Reranks, Manual: review.Patch,
		Settings: previews.FieldChanges(review.Settings), Objects: previews.ObjectChanges(review.Objects), Effect: &effect, Unknown: review.Unknown,
	}
	for _, class := range review.Classes {
		answer.Classes = append(answer.Classes, ClassChange(class))
	}
	for _, w := range review.Warnings {
		answer.Warnings = append(answer.Warnings, web.Field{Field: w.Path, Message: w.Message})
	}
	return c.JSON(http.StatusOK, answer)
}
