package handlers

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/views"
)

// shownPods is how many pods of a task its page lists.
const shownPods = 50

// withoutWorkload says why Kueue knows nothing of a job.
func withoutWorkload(why *views.Why, d tasks.Detail) {
	v := d.Verdict
	why.Title, why.Tone = "Why does Kueue not start it?", "bad"
	switch v.Constraint {
	case explain.NoQueueName:
		why.Headline = "It names no queue."
		why.Text = "Kueue does not know it: no quota counts what its pods ask for, and none of the team's rules are for it. Delete it, and submit it again with the label kueue.x-k8s.io/queue-name."
	case explain.NoClass:
		why.Headline = fmt.Sprintf("There is no priority class %s.", v.Detail)
		why.Text = "Kueue makes no Workload of a job whose class does not exist, so that it never starts. Name another in the label kueue.x-k8s.io/priority-class."
		if len(v.Classes) > 0 {
			why.Text += " There are " + strings.Join(v.Classes, ", ") + "."
		}
	case explain.NotIntegrated:
		why.Headline = fmt.Sprintf("Kueue does not manage a %s here.", v.Detail)
		why.Text = "Its integration is off in Kueue's configuration (integrations.frameworks). Ask an admin to switch it on, or submit the work as another kind."
	default:
		why.Headline = "Kueue has made no Workload of it."
		why.Text = "That takes a moment after it was submitted. If it stays so, Kueue does not run, or did not when the job was made: ask an admin to look at the settings."
	}
}

// placed says why pods of a task that has its quota do not run.
func placed(why *views.Why, d tasks.Detail) {
	v := d.Verdict
	why.Title, why.Tone = "Why do its pods not run?", "bad"
	has := "It has its quota; the scheduler places its pods."
	if c := v.Ceiling; c != nil {
		why.Headline = "The ceiling of its namespace refuses its pods."
		why.Text = fmt.Sprintf("It has its quota. But ResourceQuota %s allows pods there %s, and they ask for %s already; one more asks for %s. An admin raises the team's quota or takes the ceiling off.",
			c.Name, quota.Amount(c.Resource, c.Hard), quota.Number(c.Resource, c.Used), quota.Number(c.Resource, c.Each))
		return
	}
	f := v.Fit
	if f == nil {
		why.Headline = "The scheduler finds no node for its pods."
		why.Text = has
		if v.Detail != "" {
			why.Text += " It says: " + v.Detail
		}
		return
	}
	of := func(n int64) string { return quota.Amount(f.Resource, n) }
	switch v.Constraint {
	case explain.NoNodes:
		why.Headline = "No node is ready for its pods."
		why.Text = fmt.Sprintf("%s In %s there is no node that they may go to.", has, f.Flavor)
		if f.Nodes > 0 {
			why.Text = fmt.Sprintf("%s In %s they may go to %s, of which none is ready and open.", has, f.Flavor, countOf(f.Nodes, "node"))
		}
	case explain.TooSmall:
		why.Headline = "No node is large enough for one of its pods."
		why.Text = tooSmall(f) + " It holds its quota in vain: stop it, and submit it with smaller pods."
	case explain.Fragmented:
		why.Headline = fmt.Sprintf("%s are free, but never more than %s on one node.", upper(of(f.FreeSum)), quota.Number(f.Resource, f.FreeMost))
		why.Text = fmt.Sprintf("%s One pod asks for %s on one node of %s. It starts when what runs beside on a node ends; smaller pods would fit now.", has, of(f.Each[f.Resource]), f.Flavor)
	default:
		why.Headline = "The nodes are full."
		why.Text = fmt.Sprintf("%s One pod asks for %s; on the %s of %s, %s is free at most. What holds them may be pods outside Kueue.", has, of(f.Each[f.Resource]), countOf(f.Ready, "ready node"), f.Flavor, of(f.FreeMost))
		if f.Resource == "" {
			why.Text = fmt.Sprintf("%s No node of %s has room for all that one pod asks for.", has, f.Flavor)
		}
	}
	if v.Detail != "" {
		why.Text += " The scheduler says: " + v.Detail
	}
}

func tooSmall(f *explain.Fit) string {
	return fmt.Sprintf("One pod asks for %s, and the largest node of %s has %s.", quota.Amount(f.Resource, f.Each[f.Resource]), f.Flavor, quota.Number(f.Resource, f.Largest))
}

// pods are the pods of a task, those that wait first.
func pods(d tasks.Detail) *views.Pods {
	if len(d.Pods) == 0 {
		return nil
	}
	p := &views.Pods{Note: countOf(len(d.Pods), "pod")}
	var parts []string
	say := func(n int, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	say(d.PodCount.Unplaced, "without a node")
	say(d.PodCount.Gated, "held back")
	say(d.PodCount.Ended, "ended")
	if len(parts) > 0 {
		p.Note += ": " + strings.Join(parts, ", ")
	}
	list := slices.Clone(d.Pods)
	slices.SortStableFunc(list, func(a, b *tasks.Pod) int { return podRank(a) - podRank(b) })
	for i, pod := range list {
		if i == shownPods {
			p.More = len(list) - i
			break
		}
		p.Rows = append(p.Rows, podRow(pod))
	}
	return p
}

func podRank(p *tasks.Pod) int {
	switch {
	case p.Unplaced():
		return 0
	case p.Trouble != "":
		return 1
	}
	return 2
}

func podRow(p *tasks.Pod) views.PodRow {
	row := views.PodRow{ID: "pod-" + string(p.UID), Name: p.Name, Node: orDash(p.Node), Trouble: p.Trouble, Asks: orDash(amounts(withoutNetwork(p.Requests)))}
	if !p.Since.IsZero() {
		row.Since = p.Since.UTC().Format(time.RFC3339)
	}
	row.Status = views.Status{Tone: "idle", Label: string(p.Phase)}
	switch {
	case p.DeletionTimestamp != nil:
		row.Status.Label = "Ending"
	case p.Gated && p.Node == "":
		row.Status = views.Status{Tone: "wait", Label: "Held back"}
	case p.Unplaced() && p.Trouble != "":
		row.Status = views.Status{Tone: "bad", Label: "No node"}
	case p.Unplaced():
		row.Status = views.Status{Tone: "wait", Label: "Waits for a node"}
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

// withoutNetwork leaves out what follows from the rest.
func withoutNetwork(r quota.Resources) quota.Resources {
	few := quota.Resources{}
	for name, amount := range r {
		if name != catalog.Network {
			few[name] = amount
		}
	}
	return few
}
