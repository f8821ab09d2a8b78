package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/policy"
	"kuota.dev/kuota/governance/spec/describe"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/forms"
	"kuota.dev/kuota/handlers/previews"
	"kuota.dev/kuota/handlers/versions"
	"kuota.dev/kuota/views"
	policyviews "kuota.dev/kuota/views/policy"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Kueue rewrites the priority of this many tasks in a second, at least and at
// most, as measured with 0.19.
const (
	slowestRewrite = 20
	fastestRewrite = 40
)

// reviewOf maps a review to its page.
func reviewOf(form policyForm, state policy.State, review policy.Review) policyviews.PolicyReview {
	view := policyviews.PolicyReview{
		Fields:     forms.WithoutReason(form.fieldsWithout(review.Classes)),
		Reason:     forms.ReasonField(form.Reason, "everyone who sees a team"),
		Incomplete: review.Unknown, Restart: review.Restart, Patch: review.Patch,
		Settings: versions.ValueChanges(review.Settings), Warnings: form.warned(review.Warnings), UpLabel: form.parts[0].upLabel,
	}
	for _, change := range review.Classes {
		class := policyviews.ReviewClass{Name: change.Name, Before: wholeText(change.Before), After: wholeText(change.After)}
		if change.Tasks > 0 {
			class.Tasks = format.Tasks(change.Tasks)
		}
		if change.InUse() {
			class.Drop = fmt.Sprintf("Without this, class %s stays in Kueue until the last of them has ended. With it, they keep the priority they have, and no new task can name the class either way.", change.Name)
			class.Dropped = slices.Contains(form.drop, change.Name)
		}
		view.Classes = append(view.Classes, class)
	}
	for _, pool := range review.Pools {
		line := views.ValueChange{Name: pool.Name, Before: nodesOrNone(pool.NodesBefore), After: nodesOrNone(pool.NodesAfter)}
		line.After = format.JoinedBy(": ", line.After, strings.Join(pool.Types, ", "))
		view.Pools = append(view.Pools, line)
	}
	view.Objects = versions.ObjectLines(review.Objects)
	if review.Reranks {
		view.Rerank = rerankWords(reranked(form, state, review))
	}
	wanted := form.policy(state)
	if gang := wanted.Spec.GangScheduling; gang.Enabled && (state.Policy == nil || !state.Policy.Spec.GangScheduling.Enabled) {
		view.Gang = describe.Duration(gang.Timeout)
	}
	view.Borrowing = borrowingWords(state.Policy, wanted)
	view.Unchanged = state.Policy != nil && review.Patch == "" &&
		equality.Semantic.DeepEqual(wanted.Spec, state.Policy.Spec) && equality.Semantic.DeepEqual(wanted.Annotations, state.Policy.Annotations)
	view.NoEffect = !view.Unchanged && !review.Restart && !review.Reranks && review.Patch == "" &&
		len(view.Settings)+len(view.Classes)+len(view.Pools)+len(view.Objects) == 0
	return view
}

// borrowingWords describes what Kueue preempts for a team that borrows, if the
// strategy for idle compute, or the ranking that it goes by, changes to first come,
// first served. Every queue has borrowWithinCohort LowerPriority, which has no
// effect under fair sharing.
func borrowingWords(saved, wanted *v1alpha1.ClusterPolicy) string {
	byClass := func(p *v1alpha1.ClusterPolicy) bool {
		return p != nil && p.Spec.IdleCompute.Strategy == v1alpha1.IdleFirstComeFirstServe && p.Spec.TaskPrioritization == v1alpha1.TaskRanking
	}
	if !byClass(wanted) || byClass(saved) {
		return ""
	}
	return "Idle compute goes to the team that submits first. A task of a higher priority class can preempt lower-priority tasks of other teams that run on borrowed compute, also while its own team borrows. Quota that a team lent is reclaimed whatever the class."
}

// fieldsWithout returns the form as hidden inputs, without the confirmations that
// the review has inputs for.
func (f *policyForm) fieldsWithout(asked []policy.ClassChange) []views.HiddenField {
	values := f.values()
	values.Del("submitted")
	values.Del("resumed")
	return slices.DeleteFunc(forms.HiddenFields(values), func(field views.HiddenField) bool {
		return field.Name == "drop" && slices.ContainsFunc(asked, func(c policy.ClassChange) bool { return c.InUse() && c.Name == field.Value })
	})
}

func nodesOrNone(n int64) string {
	if n == 0 {
		return "no node"
	}
	return format.Count(int(n), "node")
}

// reranked counts the tasks that get another priority: those of the classes
// that change, or of all where the prioritization does.
func reranked(form policyForm, state policy.State, review policy.Review) int {
	n := 0
	if state.Policy != nil && state.Policy.Spec.TaskPrioritization != form.policy(state).Spec.TaskPrioritization {
		for class, tasks := range state.Tasks {
			if class != "" {
				n += tasks
			}
		}
		return n
	}
	for _, change := range review.Classes {
		if change.Before != nil && change.After != nil {
			n += change.Tasks
		}
	}
	return n
}

// rerankWords describes what new priorities mean for tasks, and for how long.
func rerankWords(tasks int) string {
	if tasks == 0 {
		return "Classes get new priorities. No unfinished task has one of them now; preemption by priority is off for a moment."
	}
	long := "about " + spanWords(tasks/fastestRewrite, (tasks+slowestRewrite-1)/slowestRewrite)
	get := "get their new priority one by one"
	if tasks == 1 {
		get = "gets its new priority"
	}
	return fmt.Sprintf("%s %s, which takes %s. Meanwhile preemption by priority is off, so that no task preempts another of the same class. Nothing is stopped by it, and teams can still reclaim what they lent.",
		format.Tasks(tasks), get, long)
}

// spanWords describes a range of seconds: in seconds up to two minutes, then in
// minutes.
func spanWords(quick, slow int) string {
	unit := "second"
	if slow > 120 {
		quick, slow, unit = quick/60, (slow+59)/60, "minute"
	}
	if quick == slow || quick == 0 {
		return format.Count(slow, unit)
	}
	return fmt.Sprintf("%d to %s", quick, format.Count(slow, unit))
}

// variant returns the preview of saving a policy.
func (h *Pages) variant(user governance.User, wanted *v1alpha1.ClusterPolicy) previews.Variant {
	return previews.Variant{Key: "save", Title: "Effect on tasks and teams", Preview: func(ctx context.Context) (queries.Preview, error) {
		return h.Previews.Backend.Policy(ctx, user, wanted)
	}}
}

// previewReview answers the stream of the review: the preview of the values in its
// address.
func (h *form) previewReview(s *web.Server) func(echo.Context) error {
	return func(c echo.Context) error {
		values, _ := h.TypedValues(c, h.path)
		if values == nil {
			return echo.ErrNotFound
		}
		state, err := h.editablePolicy(c)
		if err != nil {
			return err
		}
		form := readPolicyForm(h.part, values)
		form.do(forms.ActionReview)
		return h.Previews.Stream(s, c, h.variant(console.UserOf(c), form.policy(state)))
	}
}
