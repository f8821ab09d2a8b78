package handlers

import (
	"fmt"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/views"
)

// shownHolders is how many tasks that hold something are named.
const shownHolders = 5

// whyOf says why a task does not start, or gets no more; nil where there is nothing
// to say.
func whyOf(d tasks.Detail) *views.Why {
	v := d.Verdict
	if v == nil {
		return nil
	}
	team := "team " + d.Team
	if d.Team == "" {
		team = "the queue"
	}
	const waits = "Why is it waiting?"
	why := &views.Why{Title: waits, ChangesTitle: "What would start it", Tone: "wait"}
	switch v.Constraint {
	case explain.Deactivated:
		why.Title, why.Headline, why.Text = "Why is it not running?", "It is stopped.", "Its Workload is deactivated (.spec.active: false). Resume it to put it back in its queue."
	case explain.LoopHeld:
		mark, _ := d.Hold()
		why.Headline, why.Text = "The loop guard holds it.", "Kueue preempted it again and again for a task that it did not admit. Kuota keeps it out of admission until that task is admitted, at the latest until "+mark.Until.UTC().Format("15:04:05")+" (UTC). Resume or stop it to take it over."
	case explain.Gated:
		why.Headline, why.Text = "Something holds it back.", "Kueue waits until "+v.Detail+" lets it go (annotation kueue.x-k8s.io/admission-gated-by)."
	case explain.NoQueue:
		why.Tone, why.Headline, why.Text = "bad", "Its queue does not exist.", fmt.Sprintf("There is no queue %s in its namespace. Set the label kueue.x-k8s.io/queue-name to the team's queue.", v.Detail)
	case explain.NoClusterQueue:
		why.Tone, why.Headline, why.Text = "bad", "Its queue leads nowhere.", fmt.Sprintf("The ClusterQueue behind %s does not exist: the team's allocation may be gone, or is not ready.", v.Detail)
	case explain.QueueHeld:
		why.Headline, why.Text = "Its queue is on hold.", "An admin holds the team's queue: what runs goes on, and nothing starts until the allocation is active again."
	case explain.QueueInactive:
		why.Tone, why.Headline, why.Text = "bad", "Its queue takes no task now.", "Kueue says: "+v.Detail
	case explain.WrongNamespace:
		why.Tone, why.Headline, why.Text = "bad", "Its queue takes nothing from this namespace.", "Submit it in the team's own namespace."
	case explain.BacksOff:
		why.Headline, why.Text = "It is tried again later.", "Its pods did not all get ready, or a check failed. It goes back into the queue at "+d.About.RetryAt.UTC().Format("15:04:05")+" (UTC)."
	case explain.ChecksPending:
		why.Headline, why.Text = "It has its quota, and waits for a check.", v.Detail
	case explain.Uncovered:
		why.Tone, why.Headline, why.Text = "bad", "No quota counts "+v.Detail+".", "Its pods ask for a resource that the team's queue does not cover, so that Kueue never starts it. Take the request out, or ask an admin for quota of it."
	case explain.NoMatchingFlavor:
		why.Tone, why.Headline, why.Text = "bad", "No pool of the team has nodes for it.", "It can never start like this: change its node selector, affinity or tolerations."
	case explain.Turn:
		why.Headline, why.Text = "It fits, and Kueue has not come to it yet.", "What it asks for is free now."
		if d.Place > 1 {
			why.Text += fmt.Sprintf(" It is the %s in its queue.", ordinal(d.Place))
		}
	case explain.Unknown:
		why.Headline, why.Text = "Not known.", "Its queue is in a cohort of cohorts, which this console does not calculate. What Kueue says stands beside."
	case explain.OthersStart:
		why.Headline, why.Text = "It fits, and waits for the pods of others.", "Under the cluster's policy Kueue starts no task until all pods of those that it started are ready."
	case explain.Topology:
		why.Tone, why.Headline = "bad", "No nodes are near enough to one another for it."
		why.Text = "There is quota. But its pods ask to be placed together (topology-aware scheduling), and Kueue finds no place for all of them, even with all other tasks gone. Ask for fewer pods, or for less nearness."
	case explain.Quota, explain.ExceedsMax, explain.Reclaims:
		shortage(why, d, team)
	case explain.NoQueueName, explain.NoClass, explain.NotIntegrated, explain.NoWorkload:
		withoutWorkload(why, d)
	case explain.CeilingReached, explain.NoNodes, explain.TooSmall, explain.Fragmented, explain.NodesFull, explain.Unplaced:
		placed(why, d)
	}
	if d.Growing() && why.Title == waits && v.Constraint != explain.ChecksPending {
		why.Title, why.ChangesTitle = "Why does it not get more?", "What would give it more"
		runs := fmt.Sprintf("It runs with %d of %s.", d.Size.Now, podCount(d.Size.Wanted))
		if d.Elastic() {
			runs += " The new size is counted whole, and what it holds as free."
		}
		why.Text = runs + " " + why.Text
	}
	if v.Fit != nil && d.State.Waiting() {
		why.Steps = append(why.Steps, views.WhyStep{Tone: "bad", Title: "Nodes", Text: "With quota it would still not run: " + tooSmall(v.Fit)})
	}
	if d.Disagrees {
		why.Differs = fmt.Sprintf("Kueue itself says %s: “%s”. Its reasons can be older than what they are about.", d.About.Token, strings.TrimSuffix(d.About.Reason, "."))
	}
	for _, f := range v.Flavors {
		if f.Mismatch != "" {
			why.Pools = append(why.Pools, views.ValueLine{Name: f.Flavor, Value: f.Mismatch})
		}
	}
	for _, change := range v.Changes {
		why.Changes = append(why.Changes, changeWords(change, d, team))
	}
	return why
}

// shortage says what there is too little of, and steps through own quota, own
// lower tasks, and borrowing.
func shortage(why *views.Why, d tasks.Detail, team string) {
	v, s := d.Verdict, d.Verdict.Decides
	of := func(n int64) string { return quota.Amount(s.Resource, n) }
	switch v.Constraint {
	case explain.ExceedsMax:
		why.Tone, why.Headline = "bad", fmt.Sprintf("%s can never have that much.", upper(team))
		why.Text = fmt.Sprintf("It needs %s of %s at once; %s may have at most %s there, with all that it may borrow.", of(s.Needed), s.Flavor, team, of(s.Most))
	case explain.Reclaims:
		why.Headline = "Room is being made for it."
		why.Text = fmt.Sprintf("It needs %s of %s. Kueue stops %s, about one a second.", of(s.Needed), s.Flavor, stoppedWords(v))
	default:
		why.Headline = of(s.Short()) + " short."
		why.Text = fmt.Sprintf("It needs %s of %s at once, and %s can be had now.", of(s.Needed), s.Flavor, of(s.Free))
		if v.MayPreempt {
			why.Text += " " + mayPreempt
		}
	}
	own := views.WhyStep{Tone: "bad", Title: "Its own quota", Text: usedWords(s, of), Tasks: holders(s.Own, s.Cell)}
	if text, more := strings.CutSuffix(own.Text, ":"); more && len(own.Tasks) == 0 {
		own.Text = text + ", by this task itself."
	}
	if s.Nominal == 0 {
		own.Text = fmt.Sprintf("%s has no quota of %s.", upper(team), s.Flavor)
	}
	lower := views.WhyStep{Tone: "bad", Title: "Preempting its own lower-priority tasks", Text: "None of the team's tasks there stands lower."}
	if s.LowerSum > 0 {
		lower.Tone, lower.Text, lower.Tasks = "wait", fmt.Sprintf("%s held by tasks that stand lower.", of(s.LowerSum)), holders(s.Lower, s.Cell)
	}
	borrow := views.WhyStep{Tone: "bad", Title: "Borrowing and taking back"}
	switch {
	case s.Limit != nil && *s.Limit == 0:
		borrow.Text = fmt.Sprintf("%s may not borrow there.", upper(team))
	default:
		borrow.Text = fmt.Sprintf("Idle with others: %s.", of(s.Borrowable))
		if s.Borrowable == 0 {
			borrow.Text = "Nothing stands idle with others."
		}
		if s.Limit != nil {
			borrow.Text += fmt.Sprintf(" %s may borrow up to %s, and has borrowed %s.", upper(team), of(*s.Limit), borrowed(s, of))
		}
	}
	if s.Reclaim > 0 {
		borrow.Text += fmt.Sprintf(" Others hold %s beyond their own quota", of(s.Reclaim))
		if s.Used < s.Nominal {
			borrow.Tone = "wait"
			borrow.Text += fmt.Sprintf(", which comes back to %s up to its quota", team)
		}
		borrow.Text, borrow.Tasks = borrow.Text+":", borrowers(s)
	}
	if len(v.StopsOthers) > 0 {
		borrow.Tone, borrow.Tasks = "wait", holders(v.StopsOthers, s.Cell)
		if text, more := strings.CutSuffix(borrow.Text, ":"); more {
			borrow.Text = text + "."
		}
		borrow.Text += " Kueue stops these, which hold what they borrowed:"
	}
	why.Steps = append(why.Steps, own, lower, borrow)
}

// mayPreempt is said where shares decide, which are not calculated.
const mayPreempt = "It may stop tasks of other teams that borrow more than their share: Kueue shares idle compute fairly, and decides by what each has borrowed."

// stoppedWords are whom Kueue stops for a task.
func stoppedWords(v *explain.Verdict) string {
	own, others := tasksOf(v.Stops, "its own team"), tasksOf(v.StopsOthers, "other teams")
	switch {
	case own != "" && others != "":
		return own + " and " + others
	case own+others != "":
		return own + others
	case v.MayPreempt:
		return "tasks that stand behind it, or that other teams run on what they borrow"
	}
	return "tasks that stand behind it"
}

// tasksOf counts tasks, unless some of them are not for the reader; empty for none.
func tasksOf(list []explain.Holder, whose string) string {
	switch {
	case len(list) == 0:
		return ""
	case slices.ContainsFunc(list, func(h explain.Holder) bool { return h.Name == "" }):
		return "tasks of " + whose
	}
	return countOf(len(list), "task") + " of " + whose
}

// usedWords are how much of a team's own quota its tasks hold; their names follow.
func usedWords(s *explain.Shortage, of func(int64) string) string {
	switch {
	case s.Used == 0:
		return of(s.Nominal) + ", all free."
	case s.Used < s.Nominal:
		return fmt.Sprintf("%s, %s of them held:", of(s.Nominal), quota.Number(s.Resource, s.Used))
	case s.Used == s.Nominal:
		return of(s.Nominal) + ", all held:"
	}
	return fmt.Sprintf("%s, all held, and %s borrowed:", of(s.Nominal), of(s.Used-s.Nominal))
}

func borrowed(s *explain.Shortage, of func(int64) string) string {
	if s.Used <= s.Nominal {
		return "none"
	}
	return of(s.Used - s.Nominal)
}

func upper(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// holders are the first tasks of a list, the sum of those that are not for the
// reader, which stands last there, and how many more are.
func holders(list []explain.Holder, cell explain.Cell) []views.HolderLink {
	return linked(list, func(h explain.Holder) bool { return h.Name == "" }, func(h explain.Holder) views.HolderLink {
		link := views.HolderLink{TaskLink: views.TaskLink{Name: h.Team}, Amount: quota.Amount(cell.Resource, h.Holds[cell])}
		if h.Name != "" {
			link.TaskLink = views.TaskLink{Name: h.Name, URL: taskURL(&tasks.Task{Namespace: h.Namespace, Kind: h.Kind, Name: h.Name})}
		}
		return link
	})
}

// borrowers are the same of teams that hold more than their quota.
func borrowers(s *explain.Shortage) []views.HolderLink {
	return linked(s.Borrowers, func(b explain.Borrower) bool { return b.Queue == "" }, func(b explain.Borrower) views.HolderLink {
		link := views.HolderLink{TaskLink: views.TaskLink{Name: b.Team}, Amount: quota.Amount(s.Resource, b.Amount)}
		switch {
		case b.Queue != "" && b.Team != "":
			link.TaskLink = views.TaskLink{Name: "team " + b.Team, URL: teamURL(b.Team)}
		case b.Queue != "":
			link.Name = "queue " + b.Queue
		}
		return link
	})
}

// linked are the first of a list as links. The last may be a sum of what is hidden.
func linked[T any](list []T, hidden func(T) bool, link func(T) views.HolderLink) (found []views.HolderLink) {
	named := list
	if last := len(list) - 1; last >= 0 && hidden(list[last]) {
		named = list[:last]
	}
	for _, one := range slices.Concat(named[:min(shownHolders, len(named))], list[len(named):]) {
		found = append(found, link(one))
	}
	if more := len(named) - shownHolders; more > 0 {
		found = append(found, views.HolderLink{TaskLink: views.TaskLink{Name: fmt.Sprintf("%d more", more)}})
	}
	return found
}

func changeWords(c explain.Change, d tasks.Detail, team string) views.WhyChange {
	cell := explain.Cell{}
	if d.Verdict.Decides != nil {
		cell = d.Verdict.Decides.Cell
	}
	var figures []string
	for _, f := range c.To {
		figures = append(figures, quota.Amount(f.Resource, f.To))
	}
	there := fmt.Sprintf("of %s for %s", cell.Flavor, team)
	switch c.Kind {
	case explain.FewerPods:
		return views.WhyChange{Title: fmt.Sprintf("Run it with %s", podCount(c.Pods)), Text: fmt.Sprintf("instead of %d: starts now.", d.Size.Wanted)}
	case explain.TasksEnd:
		return views.WhyChange{Title: "These tasks end", Tasks: holders(c.Tasks, cell)}
	case explain.HigherClass:
		if len(c.Tasks) == 0 {
			return views.WhyChange{Title: fmt.Sprintf("The class %s (weight %d)", className(c.Class), c.Priority), Text: "for it Kueue makes room."}
		}
		return views.WhyChange{Title: fmt.Sprintf("The class %s (weight %d)", className(c.Class), c.Priority), Text: "stops for it", Tasks: holders(c.Tasks, cell)}
	case explain.BorrowLimit:
		return views.WhyChange{Title: "A borrowing limit of " + strings.Join(figures, " · "), Text: there + ": starts now, and stops nothing."}
	}
	return views.WhyChange{Title: "A quota of " + strings.Join(figures, " · "), Text: there + "."}
}

func podCount(n int32) string { return countOf(int(n), "pod") }
