package tasks

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/observe/progress"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/actions"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	taskviews "kuota.dev/kuota/views/tasks"

	"github.com/labstack/echo/v4"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	shownScales  = 50     // changes of size that a page lists
	readScales   = 1000   // that its chart and its sum have
	scaleCSVSize = 50_000 // largest number of changes in a file
)

// scale is a change of size, as the reader may see it.
type scale struct {
	history.ScaleEvent
	by      *views.TaskLink // that pods were preempted or withdrawn for
	team    string          // of by; empty for none
	unnamed string          // words for a task without a link
}

// scales returns the latest changes of the size of a task, by number: those of its
// status, which may be nil, and earlier ones from history. Other tasks are named only
// within the scope.
func (h *Pages) scales(ctx context.Context, scope access.Scope, uid string, status *queries.Scaling, limit int) ([]scale, error) {
	byNumber := map[int64]scale{}
	var err error
	if h.History != nil {
		var recorded []history.ScaleEvent
		if recorded, err = h.History.ScaleEvents(ctx, uid, limit); err != nil {
			recorded = nil
		}
		for _, e := range recorded {
			byNumber[e.Number] = recordedScale(e, scope)
		}
	}
	if status != nil {
		for _, s := range status.Scales {
			e := observedScale(status.Job, s)
			if before, ok := byNumber[e.Number]; ok {
				e = before.with(e)
			}
			byNumber[e.Number] = e
		}
	}
	var all []scale
	for _, e := range byNumber {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b scale) int { return cmp.Compare(a.Number, b.Number) })
	return all[max(0, len(all)-limit):], err
}

// observedScale converts a change of size in the status of a job.
func observedScale(job *v1alpha1.ElasticJob, s queries.Scale) scale {
	e := scale{ScaleEvent: history.ScaleEvent{
		Number: s.Number, At: s.Time.Time, From: s.From, To: s.To, Minimum: s.Minimum, Cause: string(s.Cause), By: s.By, Node: s.Node,
	}}
	for _, c := range s.Changes {
		e.Changes = append(e.Changes, history.PolicyChange(c))
	}
	accelerator, perPod := tasks.PodRequests(&job.Spec.Template.Spec).Accelerator()
	e.Accelerator, e.PerPod = accelerator, int64(perPod)
	switch {
	case s.ForWorkload == "":
	case s.Hidden:
		e.unnamed = hiddenTeam
	case s.For == nil:
		e.unnamed = "a task that is not known"
	default:
		e.by, e.team = &views.TaskLink{Name: s.For.Name, URL: urls.Task(s.For)}, s.ForTeam
		e.For = history.TaskRef{Namespace: s.For.Namespace, Kind: s.For.Kind, Name: s.For.Name, UID: s.For.UID, Team: s.ForTeam}
	}
	return e
}

// recordedScale returns a change of size from history without the names that the scope
// does not include.
func recordedScale(r history.ScaleEvent, scope access.Scope) scale {
	e := scale{ScaleEvent: r}
	if r.WorkloadUID != "" {
		switch e.by, e.unnamed = otherTask(r.For, scope); {
		case e.by != nil:
			e.team = r.For.Team
		case e.unnamed == hiddenTeam:
			e.For = history.TaskRef{}
		}
	}
	if r.Idle != nil {
		seen := *r.Idle
		seen.Lenders = slices.Clone(seen.Lenders)
		for i, lender := range seen.Lenders {
			if !scope.Includes(lender.Namespace) {
				seen.Lenders[i] = history.TeamRef{}
			}
		}
		seen.Lenders = slices.Compact(seen.Lenders)
		e.Idle = &seen
	}
	return e
}

// with returns a recorded change with the other task as the index knows it now, if it
// does.
func (e scale) with(observed scale) scale {
	if observed.by != nil {
		e.by, e.team, e.For, e.unnamed = observed.by, observed.team, observed.For, ""
	} else if e.by == nil && observed.unnamed == hiddenTeam {
		e.unnamed = observed.unnamed
	}
	return e
}

// elasticOf returns the size of an elastic task over time; nil for a task without
// changes of size. status is nil for a deleted task. until is the end of its last size.
// lines are its progress. lost is what its changes cost, by their second.
func (h *Pages) elasticOf(ctx context.Context, c echo.Context, scope access.Scope, uid string, status *queries.Scaling, until time.Time, lines []progress.Progress) (e *taskviews.ElasticTask, lost map[int64]string) {
	list, err := h.scales(ctx, scope, uid, status, readScales)
	if status == nil && len(list) == 0 {
		return nil, nil
	}
	e = &taskviews.ElasticTask{CSVURL: below(c, "/scaling.csv")}
	if status != nil {
		e.Size = sizeText(status.Job)
		if at := status.Job.Status.GrowsAfter; at != nil && at.After(h.Now()) {
			e.Grows = format.Time(at.Time)
			e.Why = "Growth was taken back. It waits twice as long each time that this happens again soon."
		}
		setProvisioning(e, status, h.Now())
	}
	gain := gainOf(list, until)
	e.Unit, e.Gained = gainUnit(list), ""
	if len(list) > 0 {
		e.Gained = gainText(list, gain.PodSeconds, gain.AcceleratorSeconds) + " " + e.Unit
	}
	e.Chart = scaleChart(gain, until)
	if len(gain.Steps) > 0 {
		e.Samples = h.samplesChart(ctx, c.Param("namespace"), c.Param("name"), gain.Steps[0].At, until)
	}
	for i := len(gain.Steps) - 1; i >= 0 && len(e.Changes) < shownScales; i-- {
		e.Changes = append(e.Changes, scaleChange(list[i], gain.Steps[i]))
	}
	e.Notes = scaleNotes(gain, len(list), err)
	lost = map[int64]string{}
	var sum float64
	for i, amount := range lostOf(list, h.starts(ctx, uid, lines)) {
		sum += amount.hours
		lost[list[i].At.Unix()] = amount.words()
		if row := len(list) - 1 - i; row < len(e.Changes) {
			e.Changes[row].Lost = format.Average(amount.hours)
		}
	}
	if len(lost) > 0 {
		e.Lost = format.Average(sum) + " " + e.Unit
	}
	return e, lost
}

// setProvisioning sets what a job asks nodes for, or when it does again.
func setProvisioning(e *taskviews.ElasticTask, s *queries.Scaling, now time.Time) {
	if c := meta.FindStatusCondition(s.Job.Status.Conditions, v1alpha1.ConditionProvisioning); c != nil && c.Status == metav1.ConditionFalse {
		e.AsksNot = format.Capitalize(c.Message) + "."
	}
	switch p := s.Job.Status.Provisioning; {
	case p == nil:
	case p.UnscheduledReplicas > 0 && p.Since != nil && p.Until != nil:
		e.Asks, e.AsksSince, e.AsksUntil = nodeWords(s, p.UnscheduledReplicas), format.Time(p.Since.Time), format.Time(p.Until.Time)
	case p.After != nil && p.After.After(now):
		e.AsksAgain = format.Time(p.After.Time)
	}
}

// nodeWords describes the nodes that pods need, such as "2 nodes of ml.p5.48xlarge".
func nodeWords(s *queries.Scaling, pods int32) string {
	switch {
	case s.Nodes > 0:
		return fmt.Sprintf("%s of %s", format.Count(int(s.Nodes), "node"), s.Pool)
	case s.Pool != "":
		return fmt.Sprintf("nodes of %s for %s", s.Pool, format.Pods(pods))
	}
	return "nodes for " + format.Pods(pods)
}

// sizeUntil returns until when the page shows a size: the last whole minute, so that a
// page on which nothing else changed is not sent again.
func sizeUntil(s *queries.Scaling, now time.Time) time.Time {
	until := now.Truncate(time.Minute)
	if s == nil {
		return until
	}
	if n := len(s.Scales); n > 0 && s.Scales[n-1].Time.After(until) {
		until = s.Scales[n-1].Time.Time
	}
	return until
}

// sizeText describes the size of an ElasticJob now.
func sizeText(job *v1alpha1.ElasticJob) string {
	s, p := job.Status, job.Spec.ElasticPolicy
	text := fmt.Sprintf("%d of %s", s.Replicas, podRange(p))
	if s.Replicas > s.Minimum {
		text += fmt.Sprintf(": %d guaranteed, %d growth", s.Minimum, s.Replicas-s.Minimum)
	}
	return text
}

// podRange returns the sizes of a policy, such as "8–32 pods".
func podRange(p v1alpha1.ElasticPolicy) string {
	if p.MinReplicas == p.MaxReplicas {
		return format.Pods(p.MaxReplicas)
	}
	return fmt.Sprintf("%d–%d pods", p.MinReplicas, p.MaxReplicas)
}

func gainOf(list []scale, until time.Time) history.Gain {
	events := make([]history.ScaleEvent, len(list))
	for i, e := range list {
		events[i] = e.ScaleEvent
	}
	return history.GainOf(events, until)
}

// gainUnit returns the unit of what growth gained.
func gainUnit(list []scale) string {
	if len(list) > 0 && list[len(list)-1].Accelerator != "" {
		return format.HourUnit(list[len(list)-1].Accelerator)
	}
	return "pod-hours"
}

// gainText returns what growth gained, in gainUnit.
func gainText(list []scale, podSeconds, acceleratorSeconds int64) string {
	seconds := podSeconds
	if len(list) > 0 && list[len(list)-1].Accelerator != "" {
		seconds = acceleratorSeconds
	}
	return format.Average(float64(seconds) / 3600)
}

// scaleChart returns the size over time, as steps.
func scaleChart(gain history.Gain, until time.Time) views.Chart {
	c := views.Chart{ID: "scale-chart", Title: "Size over time", Alone: true, Unit: "pods", Stacked: true}
	guaranteed := views.ChartSeries{Label: "Guaranteed", Tone: "own", Step: true}
	growth := views.ChartSeries{Label: "Growth", Tone: "ok", Step: true}
	add := func(at time.Time, step history.GainStep, known bool) {
		value := func(n int32) views.ChartValue {
			if !known {
				return views.ChartValue{}
			}
			return views.ChartValue{Value: float64(n), Known: true, Text: format.Thousands(int64(n))}
		}
		if n := len(c.Times); n > 0 && c.Times[n-1] == at.Unix() { // the last of a second counts
			c.Times, guaranteed.Values, growth.Values = c.Times[:n-1], guaranteed.Values[:n-1], growth.Values[:n-1]
		}
		c.Times = append(c.Times, at.Unix())
		guaranteed.Values = append(guaranteed.Values, value(min(step.Minimum, step.To)))
		growth.Values = append(growth.Values, value(max(0, step.To-step.Minimum)))
	}
	for i, step := range gain.Steps {
		add(step.At, step, !step.Until.IsZero())
		if step.Until.IsZero() {
			c.Gaps = append(c.Gaps, views.ChartGap{From: step.At.Unix(), To: gain.Steps[i+1].At.Unix(), Why: "Changes of size in between are not known."})
		}
	}
	if n := len(gain.Steps); n == 0 {
		c.Empty = "It has not started yet."
	} else if last := gain.Steps[n-1]; until.After(last.At) {
		add(until, last, true)
	}
	c.Series = []views.ChartSeries{guaranteed, growth}
	return c
}

// scaleNotes returns what the list of changes does not contain.
func scaleNotes(gain history.Gain, known int, err error) (notes []string) {
	if err != nil {
		notes = append(notes, "History cannot be read now: only the latest changes are listed.")
	}
	for _, m := range gain.Missing {
		switch {
		case m.First == 1 && known == readScales:
			notes = append(notes, fmt.Sprintf("The sum and the chart begin with change %d. The CSV file has all.", m.Last+1))
		case m.First == m.Last:
			notes = append(notes, fmt.Sprintf("Change %d is not known. What growth gained then is not in the sum.", m.First))
		default:
			notes = append(notes, fmt.Sprintf("Changes %d to %d are not known. What growth gained then is not in the sum.", m.First, m.Last))
		}
	}
	if known > shownScales {
		notes = append(notes, fmt.Sprintf("The latest %d of %s changes.", shownScales, format.Thousands(int64(known))))
	}
	return notes
}

const startedWords = "Started with its minimum"

// scaleCauses are the words of the causes of a change of size.
var scaleCauses = map[v1alpha1.ScaleCause]string{
	v1alpha1.ScaleAdmitted:    startedWords,
	v1alpha1.ScaleIdleCompute: "Grew into idle compute",
	v1alpha1.ScaleProvisioned: "Nodes came for growth",
	v1alpha1.ScaleNoNodes:     "No nodes came in time: growth that waited for them was withdrawn",
	v1alpha1.ScalePreempted:   "Preempted",
	v1alpha1.ScaleEvicted:     "Evicted by Kueue",
	v1alpha1.ScaleWithdrawn:   "Growth withdrawn",
	v1alpha1.ScalePodsFailed:  "Pods failed",
	v1alpha1.ScaleNodeLost:    "Node lost",
	v1alpha1.ScaleUneven:      "The remaining pods were no allowed size",
	v1alpha1.ScaleResized:     "Resized",
	v1alpha1.ScalePolicy:      "Policy changed",
	v1alpha1.ScaleSuspended:   "Suspended",
	v1alpha1.ScaleDeleted:     "One of its Jobs was deleted",
	v1alpha1.ScaleSucceeded:   "Succeeded",
	v1alpha1.ScaleFailed:      "Failed",
}

// scaleChange returns the row of a change of size.
func scaleChange(e scale, step history.GainStep) taskviews.ScaleChange {
	c := taskviews.ScaleChange{
		ID: "scale-" + strconv.FormatInt(e.Number, 10), At: format.Time(e.At), From: fmt.Sprint(e.From), To: fmt.Sprint(e.To),
		Title: e.Cause, By: e.by, Unnamed: e.unnamed, Gained: "–",
	}
	if words, ok := scaleCauses[v1alpha1.ScaleCause(e.Cause)]; ok {
		c.Title = words
	}
	if c.Title == startedWords && e.From > 0 {
		c.Title = "More of its minimum was admitted"
	}
	c.Text = policyChangeWords(e.Changes)
	switch {
	case e.By != "":
		c.Title += " by " + e.By
	case e.Node != "":
		c.Title += ": " + e.Node
	case e.team != "":
		c.Text = "of team " + e.team
	case e.Idle != nil:
		c.Text = idleWords(e.Idle)
	}
	if !step.Until.IsZero() {
		c.Gained = gainText([]scale{e}, step.PodSeconds, step.AcceleratorSeconds)
	}
	return c
}

// policyWords are the words for the fields of an elastic policy that timeWords lacks.
var policyWords = map[string]string{
	"minReplicas": "Minimum", "maxReplicas": "Maximum", "replicaIncrementStep": "Step", "replicaDiscreteValues": "Sizes",
	"growth": "Growth", "maxUnscheduledReplicas": "Pods that wait for nodes at once",
}

// policyChangeWords describes what a user changed of a policy, such as "Maximum 8 → 16, Time to save
// 30 s → 90 s".
func policyChangeWords(changes []history.PolicyChange) string {
	words := make([]string, len(changes))
	for i, c := range changes {
		label, unit := cmp.Or(policyWords[c.Field], c.Field), ""
		if t, ok := timeWords[actions.SizeField(c.Field)]; ok {
			label, unit = t.label, " s"
		}
		value := func(text string) string {
			if text == "" {
				return "none"
			}
			return text + unit
		}
		words[i] = label + " " + value(c.From) + " → " + value(c.To)
	}
	return strings.Join(words, ", ")
}

// idleWords describes whose idle compute growth uses.
func idleWords(s *history.IdleSources) string {
	var parts []string
	if s.Own {
		parts = append(parts, "its team's own quota")
	}
	if s.Unallocated {
		parts = append(parts, "unallocated compute")
	}
	for _, lender := range s.Lenders {
		if lender.Team == "" { // the reader may not see it
			parts = append(parts, "quota lent by other teams")
			continue
		}
		parts = append(parts, "quota lent by "+lender.Team)
	}
	return strings.Join(parts, ", ")
}

// scalingCSV answers GET …/scaling.csv: the changes of the size of a task, the oldest
// first.
func (h *Pages) scalingCSV(c echo.Context) error {
	ctx := c.Request().Context()
	var scope access.Scope
	var uid string
	var status *queries.Scaling
	until := h.Now()
	d, err := h.Tasks.Detail(ctx, console.UserOf(c), c.Param("namespace"), c.Param("kind"), c.Param("name"), c.QueryParam("uid"))
	if err == nil {
		uid, status = d.UID, d.Scaling
		if scope, err = h.Tasks.Scope(ctx, console.UserOf(c)); err != nil {
			return err
		}
	} else {
		past, err := h.findPast(c, err)
		if err != nil {
			return err
		}
		scope, uid, until = past.scope, past.task.UID, endOf(past.task, until)
	}
	list, err := h.scales(ctx, scope, uid, status, scaleCSVSize)
	if err != nil {
		return &governance.Error{Kind: governance.Unavailable, Op: "list scale events", Message: HistoryUnavailable(err), Err: err}
	}
	if status == nil && len(list) == 0 {
		return &governance.Error{Kind: governance.NotFound, Op: "list scale events", Message: "This task is not elastic."}
	}
	rows := [][]string{{
		"number", "time", "pods before", "pods", "minimum", "cause", "idle compute of", "for namespace", "for kind", "for task", "for team", "user", "node",
		"accelerator", "accelerators per pod", "until", "pod-seconds gained", "accelerator-seconds gained", "accelerator-hours gained", "accelerator-seconds lost", "changes",
	}}
	gain, lost := gainOf(list, until), lostOf(list, h.starts(ctx, uid, nil))
	for i, step := range gain.Steps {
		e := list[i]
		row := []string{
			strconv.FormatInt(e.Number, 10), format.Time(e.At), fmt.Sprint(e.From), fmt.Sprint(e.To), fmt.Sprint(e.Minimum), e.Cause, "",
			e.For.Namespace, e.For.Kind, e.For.Name, cmp.Or(e.team, e.unnamed), e.By, e.Node, e.Accelerator, fmt.Sprint(e.PerPod), "", "", "", "", "", policyChangeWords(e.Changes),
		}
		if e.Idle != nil {
			row[6] = idleWords(e.Idle)
		}
		if !step.Until.IsZero() {
			row[15], row[16], row[17] = format.Time(step.Until), fmt.Sprint(step.PodSeconds), fmt.Sprint(step.AcceleratorSeconds)
			row[18] = strconv.FormatFloat(float64(step.AcceleratorSeconds)/3600, 'f', 3, 64)
		}
		if amount, known := lost[i]; known && e.Accelerator != "" {
			row[19] = strconv.FormatFloat(math.Round(amount.hours*3600), 'f', -1, 64)
		}
		rows = append(rows, row)
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return console.CSVFile(c, "scaling", rows)
}

// endOf returns the end of a recorded task, and now for one that has none.
func endOf(t history.Task, now time.Time) time.Time {
	if end := firstOf(t.FinishedAt, t.DeletedAt); !end.IsZero() {
		return end
	}
	return now
}
