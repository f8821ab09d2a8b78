package tasks

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	taskviews "kuota.dev/kuota/views/tasks"
)

// shownQueues is how many LocalQueues are named.
const shownQueues = 3

// shownWorkloads is how many admitted tasks are named.
const shownWorkloads = 5

// words are what pages say about a constraint that keeps a task from starting: a sentence with
// its tone, and a text below it. %s stands for the detail of the verdict. Headlines and texts that are
// empty here depend on the task: see headline and WhyOf.
type words struct{ tone, headline, text string }

// constraints are the words about each constraint.
var constraints = map[explain.Constraint]words{
	explain.Deactivated:          {"wait", "It is stopped.", "Its Workload is deactivated (.spec.active: false). Resume it to put it back in its queue."},
	explain.TimedOut:             {"bad", "Its time limit was reached.", ""},
	explain.LoopHeld:             {"wait", "The loop guard holds it.", ""},
	explain.Gated:                {"wait", "Its admission is gated.", "Kueue waits until %s removes its gate (annotation kueue.x-k8s.io/admission-gated-by)."},
	explain.StartsAfter:          {"wait", "", ""},
	explain.NoQueue:              {"bad", "Its queue does not exist.", ""},
	explain.NoClusterQueue:       {"bad", "Its queue has no ClusterQueue.", "The ClusterQueue of LocalQueue %s does not exist. The team's allocation may be deleted, or not ready yet."},
	explain.QueueStopped:         {"wait", "Its queue is on hold.", "An admin put the team's queue on hold. Running tasks continue, and no task starts until the queue is resumed."},
	explain.QueueInactive:        {"bad", "Its queue is inactive.", "Kueue says: %s"},
	explain.WrongNamespace:       {"bad", "Its queue does not accept this namespace.", "Submit it in the team's own namespace."},
	explain.BackingOff:           {"wait", "It is retried later.", ""},
	explain.ChecksPending:        {"wait", "It has its quota, and waits for an admission check.", "%s"},
	explain.UncoveredResource:    {"bad", "No quota covers %s.", "Its pods request a resource that the team's queue does not cover, so Kueue never starts it. Remove the request, or ask an admin for quota."},
	explain.NoMatchingFlavor:     {"bad", "No pool of the team has nodes for it.", "It can never start like this. Change its node selector, affinity or tolerations."},
	explain.PendingEvaluation:    {"wait", "It fits, and Kueue has not admitted it yet.", "What it requests is free now."},
	explain.Behind:               {"wait", "It waits for its turn.", "What it requests is free now."},
	explain.WaitingForPodsReady:  {"wait", "It fits, and waits for the pods of other tasks.", "Under the cluster policy, Kueue starts a task only when all pods of started tasks are ready."},
	explain.Topology:             {"bad", "No nodes are close enough together for it.", "There is quota, but Kueue finds no topology domain for all its pods, even without other tasks. Request fewer pods, or a wider topology."},
	explain.ExceedsMax:           {"bad", "", ""},
	explain.Preempting:           {"wait", "Kueue is preempting other tasks for it.", ""},
	explain.Quota:                {"wait", "", ""},
	explain.NoQueueName:          {"bad", "It names no queue.", "Kueue does not manage it, and no quota counts its pods. Delete it, and submit it again with the label kueue.x-k8s.io/queue-name."},
	explain.NoPriorityClass:      {"bad", "The priority class %s does not exist.", "Kueue creates no Workload for it, so it never starts. Name an existing class in the label kueue.x-k8s.io/priority-class."},
	explain.NotIntegrated:        {"bad", "Kueue does not manage a %s here.", "Its integration is disabled in Kueue's configuration (integrations.frameworks). Ask an admin to enable it, or submit the work as another kind."},
	explain.NoWorkload:           {"bad", "Kueue has not created its Workload.", "That takes a moment after submission. If it stays so, Kueue is not running, or was not when the job was created: ask an admin to check Settings."},
	explain.ResourceQuotaReached: {"bad", "The ResourceQuota of its namespace refuses its pods.", ""},
	explain.NoNodes:              {"bad", "No node is ready for its pods.", ""},
	explain.TooSmall:             {"bad", "No node is large enough for one of its pods.", ""},
	explain.Fragmented:           {"bad", "", ""},
	explain.NodesFull:            {"bad", "The nodes are full.", ""},
	explain.PodsTerminating:      {"wait", "It has its quota, and waits until other pods have ended.", ""},
	explain.Unschedulable:        {"bad", "The scheduler finds no node for its pods.", ""},
	explain.CohortCycle:          {"bad", "Its cohort is its own ancestor.", "The parents of these cohorts form a circle: %s. Kueue admits nothing in them until an admin changes a parent."},
	explain.Unknown:              {"wait", "Kueue has not said why.", "This console finds quota for it, and Kueue does not."},
}

// headline returns the constraint that decides that a task does not start, in one
// sentence, and its tone. Lists show it as the reason, and the page of the task
// above all details. team is "team x", or "the queue" for a task without a team.
func headline(v *explain.Verdict, team string) (tone, text string) {
	c, known := constraints[v.Constraint]
	text = strings.ReplaceAll(c.headline, "%s", v.Detail)
	switch {
	case !known:
		return "wait", "Not calculated."
	case v.Constraint == explain.QueueStopped && v.Detail != "":
		text = "Its LocalQueue " + v.Detail + " is on hold."
	case v.Constraint == explain.StartsAfter:
		tone, text, _ := startsAfter(v)
		return tone, text
	case v.Constraint == explain.ExceedsMax:
		text = format.Upper(team) + " can never have that much."
	case v.Constraint == explain.Quota:
		text = quota.Amount(v.Shortage.Resource, v.Shortage.Missing()) + " short."
	case v.Constraint == explain.Fragmented:
		text = fmt.Sprintf("%s are free, but at most %s on one node.", format.Upper(quota.Amount(v.Fit.Resource, v.Fit.TotalFree)), quota.Grouped(v.Fit.Resource, v.Fit.LargestFree))
	}
	return c.tone, text
}

// teamWords returns how headline names the team of a task.
func teamWords(team string) string {
	if team == "" {
		return "the queue"
	}
	return "team " + team
}

// startsAfter returns what is said of a task that waits for others to end.
func startsAfter(v *explain.Verdict) (tone, headline, text string) {
	const again = "Delete it, or submit it again without waiting for that task."
	var names []string
	for _, p := range v.Predecessors {
		switch {
		case p.Failed && !p.Any:
			return "bad", "It never starts: " + p.Name + " failed.", "It starts only once " + p.Name + " has succeeded. " + again
		case p.Name == "" && !p.Any:
			return "bad", "It starts after a task that was deleted.", "Unless that one had succeeded, it never starts. " + again
		case p.Name == "":
			names = append(names, "a task that was deleted")
		default:
			names = append(names, p.Name)
		}
	}
	if more := len(names) - shownWorkloads; more > 0 {
		names = append(names[:shownWorkloads], fmt.Sprintf("%d more", more))
	}
	return "wait", "It starts after " + strings.Join(names, ", ") + ".", "It waits for quota only then. Kuota removes its gate when that has ended (annotation kueue.x-k8s.io/admission-gated-by)."
}

// noQueueWords returns what to do about a task whose queue does not exist. Admission
// policies let no member change the queue of a job.
func noQueueWords(v *explain.Verdict) string {
	queues := "a queue that exists"
	if len(v.LocalQueues) > 0 {
		queues = strings.Join(v.LocalQueues[:min(len(v.LocalQueues), shownQueues)], " or ")
	}
	return fmt.Sprintf("There is no LocalQueue %s in its namespace, and the queue of a submitted task cannot be changed. Delete it, and submit it again with the label kueue.x-k8s.io/queue-name: %s.", v.Detail, queues)
}

// WhyOf explains why a task does not start, or does not get more pods; nil without a
// verdict.
func WhyOf(d queries.Detail) *taskviews.Why {
	v := d.Verdict
	if v == nil {
		return nil
	}
	team := teamWords(d.Team)
	const waits = "Why is it waiting?"
	why := &taskviews.Why{Title: waits, ChangesTitle: "What would start it", Text: strings.ReplaceAll(constraints[v.Constraint].text, "%s", v.Detail)}
	why.Tone, why.Headline = headline(v, team)
	message := strings.TrimSuffix(d.About.Message, ".")
	switch v.Constraint {
	case explain.Deactivated:
		why.Title = "Why is it not running?"
		if d.Kind == v1alpha1.ElasticJobKind {
			why.Text = "It is suspended (.spec.suspend: true). Resume it to put it back in its queue."
		}
		if d.IsServing() {
			why.Text = stoppedServingWords(d.Task)
		}
	case explain.TimedOut:
		why.Title, why.Text = "Why is it not running?", timedOutWords(d)
	case explain.LoopHeld:
		mark, _ := d.Hold()
		why.Text = "Kueue preempted it again and again for a task that it did not admit. Kuota keeps it out of admission until that task is admitted, at the latest until " + mark.Until.UTC().Format("15:04:05") + " (UTC). Resume or stop it to take it over."
	case explain.StartsAfter:
		_, _, why.Text = startsAfter(v)
	case explain.NoQueue:
		why.Text = noQueueWords(v)
	case explain.QueueStopped:
		if why.Text = cmp.Or(d.HeldBy, why.Text); v.Detail != "" {
			why.Text = fmt.Sprintf("The stopPolicy of LocalQueue %s is set, not by this console. Running tasks continue, and no task of this LocalQueue starts until an admin sets it to None.", v.Detail)
		}
	case explain.BackingOff:
		why.Text = fmt.Sprintf("Its pods were not ready in time, or a check failed. It is requeued at %s (UTC).", d.About.RetryAt.UTC().Format("15:04:05"))
	case explain.PendingEvaluation, explain.Behind:
		switch {
		case v.Constraint == explain.Behind && v.Detail != "":
			why.Text += " Its queue is StrictFIFO: a task that does not fit blocks those behind it."
		case v.Constraint == explain.Behind:
			why.Text += " Kueue preempts other tasks for one before it, and tries those behind when they have ended."
		}
		if d.Position > 1 {
			why.Text += fmt.Sprintf(" It is %s in its queue.", format.Ordinal(d.Position))
		}
	case explain.Unknown:
		if message != "" {
			why.Text += fmt.Sprintf(" Kueue says %s: “%s”.", d.About.Reason, message)
		}
	case explain.Quota, explain.ExceedsMax, explain.Preempting:
		shortage(why, d, team)
	case explain.NoQueueName, explain.NoPriorityClass, explain.NotIntegrated, explain.NoWorkload:
		why.Title = "Why does Kueue not start it?"
		if len(v.PriorityClasses) > 0 && v.Constraint == explain.NoPriorityClass {
			why.Text = strings.TrimSuffix(why.Text, ".") + ": " + strings.Join(v.PriorityClasses, ", ") + "."
		}
	case explain.ResourceQuotaReached, explain.NoNodes, explain.TooSmall, explain.Fragmented, explain.NodesFull, explain.PodsTerminating, explain.Unschedulable:
		unscheduledPods(why, d)
	}
	if d.Growing() && why.Title == waits && v.Constraint != explain.ChecksPending {
		why.Title, why.ChangesTitle = "Why does it not get more pods?", "What would give it more pods"
		runs := fmt.Sprintf("It runs with %d of %s.", d.Size.Admitted, format.Pods(d.Size.Wanted))
		if d.IsServing() {
			why.Title, why.ChangesTitle = "Why do some replicas wait?", "What would start the next one"
			admitted, wanted := d.Replicas()
			runs = fmt.Sprintf("%s; %d wait. The next one is explained here.", format.Upper(replicaWords(d.Task)), wanted-admitted)
		}
		if d.Elastic() {
			runs += " Kueue counts the new size as a whole, and what it uses now as free."
		}
		why.Text = runs + " " + why.Text
	}
	if v.Fit != nil && d.State.Waiting() {
		why.Steps = append(why.Steps, views.WhyStep{Tone: "bad", Title: "Nodes", Text: "Even with quota it would not run: " + TooSmall(v.Fit)})
	}
	switch d.Agreement {
	case explain.Disagrees:
		why.Differs = fmt.Sprintf("Kueue itself says %s: “%s”. Its reason can be older than this verdict.", d.About.Reason, message)
	case explain.UnknownReason:
		why.Differs = fmt.Sprintf("Kueue itself says %s: “%s”. This console does not know that reason, so this verdict may be wrong.", d.About.Reason, message)
	}
	for _, f := range v.Flavors {
		if f.Mismatch != "" {
			why.Pools = append(why.Pools, taskviews.WhyPool{Name: f.Flavor, Reason: f.Mismatch})
		}
	}
	for _, change := range v.Changes {
		why.Changes = append(why.Changes, changeWords(change, d, team))
	}
	why.Checked = checkedWords(d)
	return why
}

// shortage explains which quota is missing, step by step: own quota, lower-priority
// tasks of the team, and borrowing.
func shortage(why *taskviews.Why, d queries.Detail, team string) {
	v, s := d.Verdict, d.Verdict.Shortage
	of := func(n resources.Amount) string { return quota.Amount(s.Resource, n) }
	switch v.Constraint {
	case explain.ExceedsMax:
		why.Text = fmt.Sprintf("It requests %s of %s at once. %s can have at most %s, including what it can borrow.", of(s.Needed), s.Flavor, format.Upper(team), of(s.PotentialAvailable))
	case explain.Preempting:
		why.Text = fmt.Sprintf("It requests %s of %s. Kueue preempts others for it, about one per second.", of(s.Needed), s.Flavor)
	default:
		why.Text = fmt.Sprintf("It requests %s of %s at once. Available to it now: %s.", of(s.Needed), s.Flavor, of(s.Available))
		if v.MayPreempt {
			why.Text += " " + mayPreempt
		}
		if v.RulesMayPreempt {
			why.Text += " " + rulesMayPreempt
		}
	}
	own := views.WhyStep{Tone: "bad", Title: "Own quota", Text: usedWords(s, of), Tasks: workloadLinks(s.InQueue, s.FlavorResource)}
	if text, more := strings.CutSuffix(own.Text, " by:"); more && len(own.Tasks) == 0 {
		own.Text = text + " by this task itself."
	}
	if s.Nominal == 0 {
		own.Text = fmt.Sprintf("%s has no quota in %s.", format.Upper(team), s.Flavor)
	}
	lower := views.WhyStep{Tone: "bad", Title: "Preempting lower-priority tasks of the team", Text: "The team has no lower-priority tasks here."}
	if s.LowerPriorityUsage > 0 {
		lower.Tone, lower.Text, lower.Tasks = "wait", fmt.Sprintf("Lower-priority tasks use %s:", of(s.LowerPriorityUsage)), workloadLinks(s.LowerPriority, s.FlavorResource)
	}
	borrow := views.WhyStep{Tone: "bad", Title: "Borrowing and reclaiming"}
	switch {
	case s.BorrowingLimit != nil && *s.BorrowingLimit == 0:
		borrow.Text = fmt.Sprintf("%s cannot borrow here.", format.Upper(team))
	default:
		borrow.Text = fmt.Sprintf("Idle in other teams: %s.", of(s.Borrowable))
		if s.Borrowable == 0 {
			borrow.Text = "There is no idle quota to borrow."
		}
		if s.BorrowingLimit != nil {
			borrow.Text += fmt.Sprintf(" The limit of %s is %s, and it has borrowed %s.", team, of(*s.BorrowingLimit), borrowed(s, of))
		}
	}
	switch {
	case s.Border != nil && v.Constraint == explain.ExceedsMax:
		borrow.Text += fmt.Sprintf(" %s may borrow at most %s from others, and this task needs %s.", format.Upper(s.Border.Cohort), of(s.Border.Left), of(s.Border.Needed))
	case s.Border != nil:
		borrow.Text += fmt.Sprintf(" %s may borrow %s more from others, and this task needs %s.", format.Upper(s.Border.Cohort), of(s.Border.Left), of(s.Border.Needed))
	case len(s.Withheld) > 0:
		borrow.Text += " Lending limits keep idle quota from it: " + withheldWords(s, of) + "."
	}
	if s.Reclaimable > 0 {
		borrow.Text += fmt.Sprintf(" Other teams borrow %s", of(s.Reclaimable))
		if s.Used < s.Nominal {
			borrow.Tone = "wait"
			borrow.Text += fmt.Sprintf(", which %s can reclaim up to its quota", team)
		}
		borrow.Text, borrow.Tasks = borrow.Text+":", borrowerLinks(s)
	}
	why.Steps = append(why.Steps, own, lower, borrow)
}

// withheldWords lists what lending limits keep, the first by name.
func withheldWords(s *explain.Shortage, of func(resources.Amount) string) string {
	var parts []string
	more := resources.Amount(0)
	for i, w := range s.Withheld {
		switch {
		case i >= shownWorkloads:
			more = more.Plus(w.Amount)
			continue
		case w.Queue != "" && w.Team != "":
			w.Cohort = "team " + w.Team
		case w.Queue != "":
			w.Cohort = "queue " + w.Queue
		}
		parts = append(parts, of(w.Amount)+" of "+cmp.Or(w.Cohort, "other teams"))
	}
	if more > 0 {
		parts = append(parts, of(more)+" of others")
	}
	return strings.Join(parts, ", ")
}

// mayPreempt is shown under fair sharing, whose shares are not calculated.
const mayPreempt = "It may preempt tasks of other teams that borrow more than their fair share."

// rulesMayPreempt is shown for a queue with a PreemptionConfig, whose rules are not
// evaluated.
const rulesMayPreempt = "A PreemptionConfig of its queue may preempt other tasks for it, which this console does not calculate."

// usedWords describes how much of a team's own quota its tasks use. Their names
// follow.
func usedWords(s *explain.Shortage, of func(resources.Amount) string) string {
	switch {
	case s.Used == 0:
		return of(s.Nominal) + ", all free."
	case s.Used < s.Nominal:
		return fmt.Sprintf("%s, of which %s used by:", of(s.Nominal), quota.Grouped(s.Resource, s.Used))
	case s.Used == s.Nominal:
		return of(s.Nominal) + ", all used by:"
	}
	return fmt.Sprintf("%s, all used, and %s borrowed by:", of(s.Nominal), of(s.Used.Minus(s.Nominal)))
}

func borrowed(s *explain.Shortage, of func(resources.Amount) string) string {
	if s.Used <= s.Nominal {
		return "none"
	}
	return of(s.Used.Minus(s.Nominal))
}

// workloadLinks links to the first tasks of a list, with their usage. The last item
// may be the sum of tasks that are hidden from the reader.
func workloadLinks(list []explain.AdmittedWorkload, fr quota.FlavorResource) []views.AdmittedTaskLink {
	return firstLinks(byTask(list, fr), func(h explain.AdmittedWorkload) bool { return h.Name == "" }, func(h explain.AdmittedWorkload) views.AdmittedTaskLink {
		link := views.AdmittedTaskLink{TaskLink: views.TaskLink{Name: h.Team}, Amount: quota.Amount(fr.Resource, h.Usage[fr])}
		if h.Name != "" {
			link.TaskLink = views.TaskLink{Name: h.Name, URL: urls.Task(&tasks.Task{Namespace: h.Namespace, Kind: h.Kind, Name: h.Name})}
		}
		return link
	})
}

// byTask returns the usage of fr by task: the replicas of one are in the list by
// themselves.
func byTask(list []explain.AdmittedWorkload, fr quota.FlavorResource) (found []explain.AdmittedWorkload) {
	for _, h := range list {
		i := slices.IndexFunc(found, func(f explain.AdmittedWorkload) bool { return f.UID == h.UID && f.Namespace == h.Namespace })
		if i < 0 || h.UID == "" { // a sum of hidden ones
			found = append(found, h)
			continue
		}
		found[i].Usage = quota.FlavorResourceQuantities{fr: found[i].Usage[fr].Plus(h.Usage[fr])}
	}
	return found
}

// borrowerLinks links to the first teams that use more than their quota.
func borrowerLinks(s *explain.Shortage) []views.AdmittedTaskLink {
	return firstLinks(s.Borrowers, func(b explain.Borrower) bool { return b.Queue == "" }, func(b explain.Borrower) views.AdmittedTaskLink {
		link := views.AdmittedTaskLink{TaskLink: views.TaskLink{Name: b.Team}, Amount: quota.Amount(s.Resource, b.Amount)}
		switch {
		case b.Queue != "" && b.Team != "":
			link.TaskLink = views.TaskLink{Name: "team " + b.Team, URL: urls.Team(b.Team)}
		case b.Queue != "":
			link.Name = "queue " + b.Queue
		}
		return link
	})
}

// firstLinks links to the first shownWorkloads items of a list, and counts the rest.
// The last item may be the sum of hidden ones.
func firstLinks[T any](list []T, hidden func(T) bool, link func(T) views.AdmittedTaskLink) (found []views.AdmittedTaskLink) {
	named := list
	if last := len(list) - 1; last >= 0 && hidden(list[last]) {
		named = list[:last]
	}
	for _, one := range slices.Concat(named[:min(shownWorkloads, len(named))], list[len(named):]) {
		found = append(found, link(one))
	}
	if more := len(named) - shownWorkloads; more > 0 {
		found = append(found, views.AdmittedTaskLink{TaskLink: views.TaskLink{Name: fmt.Sprintf("%d more", more)}})
	}
	return found
}
