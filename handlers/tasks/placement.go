package tasks

import (
	"fmt"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/views"
	taskviews "kuota.dev/kuota/views/tasks"
)

// shownPods is how many pods the page of a task lists.
const shownPods = 50

// unscheduledPods explains why pods of an admitted task do not run.
func unscheduledPods(why *taskviews.Why, d queries.Detail) {
	v := d.Verdict
	why.Title = "Why are its pods without a node?"
	has := "It has its quota, and waits for the scheduler."
	if c := v.ResourceQuota; c != nil {
		why.Title = "Why are its pods not created?"
		why.Text = fmt.Sprintf("It has its quota. But ResourceQuota %s allows pods %s, of which they request %s already, and one more pod requests %s. An admin can raise the team's quota or remove the ceiling.",
			c.Name, quota.Amount(c.Resource, c.Hard), quota.Grouped(c.Resource, c.Used), quota.Grouped(c.Resource, c.Requests))
		return
	}
	if v.Constraint == explain.PodsTerminating {
		why.Text = fmt.Sprintf("Admitted: quota is reserved. %s for nodes until pods of %s have ended (at most %s).",
			waitWords(v.Unscheduled), endingTasks(v.Terminating, d), format.Duration(v.EndWithin))
		return
	}
	f := v.Fit
	if f == nil {
		why.Text = has
		if v.Detail != "" {
			why.Text += " It says: " + v.Detail
		}
		return
	}
	of := func(n resources.Amount) string { return quota.Amount(f.Resource, n) }
	switch v.Constraint {
	case explain.NoNodes:
		why.Text = fmt.Sprintf("%s No node of %s matches its pods.", has, f.Flavor)
		if f.Nodes > 0 {
			why.Text = fmt.Sprintf("%s In %s its pods match %s, none of them ready and schedulable.", has, f.Flavor, format.Count(f.Nodes, "node"))
		}
	case explain.TooSmall:
		why.Text = TooSmall(f) + " Stop it, and submit it with smaller pods."
	case explain.Fragmented:
		why.Text = fmt.Sprintf("%s One pod requests %s on one node of %s. It starts when other pods on a node end; smaller pods would fit now.", has, of(f.Requests[f.Resource]), f.Flavor)
	default:
		why.Text = fmt.Sprintf("%s One pod requests %s, and no node of %s has more than %s free. Pods outside Kueue may use the rest.", has, of(f.Requests[f.Resource]), f.Flavor, of(f.LargestFree))
		switch {
		case f.Resource == "":
			why.Text = fmt.Sprintf("%s No node of %s has room for one more of its pods.", has, f.Flavor)
		case f.LargestFree <= 0:
			why.Text = fmt.Sprintf("%s One pod requests %s, and no node of %s has a free %s. Pods outside Kueue may use some.", has, of(f.Requests[f.Resource]), f.Flavor, quota.Unit(f.Resource, 1))
		}
	}
	if v.Detail != "" {
		why.Text += " The scheduler says: " + v.Detail
	}
}

func waitWords(pods int64) string {
	if pods == 1 {
		return "1 pod waits"
	}
	return format.Pods(pods) + " wait"
}

// shownTasks is how many tasks endingTasks names.
const shownTasks = 3

// endingTasks names the tasks that pods belong to.
func endingTasks(pods []explain.TerminatingPod, d queries.Detail) string {
	var names []string
	for _, p := range pods {
		name := p.Name
		switch {
		case name == "": // hidden, or deleted
			name = "another task"
		case p.Namespace == d.Namespace && p.UID == d.UID:
			name = "its last run"
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) > shownTasks {
		names = append(names[:shownTasks-1], "other tasks")
	}
	if last := len(names) - 1; last > 0 {
		return strings.Join(names[:last], ", ") + " and " + names[last]
	}
	return names[0]
}

func TooSmall(f *explain.Fit) string {
	return fmt.Sprintf("One pod requests %s, and the largest node of %s has %s.", quota.Amount(f.Resource, f.Requests[f.Resource]), f.Flavor, quota.Grouped(f.Resource, f.Largest))
}

// pods lists the pods of a task, waiting pods first. again is the button that submits the task
// again; nil for none.
func pods(d queries.Detail, again *views.ActionButton) *taskviews.Pods {
	if len(d.Pods) == 0 {
		return nil
	}
	p := &taskviews.Pods{Note: format.Count(len(d.Pods), "pod")}
	var parts []string
	say := func(n int, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	say(d.PodCount.Unscheduled, "without a node")
	say(d.PodCount.Gated, "gated")
	say(d.PodCount.Ended, "ended")
	if len(parts) > 0 {
		p.Note += ": " + strings.Join(parts, ", ")
	}
	list := slices.Clone(d.Pods)
	slices.SortStableFunc(list, func(a, b *index.Pod) int { return podRank(a) - podRank(b) })
	for i, pod := range list {
		if i == shownPods {
			p.More = len(list) - i
			break
		}
		row := podRow(pod)
		if again != nil && d.Completed.Array && pod.Index != nil && pod.Phase == "Failed" {
			row.AgainURL = fmt.Sprintf("%s&index=%d", again.URL, *pod.Index)
		}
		p.Rows = append(p.Rows, row)
	}
	return p
}

func podRank(p *index.Pod) int {
	switch {
	case p.Unscheduled():
		return 0
	case p.Trouble != nil:
		return 1
	}
	return 2
}

func podRow(p *index.Pod) taskviews.PodRow {
	row := taskviews.PodRow{ID: "pod-" + string(p.UID), Name: p.Name, Node: format.OrDash(p.Node), Trouble: p.Problem, Restarts: p.Restarts(), Requests: format.OrDash(format.Amounts(p.Requests))}
	since := p.Since
	if p.Problem == "" && p.Trouble != nil {
		row.Trouble, since = p.Trouble.Words(), p.Trouble.Terminated.At
	}
	row.Since = format.Time(since)
	if p.Index != nil {
		row.Index = fmt.Sprintf("Index %d", *p.Index)
	}
	row.Status = views.Status{Tone: "idle", Label: string(p.Phase)}
	switch {
	case p.DeletionTimestamp != nil:
		row.Status.Label = "Terminating"
	case p.Gated && p.Node == "":
		row.Status = views.Status{Tone: "wait", Label: "Gated"}
	case p.Provision && p.Node == "":
		row.Status = views.Status{Tone: "wait", Label: "Asks for a node"}
	case p.Unscheduled() && p.Problem != "":
		row.Status = views.Status{Tone: "bad", Label: "No node"}
	case p.Unscheduled():
		row.Status = views.Status{Tone: "wait", Label: "Waiting for a node"}
	case p.Phase == "Running" && p.Ready:
		row.Status.Tone = "ok"
	case p.Phase == "Running":
		row.Status = views.Status{Tone: "wait", Label: "Running, not ready"}
	case p.Phase == "Pending":
		row.Status = views.Status{Tone: "wait", Label: "Starting"}
	case p.Phase == "Failed":
		row.Status.Tone = "bad"
	}
	return row
}
