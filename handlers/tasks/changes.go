package tasks

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance/kueue/simulate/live"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/submit"
	"kuota.dev/kuota/governance/tasks/actions"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	taskviews "kuota.dev/kuota/views/tasks"
)

// changeWords describes a change that would start a task, with what else it does.
func changeWords(c explain.Change, d queries.Detail, team string) views.WhyChange {
	fr := quota.FlavorResource{}
	if d.Verdict.Shortage != nil {
		fr = d.Verdict.Shortage.FlavorResource
	}
	change := views.WhyChange{Kind: string(c.Kind), Verified: c.Verified, Tied: c.Tied}
	var figures, plain []string
	for _, f := range c.Quotas {
		fr.Flavor = f.Flavor
		figures = append(figures, quota.Amount(f.Resource, f.To))
		plain = append(plain, fmt.Sprintf("%s/%s=%d", f.Flavor, f.Resource, f.To))
	}
	change.Figures = strings.Join(plain, " ")
	there := fmt.Sprintf("of %s for %s", fr.Flavor, team)
	if c.Verified && !c.Minimal {
		there += ", or less,"
	}
	if c.LendAndBorrow {
		there += " and changing its strategy to Lend and borrow"
	}
	switch c.Kind {
	case explain.FewerPods:
		change.Title, change.Text = fmt.Sprintf("Run it with %s", format.Pods(c.Pods)), fmt.Sprintf("instead of %d: starts now.", d.Size.Wanted)
		change.Figures = fmt.Sprintf("pods=%d", c.Pods)
	case explain.TasksEnd:
		change.Title, change.Tasks, change.After = "The end of", workloadLinks(c.Tasks, fr), "starts it."
	case explain.HigherPriorityClass:
		change.Title, change.Figures = "Changing the class to "+format.ClassName(c.PriorityClass), "class="+c.PriorityClass
		if desired.IsNumber(c.PriorityClass) {
			change.Title = "Changing the priority to " + format.ClassName(c.PriorityClass)
		}
		switch {
		case c.Verified:
			change.Text = "starts it."
		default:
			change.Text = "preempts other tasks."
		}
	case explain.RaiseBorrowingLimit:
		change.Title, change.Text = "Raising the borrowing limit "+ofShare(c)+"to "+strings.Join(figures, " · "), there+" starts it."
		if !c.Verified {
			change.Text = there + " starts it now, and preempts nothing."
		}
	case explain.RaiseNominalQuota:
		change.Title, change.Text = "Raising the quota "+ofShare(c)+"to "+strings.Join(figures, " · "), there+" starts it."
	}
	if !c.Verified && len(c.NeedsNodes) == 0 {
		change.After = strings.TrimSpace(change.After + " Not simulated.")
	}
	if len(c.NeedsNodes) > 0 {
		change.Text = strings.TrimSuffix(change.Text, ".") + ", once " + strings.Join(c.NeedsNodes, " and ") + " has nodes for its pods."
	}
	effect := func(kind, text string, list []explain.AdmittedWorkload) {
		if len(list) > 0 {
			change.Effects = append(change.Effects, views.WhyEffect{Kind: kind, Text: text, Tasks: UsageLinks(list)})
		}
	}
	effect("preempted", "Kueue preempts", c.Preempted)
	effect("started", "Also starts", c.Started)
	effect("missed", "Then does not start", c.Missed)
	if text := amounts(c.Borrowed); text != "" {
		change.Effects = append(change.Effects, views.WhyEffect{Kind: "borrowed", Text: fmt.Sprintf("%s then borrows %s.", format.Upper(team), text)})
	}
	return change
}

// ofShare names the share whose quota a change raises; empty for the team's.
func ofShare(c explain.Change) string {
	if c.Share == "" {
		return ""
	}
	return "of share " + c.Share + " "
}

// raisedInForm reports whether the form of the allocation can raise what a change raises. Of a
// share it has accelerators only.
func raisedInForm(c explain.Change) bool {
	return len(c.Quotas) > 0 && (c.Share == "" || c.Kind == explain.RaiseNominalQuota && !slices.ContainsFunc(c.Quotas, func(q explain.QuotaChange) bool {
		return !catalog.IsAccelerator(q.Resource) || catalog.IsPartition(q.Resource)
	}))
}

// UsageLinks links to tasks with the most important resource that each uses.
func UsageLinks(list []explain.AdmittedWorkload) (links []views.AdmittedTaskLink) {
	return firstLinks(list, func(a explain.AdmittedWorkload) bool { return a.Name == "" }, func(a explain.AdmittedWorkload) views.AdmittedTaskLink {
		link := workloadLinks([]explain.AdmittedWorkload{a}, quota.FlavorResource{})[0]
		link.Amount = amounts(a.Usage)
		return link
	})
}

// amounts returns a usage, without what follows from its accelerators.
func amounts(used quota.FlavorResourceQuantities) string {
	sum := quota.Resources{}
	for fr, amount := range used {
		if amount > 0 {
			sum[fr.Resource] = sum[fr.Resource].Plus(amount)
		}
	}
	var texts []string
	for _, name := range sum.Names() {
		if sum.Accelerators() == 0 || !catalog.FollowsAccelerators(name) {
			texts = append(texts, quota.Amount(name, sum[name]))
		}
	}
	return strings.Join(texts, " · ")
}

// checkedWords describes whether the changes of a task were simulated.
func checkedWords(d queries.Detail) taskviews.Checked {
	a := d.Advice
	if a == nil {
		return taskviews.Checked{}
	}
	c := taskviews.Checked{Note: strings.TrimSpace(a.VersionNote + " " + format.NotSimulated(a.Omitted))}
	if !a.At.IsZero() {
		c.At = a.At.UTC().Format(time.RFC3339)
	}
	switch {
	case a.Starts && !a.Tied:
		c.State, c.Text = "starts", "No change is needed: simulated with Kueue's scheduler, it starts"
		if len(a.Preempts) > 0 {
			c.Text += " once Kueue has preempted"
			c.Tasks = UsageLinks(a.Preempts)
		} else {
			c.Text += " now."
		}
	case a.Failed != nil:
		c.State, c.Text = "failed", FailedWords(a.Failed)
	case a.Computing:
		c.State, c.Text, c.At = "computing", "Checking with Kueue's scheduler …", ""
	case len(d.Verdict.Changes) == 0:
		c.State, c.Text = "verified", "No single change of its class, its size or its team's quota starts it on the nodes there are, simulated with Kueue's scheduler."
	case !slices.ContainsFunc(d.Verdict.Changes, func(c explain.Change) bool { return c.Verified }):
		c.State, c.Text = "verified", "Simulated with Kueue's scheduler. Its pods need nodes that do not exist yet."
	default:
		c.State, c.Text = "verified", "Verified with Kueue's scheduler."
	}
	if a.Starts && a.Tied {
		c.Text = "It may start without a change: a tie between tasks of the same second decides. " + c.Text
	}
	return c
}

// FailedWords returns a sentence about why something could not be simulated.
func FailedWords(err error) string {
	return "This could not be verified with Kueue's scheduler: " + live.Reason(err) + "."
}

// withActions sets what applies each change, as far as the reader may: see their
// buttons, and whether they may edit allocations.
func withActions(why *taskviews.Why, d queries.Detail, buttons *taskviews.TaskActions, mayEdit bool) {
	if why == nil {
		return
	}
	button := func(label string) *views.ActionButton {
		if buttons != nil {
			for _, b := range buttons.Buttons {
				if b.Label == label {
					return &b
				}
			}
		}
		return nil
	}
	class, again := button(actionNames[actions.Class]), button(actionNames[actions.Again])
	for i, change := range d.Verdict.Changes {
		c := &why.Changes[i]
		switch {
		case change.Kind == explain.HigherPriorityClass && class != nil:
			c.Action = class
		case change.Kind == explain.FewerPods && again != nil && d.Kind == string(submit.Job):
			c.Action = &views.ActionButton{Label: "Submit again with " + format.Pods(change.Pods), URL: again.URL + fmt.Sprintf("&pods=%d", change.Pods)}
		case raisedInForm(change) && mayEdit && d.Team != "":
			figures := map[string]resources.Amount{}
			for _, f := range change.Quotas {
				figures[f.Resource] = f.To
			}
			c.Action = &views.ActionButton{Label: "Edit allocation", URL: urls.Raise(d.Team, change.Share, string(change.Kind), change.Quotas[0].Flavor, figures)}
		}
	}
}
