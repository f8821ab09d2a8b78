package handlers

import (
	"fmt"
	"net/url"
	"strings"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/actions"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/views"

	"github.com/labstack/echo/v4"
)

// actionNames are what the actions are called on buttons.
var actionNames = map[actions.Action]string{
	actions.Stop: "Stop", actions.Resume: "Resume", actions.Front: "Move to front", actions.Class: "Change class", actions.Delete: "Delete",
}

// doneNotice says what an action did to a task, as far as its state shows: Kueue
// follows within seconds, and the notice is a part of the live page, so that it
// never contradicts the status beside it. It is empty for no action, and once the
// status says more than the notice.
func doneNotice(action actions.Action, d tasks.Detail) string {
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
	case action == actions.Front && d.Place == 1:
		return "Moved to front. It is first in its queue."
	case action == actions.Front && d.Place > 1:
		return fmt.Sprintf("It is %s in its queue now.", ordinal(d.Place))
	case action == actions.Class && d.Class != "":
		return fmt.Sprintf("Class changed. Its priority class is %s.", className(d.Class))
	}
	return ""
}

// withDone is an address whose page says what was done.
func withDone(address string, action actions.Action) string {
	sign := "?"
	if strings.Contains(address, "?") {
		sign = "&"
	}
	return address + sign + url.Values{"done": {string(action)}}.Encode()
}

// missingWords are the rights that somebody lacks, each once.
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
	return fmt.Sprintf("Not for you: %s. That needs the right to %s in this namespace.", strings.Join(names, ", "), strings.Join(rights, ", to "))
}

// actionPage is a review as its page shows it.
func (h *Handlers) actionPage(c echo.Context, r actions.Review) views.ActionPage {
	page := views.ActionPage{
		Chrome: h.Chrome(c), UpLabel: r.Name, UpURL: below(c, ""), Action: below(c, "/"+string(r.Action)),
		Obstacle: r.Obstacle, Fields: []views.HiddenField{{Name: "uid", Value: r.UID}}, Submit: actionNames[r.Action],
		Lead: strings.Join(facts(r.Detail), " · "),
	}
	page.Title, page.Active = actionNames[r.Action]+": "+r.Name, "tasks"
	switch r.Action {
	case actions.Stop:
		page.Effects, page.Danger = stopEffects(r, elapsed(r.Ran(h.Now()), true)), r.State.Holding()
	case actions.Resume:
		page.Effects = append([]string{"It joins its queue as " + standing(r.Stands) + "."}, outcome(r.Stands, "it")...)
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
	case actions.Delete:
		page.Effects, page.Danger, page.Type, page.Confirm = deleteEffects(r, elapsed(r.Ran(h.Now()), true)), true, "Type "+r.Name+" to confirm", &views.TextField{}
		page.Submit = "Delete " + r.Name
	}
	if strings.Contains(r.Obstacle, "Stop it") {
		page.Ways = []views.ActionButton{{Label: "Stop it", URL: below(c, "/"+string(actions.Stop))}}
	}
	return page
}

func stopEffects(r actions.Review, ran string) (list []string) {
	if r.State.Holding() {
		list = append(list, loses(r)+" What it had not saved is lost.", fmt.Sprintf("It ran %s.", ran))
		if r.State == tasks.Starting {
			list[1] = "Its pods are not all ready yet."
		}
	} else {
		list = append(list, fmt.Sprintf("It leaves its queue, where it is %s. It holds no quota, and loses none.", standing(r.Stands)))
	}
	list = append(list, "It stays stopped until somebody resumes it. It then waits in its queue again, by its class and by when it was submitted.")
	switch next := r.Next; {
	case next != nil && next.UID != r.UID:
		list = append(list, fmt.Sprintf("%s stands first in its queue now, and asks for %s.", next.Name, amounts(next.Asked)))
	case next == nil:
		list = append(list, "No task waits in its queue now.")
	}
	return list
}

// loses is what a running task gives up.
func loses(r actions.Review) string {
	held := amounts(r.Held)
	if held == "" {
		held = "quota"
	}
	return fmt.Sprintf("It loses its %s at once: its pods end, and its job is suspended.", held)
}

// standing is a place in a queue in words.
func standing(s tasks.Supposed) string {
	text := fmt.Sprintf("%s of %s", ordinal(s.Place), thousands(int64(s.Of)))
	if s.Ahead != nil {
		text += ", behind " + s.Ahead.Name
	}
	return text
}

// outcome is whether it would start, as far as the numbers tell.
func outcome(s tasks.Supposed, who string) []string {
	v := s.Verdict
	if v == nil {
		return nil
	}
	switch v.Constraint {
	case explain.Turn:
		return []string{fmt.Sprintf("What %s asks for is free now.", who)}
	case explain.Reclaims:
		if len(v.StopsOthers) > 0 || v.MayPreempt {
			return []string{"It may preempt " + preemptedWords(v) + ". They are put back among those that wait."}
		}
		if len(v.Decides.Lower) > 0 && v.Decides.Used+v.Decides.Needed > v.Decides.Nominal {
			return []string{"It may preempt tasks of its own team that stand lower: " + victims(v.Decides) + ". They are put back among those that wait."}
		}
		return []string{"It fits into its team's own quota: it may preempt tasks of others that borrow it."}
	case explain.Quota:
		return []string{fmt.Sprintf("It does not fit now: %s short in %s.", quota.Amount(v.Decides.Resource, v.Decides.Short()), v.Decides.Flavor)}
	case explain.ExceedsMax:
		return []string{fmt.Sprintf("It can never start as it is: it needs %s of %s, and its team may have %s at most.", quota.Amount(v.Decides.Resource, v.Decides.Needed), v.Decides.Flavor, quota.Amount(v.Decides.Resource, v.Decides.Most))}
	case explain.QueueHeld:
		return []string{"Its queue is on hold: nothing starts there until an admin has it go on."}
	}
	return []string{"Something else keeps it from starting: its page says what."}
}

// victims are tasks that may be stopped, with what they hold.
func victims(s *explain.Shortage) string {
	var names []string
	for _, link := range holders(s.Lower, s.Cell) {
		names = append(names, strings.TrimSpace(link.Name+" "+link.Amount))
	}
	return strings.Join(names, ", ")
}

func frontEffects(r actions.Review) []string {
	to := r.Choices[0]
	was := "It has no class now"
	if r.Class != "" {
		was = fmt.Sprintf("It is in %s now (weight %d)", className(r.Class), r.Priority)
	}
	list := []string{
		fmt.Sprintf("It gets the class %s, weight %d: the lowest that stands before all that wait ahead of it. %s.", className(to.Name), to.Priority, was),
		fmt.Sprintf("It moves from the %s place in its queue to the 1st of %s.", ordinal(r.Place), thousands(int64(r.Of))),
	}
	return append(append(list, outcome(to.Supposed, "it")...), "It keeps that class, also while it runs.")
}

func classEffects(r actions.Review) []string {
	var list []string
	switch {
	case r.State.Holding():
		list = append(list, "It goes on running, with its quota. Its class decides who may preempt it, and where it waits after that.")
	case r.Bare:
		list = append(list, "Kueue has made no Workload of it. With a class that there is it makes one, unless something else is in the way, and the task joins its queue.")
	case r.State == tasks.Stopped:
		list = append(list, "It stays stopped. Its class decides where it waits once it is resumed.")
	default:
		list = append(list, "Its place in its queue changes at once, and with it what it may preempt.")
	}
	same := len(r.Choices) > 1
	for _, c := range r.Choices {
		same = same && c.Priority == r.Choices[0].Priority
	}
	if same {
		list = append(list, "All classes count the same now, as under first come, first served: a change moves nothing until tasks are ranked again.")
	}
	return append(list, "A class that a task has cannot be taken away from it, only changed.")
}

func classChoice(r actions.Review, c actions.Choice) views.ActionChoice {
	choice := views.ActionChoice{Value: c.Name, Label: fmt.Sprintf("%s · weight %d", className(c.Name), c.Priority), Checked: c.Name == r.Class}
	if choice.Checked {
		choice.Label += " · as now"
	}
	switch {
	case !r.State.Holding():
		choice.Text = strings.Join(append([]string{upper(standing(c.Supposed)) + "."}, outcome(c.Supposed, "it")...), " ")
	case !c.Preempts:
		choice.Text = "Its queue stops no task for another."
	case c.Outranked == 0:
		choice.Text = "No task that waits in its queue stands higher."
	default:
		choice.Text = countOf(c.Outranked, "task") + " of its queue would stand higher, and may preempt it."
		if c.Outranked == 1 {
			choice.Text = "1 task of its queue would stand higher, and may preempt it."
		}
	}
	return choice
}

func deleteEffects(r actions.Review, ran string) []string {
	what := fmt.Sprintf("The %s %s is deleted, with its pods, and with what Kueue remembers of it.", r.Kind, r.Name)
	switch {
	case r.Pods > 0:
		what = fmt.Sprintf("Its %s are deleted, and what Kueue remembers of them. Pods that a controller made, such as a Deployment's, are made anew by it: delete that instead.", countOf(r.Pods, "pod"))
		if r.Pods == 1 {
			what = "Its pod is deleted, and what Kueue remembers of it. A pod that a controller made, such as a Deployment's, is made anew by it: delete that instead."
		}
	case r.Kind == "Workload":
		what = fmt.Sprintf("The Workload %s is deleted. No job stands behind it.", r.Name)
	}
	list := []string{what}
	if r.State.Holding() && r.Bare {
		list = append(list, "Its pods end; what they had not saved is lost. It holds no quota.")
	} else if r.State.Holding() {
		list = append(list, fmt.Sprintf("It loses its %s at once. It ran %s; what it had not saved is lost.", amounts(r.Held), ran))
	} else if r.Place > 0 {
		list = append(list, fmt.Sprintf("It leaves its queue, where it is %s of %s.", ordinal(r.Place), thousands(int64(r.Of))))
	}
	if r.State.Finished() {
		return append(list, "Nothing brings it back.")
	}
	return append(list, "Nothing brings it back. To have it run later, stop it instead.")
}
