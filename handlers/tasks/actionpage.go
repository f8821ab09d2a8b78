package tasks

import (
	"fmt"
	"maps"
	"net/url"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/actions"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/forms"
	"kuota.dev/kuota/views"

	"github.com/labstack/echo/v4"
)

// actionNames maps actions to the text of their buttons.
var actionNames = map[actions.Action]string{
	actions.Stop: "Stop", actions.Resume: "Resume", actions.Scale: "Scale", actions.Front: "Move to front", actions.Class: "Change priority class", actions.Resize: "Resize", actions.Delete: "Delete", actions.Again: "Submit again",
}

// doneNotice returns a sentence about an action that was run on a task, as far as
// the state of the task shows it: Kueue follows within seconds. The notice is part
// of the live page, so that it never contradicts the status next to it. It is empty
// for no action, and once the status shows more than the notice.
func doneNotice(action actions.Action, d queries.Detail) string {
	switch {
	case action == actions.Stop && d.State == tasks.Stopped:
		return "Stopped. Its quota is free for other tasks."
	case action == actions.Stop && d.State == tasks.Stopping:
		return "Stop requested. Its pods are ending."
	case action == actions.Stop && !d.State.Finished():
		return "Stop requested. Kueue acts on it within seconds."
	case action == actions.Resume && d.State.Waiting():
		return "Resumed. It waits in its queue."
	case action == actions.Resume && d.State == tasks.Starting:
		return "Resumed. It has its quota, and its pods are starting."
	case action == actions.Resume && d.State == tasks.Running:
		return "Resumed. It is running."
	case action == actions.Resume && !d.State.Finished():
		return "Resume requested. Kueue acts on it within seconds."
	case action == actions.Scale && d.State.Waiting():
		return "Scaled. Its replicas wait for quota."
	case action == actions.Scale && !d.State.Finished() && d.State != tasks.Stopped:
		return format.Upper(replicaWords(d.Task)) + ". A change of their number takes a few seconds."
	case action == actions.Resize && !d.State.Finished():
		return "Resized. Kuota acts on it within seconds."
	case action == actions.Front && d.Position == 1:
		return "Moved to front. It is first in its queue."
	case action == actions.Front && d.Position > 1:
		return fmt.Sprintf("It is %s in its queue now.", format.Ordinal(d.Position))
	case action == actions.Class && d.PriorityClass != "":
		return fmt.Sprintf("Class changed. It has the %s.", format.ClassWords(d.PriorityClass))
	}
	return ""
}

// withDone adds the action that was run to an address.
func withDone(address string, action actions.Action) string {
	sign := "?"
	if strings.Contains(address, "?") {
		sign = "&"
	}
	return address + sign + url.Values{"done": {string(action)}}.Encode()
}

// missingWords lists the permissions that the user lacks, each once.
func missingWords(offers []actions.Offer) string {
	var names, rights []string
	for _, offer := range offers {
		if offer.Missing == nil {
			continue
		}
		names = append(names, strings.ToLower(actionNames[offer.Action]))
		right := offer.Missing.Verb + " " + offer.Missing.Resource
		if len(rights) == 0 || rights[len(rights)-1] != right {
			rights = append(rights, right)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("You cannot do this: %s. You need the right to %s in this namespace.", strings.Join(names, ", "), strings.Join(rights, ", to "))
}

// actionPage converts a review to its page.
func (h *Pages) actionPage(c echo.Context, r actions.Review) views.ActionPage {
	page := views.ActionPage{
		Chrome: h.Chrome(c), UpLabel: r.Name, UpURL: below(c, ""), Action: below(c, "/"+string(r.Action)),
		Obstacle: r.Obstacle, Fields: []views.HiddenField{{Name: "uid", Value: r.UID}}, Submit: actionNames[r.Action],
		Lead: strings.Join(facts(r.Detail), " · "),
	}
	page.Title, page.Active = actionNames[r.Action]+": "+r.Name, "tasks"
	switch r.Action {
	case actions.Stop:
		page.Effects, page.Danger = stopEffects(r, format.Elapsed(r.Ran(h.Now()), true)), r.State.UsesQuota()
	case actions.Resume:
		if r.IsServing() {
			page.Effects = resumeServingEffects(r)
			break
		}
		page.Effects = append([]string{"It joins its queue as " + positionWords(r.Current) + "."}, outcome(r.Current, "it")...)
	case actions.Scale:
		page.Effects, page.Number = scaleEffects(r), &views.NumberField{ID: "replicas", Label: "Replicas", TextField: views.TextField{Value: strconv.Itoa(int(max(r.Replicas, 1)))}}
		page.Fields = append(page.Fields, views.HiddenField{Name: "saw", Value: strconv.Itoa(int(r.Replicas))})
	case actions.Front:
		if len(r.Choices) > 0 {
			page.Effects = frontEffects(r)
			page.Fields = append(page.Fields, views.HiddenField{Name: "choice", Value: r.Choices[0].Name})
		}
	case actions.Class:
		page.Legend, page.Effects = "Priority class", classEffects(r)
		for _, choice := range r.Choices {
			page.Choices = append(page.Choices, classChoice(r, choice))
		}
		if r.Numbers {
			page.Number = numberField("", "")
		}
	case actions.Delete:
		page.Effects, page.Danger, page.Type, page.Confirm = deleteEffects(r, format.Elapsed(r.Ran(h.Now()), true)), true, "Type "+r.Name+" to confirm", &views.TextField{}
		page.Submit = "Delete " + r.Name
	}
	if strings.Contains(r.Obstacle, "Stop it") {
		page.Alternatives = []views.ActionButton{{Label: "Stop it", URL: below(c, "/"+string(actions.Stop))}}
	}
	return page
}

func stopEffects(r actions.Review, ran string) (list []string) {
	switch {
	case r.IsServing():
		list = append(list, stopServingEffects(r))
		if r.State.UsesQuota() {
			list = append(list, fmt.Sprintf("It has run for %s.", ran))
		}
		list = append(list, "It stays stopped until someone resumes it. It then gets as many replicas as it has now.")
	case r.State.UsesQuota():
		list = append(list, loses(r)+" Unsaved work is lost.", fmt.Sprintf("It has run for %s.", ran))
		if r.State == tasks.Starting {
			list[1] = "Its pods are not all ready yet."
		}
	default:
		list = append(list, fmt.Sprintf("It leaves its queue, where it is %s. It uses no quota.", positionWords(r.Current)))
	}
	if !r.IsServing() {
		list = append(list, "It stays stopped until someone resumes it. Then it waits in its queue by its class and its submission time.")
	}
	switch next := r.Head; {
	case next != nil && next.UID != r.UID:
		list = append(list, fmt.Sprintf("%s is first in its queue now, and requests %s.", next.Name, format.Amounts(next.Requests)))
	case next == nil:
		list = append(list, "No tasks wait in its queue now.")
	}
	return list
}

// loses returns what a running task loses when it is evicted.
func loses(r actions.Review) string {
	usage := format.Amounts(r.Usage)
	if usage == "" {
		usage = "quota"
	}
	return fmt.Sprintf("It loses its %s at once%s. Its pods end, and its job is suspended.", usage, shareOfGrowth(r))
}

// shareOfGrowth returns how much of the usage of an ElasticJob is growth; empty for none.
func shareOfGrowth(r actions.Review) string {
	growth := format.Amounts(r.Growth)
	if growth == "" {
		return ""
	}
	minimum := maps.Clone(r.Usage)
	for name, amount := range r.Growth {
		minimum[name] = minimum[name].Minus(amount)
	}
	return fmt.Sprintf(": %s of its minimum and %s of its growth", format.Amounts(minimum), growth)
}

// positionWords describes a position in a queue.
func positionWords(s index.Supposed) string {
	text := fmt.Sprintf("%s of %s", format.Ordinal(s.Position), format.Thousands(int64(s.QueueLength)))
	if s.Ahead != nil {
		text += ", behind " + s.Ahead.Name
	}
	return text
}

// outcome returns the lines that predict whether the task would start.
func outcome(s index.Supposed, who string) []string {
	v := s.Verdict
	if v == nil {
		return nil
	}
	switch v.Constraint {
	case explain.PendingEvaluation:
		return []string{fmt.Sprintf("The quota %s requests is free now.", who)}
	case explain.Preempting:
		return []string{"It may preempt other tasks, which are requeued."}
	case explain.Quota:
		return []string{fmt.Sprintf("It does not fit now: %s short in %s.", quota.Amount(v.Shortage.Resource, v.Shortage.Missing()), v.Shortage.Flavor)}
	case explain.ExceedsMax:
		return []string{fmt.Sprintf("It can never start like this: it requests %s of %s, and its team can have at most %s.", quota.Amount(v.Shortage.Resource, v.Shortage.Needed), v.Shortage.Flavor, quota.Amount(v.Shortage.Resource, v.Shortage.PotentialAvailable))}
	case explain.QueueStopped:
		_, text := headline(v, "")
		return []string{text + " Its page says why."}
	}
	return []string{"It cannot start yet. Its page says why."}
}

func frontEffects(r actions.Review) []string {
	to := r.Choices[0]
	was := "It has no class now"
	if r.PriorityClass != "" {
		was = fmt.Sprintf("It has the %s now", weighted(r.PriorityClass, r.Priority))
	}
	list := []string{
		fmt.Sprintf("It gets the %s, the lowest that puts it first. %s.", weighted(to.Name, to.Priority), was),
		fmt.Sprintf("It moves from the %s place in its queue to the 1st of %s.", format.Ordinal(r.Position), format.Thousands(int64(r.QueueLength))),
	}
	return append(append(list, outcome(to.Supposed, "it")...), "It keeps that class while it runs.")
}

// weighted returns a priority class with its weight; a number is its weight.
func weighted(class string, weight int32) string {
	if desired.IsNumber(class) {
		return format.ClassWords(class)
	}
	return fmt.Sprintf("%s (weight %d)", format.ClassWords(class), weight)
}

func classEffects(r actions.Review) []string {
	var list []string
	switch {
	case r.State.UsesQuota():
		list = append(list, "It keeps running with its quota. Its class decides which tasks may preempt it, and its place when it waits again.")
	case r.NoWorkload:
		list = append(list, "Kueue has not created its Workload. With an existing class Kueue creates one, and the task joins its queue.")
	case r.State == tasks.Stopped:
		list = append(list, "It stays stopped. Its class decides where it waits once it is resumed.")
	default:
		list = append(list, "Its place in its queue changes at once, and so does what it may preempt.")
	}
	if r.Kind == v1alpha1.ElasticJobKind {
		list = append(list, "This is the class of its minimum. Growth has the lowest class of all, and is preempted first.")
	}
	same := len(r.Choices) > 1
	for _, c := range r.Choices {
		same = same && c.Priority == r.Choices[0].Priority
	}
	if same {
		list = append(list, "All classes have the same priority now (first come, first served). The change takes effect when tasks are ranked by class again.")
	}
	return append(list, "You can change a task's class, but not remove it.")
}

// numberField is the input of a priority by number, in place of a class.
func numberField(value, problem string) *views.NumberField {
	return &views.NumberField{ID: "number", Label: "Or a number", Hint: fmt.Sprintf("0 to %d, instead of a class.", desired.MaxNumber), TextField: views.TextField{Value: value, Error: format.Sentence(problem)}}
}

// chosenClass returns the priority class of a form with choices of classes and a number, which
// comes first, or why the number is not valid.
func chosenClass(values url.Values) (class, problem string) {
	if text := strings.TrimSpace(values.Get("number")); text != "" {
		number, problem := forms.ParseWhole(text, 0, desired.MaxNumber)
		return desired.NumberClass(int(number)), problem
	}
	return values.Get("choice"), ""
}

func classChoice(r actions.Review, c actions.Choice) views.ActionChoice {
	choice := views.ActionChoice{Value: c.Name, Label: fmt.Sprintf("%s · weight %d", format.ClassName(c.Name), c.Priority), Checked: c.Name == r.PriorityClass}
	if choice.Checked {
		choice.Label += " · current"
	}
	switch {
	case !r.State.UsesQuota():
		choice.Text = strings.Join(append([]string{format.Upper(positionWords(c.Supposed)) + "."}, outcome(c.Supposed, "it")...), " ")
	case !c.Preempts:
		choice.Text = "Its queue does not preempt tasks for one another."
	case c.Outranked == 0:
		choice.Text = "No waiting task of its queue could preempt it."
	default:
		choice.Text = format.Count(c.Outranked, "waiting task") + " of its queue would have higher priority, and may preempt it."
	}
	return choice
}

func deleteEffects(r actions.Review, ran string) []string {
	what := fmt.Sprintf("The %s %s is deleted, with its pods and its Workload.", r.Kind, r.Name)
	switch {
	case r.IsServing():
		what = fmt.Sprintf("The %s %s is deleted, with its pods and their Workloads.", r.Kind, r.Name)
	case r.Pods > 0:
		what = fmt.Sprintf("Its %s and their Workload are deleted. A controller, such as a Deployment, creates its pods again: delete the controller instead.", format.Count(r.Pods, "pod"))
		if r.Pods == 1 {
			what = "Its pod and its Workload are deleted. A controller, such as a Deployment, creates its pod again: delete the controller instead."
		}
	case r.Kind == "Workload":
		what = fmt.Sprintf("The Workload %s is deleted. It has no job.", r.Name)
	}
	if r.Kind == v1alpha1.ElasticJobKind {
		what = fmt.Sprintf("The ElasticJob %s is deleted, with its Jobs, its pods and their Workloads.", r.Name)
	}
	list := []string{what}
	if r.State.UsesQuota() && r.NoWorkload {
		list = append(list, "Its pods end, and unsaved work is lost. It uses no quota.")
	} else if r.State.UsesQuota() {
		list = append(list, fmt.Sprintf("It loses its %s at once%s. It has run for %s; unsaved work is lost.", format.Amounts(r.Usage), shareOfGrowth(r), ran))
	} else if r.Position > 0 {
		list = append(list, fmt.Sprintf("It leaves its queue, where it is %s of %s.", format.Ordinal(r.Position), format.Thousands(int64(r.QueueLength))))
	}
	if r.State.Finished() {
		return append(list, "You cannot undo this.")
	}
	return append(list, "You cannot undo this. To run it later, stop it instead.")
}
