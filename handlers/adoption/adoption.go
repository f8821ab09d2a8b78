package adoption

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/imports/adopt"
	"kuota.dev/kuota/governance/imports/adoption"
	"kuota.dev/kuota/governance/spec/manifest"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/forms"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	adoptionviews "kuota.dev/kuota/views/adoption"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// Pages answers the routes of the adoption.
type Pages struct {
	*console.Console
	forms.Addresses
	Adoption console.Adoption
}

// Register adds the routes of this package to the server.
func (h *Pages) Register(s *web.Server) {
	if h.Adoption == nil {
		return
	}
	s.Form(urls.Adoption, h.Handler(h.Writing(h.showPlan)), h.Handler(h.Writing(h.takePlan)))
}

// Actions of the form.
const (
	actionSelect = "select"
	actionReview = "review"
	actionAdopt  = "adopt"
)

// showPlan answers GET /policies/adopt: the plan, or the step of the address.
func (h *Pages) showPlan(c echo.Context) error {
	values, _ := h.TypedValues(c, urls.Adoption)
	if values == nil {
		values = url.Values{}
	}
	return h.render(c, values)
}

// takePlan answers POST /policies/adopt: the next step, or the adoption.
func (h *Pages) takePlan(c echo.Context) error {
	values, err := forms.Posted(c)
	if err != nil {
		return err
	}
	if values.Get("action") != actionAdopt {
		return h.render(c, values)
	}
	ctx, user := c.Request().Context(), console.UserOf(c)
	results, err := h.Adoption.Adopt(ctx, user, values["queue"], forms.ReasonText(values.Get("reason")))
	var refused *governance.Error
	switch {
	case errors.As(err, &refused) && refused.Kind != governance.NotFound && refused.Kind != governance.Internal:
		values.Set("action", actionSelect)
		forms.SetAnswer(values, console.Statuses[refused.Kind], refused)
		return h.render(c, values)
	case err != nil:
		return err
	}
	after := url.Values{}
	for _, r := range results {
		if r.Err == nil {
			after.Add("adopted", r.Team)
		}
	}
	if failed := failures("Some ClusterQueues were not adopted.", results); failed != nil {
		forms.SetAnswer(after, http.StatusConflict, failed)
	}
	return h.render(c, after)
}

// failures returns the errors of results as one error; nil for none.
func failures(message string, results []adopt.Result) *governance.Error {
	failed := &governance.Error{Kind: governance.Conflict, Op: "adopt ClusterQueues", Message: message}
	for _, r := range results {
		if r.Err == nil {
			continue
		}
		message := r.Err.Error()
		var refused *governance.Error
		if errors.As(r.Err, &refused) {
			message = refused.Message
			for _, f := range refused.Fields {
				message += " " + format.Capitalize(f.Message) + "."
			}
		}
		failed.Fields = append(failed.Fields, governance.FieldError{Path: r.Queue, Message: message})
	}
	if len(failed.Fields) == 0 {
		return nil
	}
	return failed
}

// render shows the step of the values.
func (h *Pages) render(c echo.Context, values url.Values) error {
	plan, err := h.Adoption.Plan(c.Request().Context(), console.UserOf(c))
	if err != nil {
		return err
	}
	page := adoptionviews.AdoptionPage{Action: urls.Adoption, CancelURL: urls.Policies, InPlace: forms.InPlace(c), Adopted: adopted(values["adopted"])}
	page.Chrome = h.Chrome(c)
	page.Title, page.Active = "Adopt existing queues", "policies"
	status, refused := forms.AnswerOf(values)
	review := values.Get("action") == actionReview
	if review && len(values["queue"]) == 0 {
		status, refused, review = http.StatusUnprocessableEntity, &governance.Error{Kind: governance.Invalid, Message: "Select at least one ClusterQueue."}, false
	}
	if review {
		var ours *governance.Error
		results, err := h.Adoption.Check(c.Request().Context(), console.UserOf(c), values["queue"])
		if err == nil {
			page.Review, err = reviewOf(plan, values)
		}
		if err != nil && !errors.As(err, &ours) {
			return err
		}
		if err == nil {
			ours = failures("Some ClusterQueues cannot be adopted.", results)
		}
		if ours != nil { // the cluster changed since, or the user has no permission
			status, refused, page.Review = http.StatusConflict, ours, nil
		}
	}
	if refused != nil {
		page.Failure = refused.Message
		for _, f := range refused.Fields {
			page.Failures = append(page.Failures, f.Path+": "+f.Message)
		}
	}
	for _, q := range plan.Queues {
		page.Queues = append(page.Queues, queueOf(q, values))
	}
	return h.AnswerForm(c, status, urls.Adoption, urls.Adoption, values, adoptionviews.Adoption(page))
}

// adopted returns the sentence about allocations that were created.
func adopted(teams []string) string {
	switch len(teams) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("Allocation %s was created. Its row under Policies shows when it is active.", teams[0])
	}
	return fmt.Sprintf("Allocations %s were created. Their rows under Policies show when they are active.", strings.Join(teams, ", "))
}

func queueOf(q adoption.Queue, values url.Values) adoptionviews.AdoptionQueue {
	view := adoptionviews.AdoptionQueue{Name: q.Name, Verdict: verdict(q.Verdict), Selected: slices.Contains(values["queue"], q.Name)}
	for _, reason := range append(slices.Clone(q.Reasons), q.Notes...) {
		view.Reasons = append(view.Reasons, format.Capitalize(reason)+".")
	}
	switch {
	case q.Team != "":
		view.Locked = fmt.Sprintf("Team %s observes it already.", q.Team)
	case q.Allocation == nil:
		view.Locked = "It cannot be adopted."
	case q.Allocation.Name != q.Name:
		view.Team = q.Allocation.Name
	}
	if len(values) == 0 && view.Locked == "" {
		view.Selected = q.Verdict == adoption.Manage
	}
	return view
}

func verdict(v adoption.Verdict) views.Status {
	tone := map[adoption.Verdict]string{adoption.Manage: "ok", adoption.Observe: "idle", adoption.Refuse: "bad"}[v]
	return views.Status{Tone: tone, Label: string(v)}
}

// reviewOf returns what adopting the selected ClusterQueues creates.
func reviewOf(plan adoption.Plan, values url.Values) (*adoptionviews.AdoptionReview, error) {
	selected, err := adopt.Select(plan, values["queue"])
	if err != nil {
		return nil, err
	}
	review := &adoptionviews.AdoptionReview{Policy: adopt.NeedsPolicy(plan, selected), Reason: forms.ReasonField(values.Get("reason"), "users who see the team")}
	var documents []string
	if review.Policy {
		documents = append(documents, manifest.PolicyYAML(plan.Policy))
		review.KueueChanges, review.PolicyProblem = plan.KueueChanges, plan.PolicyProblem
		for _, class := range plan.PriorityClasses {
			if class.Verdict != adoption.Manage {
				review.Classes = append(review.Classes, class.Name+": "+class.Reason)
			}
		}
	}
	for _, q := range selected {
		if q.Verdict == adoption.Manage {
			review.Managed = append(review.Managed, q.Name)
		} else {
			review.Observed = append(review.Observed, q.Name)
		}
		documents = append(documents, manifest.AllocationYAML(q.Allocation))
	}
	review.YAML = strings.Join(documents, "---\n")
	return review, nil
}
