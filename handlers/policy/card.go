package policy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/gitops"
	"kuota.dev/kuota/governance/policy"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/record/revisions"
	"kuota.dev/kuota/governance/spec/describe"
	"kuota.dev/kuota/governance/spec/manifest"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/handlers/versions"
	"kuota.dev/kuota/views"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Card returns the card of the cluster policy.
func (h *Pages) Card(ctx context.Context, user governance.User) (*views.PolicyCard, error) {
	state, err := h.Policy.State(ctx, user)
	if err != nil {
		return nil, err
	}
	card := &views.PolicyCard{MayEdit: state.MayEdit && h.ReadOnlyReason() == "", EditURL: urls.EditPolicy}
	p := state.Policy
	if p == nil {
		return card, nil
	}
	card.Exists = true
	if card.History, err = h.Versions.Card(ctx, user, revisions.PolicyOwner(), versions.ShownPolicyVersions, urls.PolicyVersions); err != nil {
		return nil, err
	}
	card.History.ActivityURL = urls.ActivityOf(string(p.UID))
	card.YAML, card.YAMLURL = manifest.PolicyYAML(p), urls.PolicyYAML
	if m, managed := gitops.ManagerOf(p); managed {
		card.Managed = m.Message("The cluster policy")
	}
	admin := state.MayEdit
	card.Status = policyStatus(p, v1alpha1.ConditionReady, admin)
	card.Progress = rankingProgress(p.Status.Ranking)
	if p.Status.Kueue != nil && admin {
		card.Patch = p.Status.Kueue.Patch
		if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionFairShare); c != nil && card.Patch != "" {
			card.PatchReason = format.Sentence(c.Message)
			if c.Reason == "Reverted" && card.MayEdit {
				card.TryAgainURL, card.User = urls.TryPolicyAgain, user.Name
			}
		}
	}
	spec := &p.Spec
	card.Parts = []views.PolicyPart{
		rankingLine(p, admin),
		{
			ID: "idle", Label: "Idle compute", Value: describe.IdleCompute(spec.IdleCompute.Strategy),
			Text: idleText(spec.IdleCompute), Status: policyStatus(p, v1alpha1.ConditionFairShare, admin),
		},
		{
			ID: "unallocated", Label: "Unallocated compute", Value: "Not lent",
			Text: "Compute that is not allocated to any team stays idle.", Status: policyStatus(p, v1alpha1.ConditionShareUnallocated, admin),
		},
		gangLine(p, admin),
		usageLine(p, admin),
		{
			ID: "preemption-loops", Label: "Preemption loops", Value: describe.PreemptionLoops(spec.PreemptionLoops), Text: loopText(spec.PreemptionLoops),
		},
		{
			ID: "enforcement", Label: "Enforcement", Value: describe.Enforcement(spec.Enforcement),
			Text: enforcementText(spec, state.NoMutation), Status: policyStatus(p, v1alpha1.ConditionEnforcement, admin),
		},
		poolsLine(state),
		pricesLine(spec.Prices),
		alertsLine(spec.Alerts),
	}
	for i, path := range []string{urls.EditPools, urls.EditPrices, urls.EditAlerts} {
		if card.MayEdit && card.Managed == "" {
			card.Parts[len(card.Parts)-3+i].EditURL = path
		}
	}
	if spec.IdleCompute.ShareUnallocated {
		card.Parts[2].Value, card.Parts[2].Text = "Lent", "Teams can borrow compute that is not allocated to any team, limited to ready nodes."
	}
	return card, nil
}

// policyStatus maps a condition to a label and a sentence. Only admins get the
// sentence, since it may name teams.
func policyStatus(p *v1alpha1.ClusterPolicy, kind string, admin bool) views.Status {
	condition := meta.FindStatusCondition(p.Status.Conditions, kind)
	switch {
	case p.DeletionTimestamp != nil:
		return views.Status{Tone: "wait", Label: "Deleting"}
	case condition == nil || condition.ObservedGeneration != p.Generation:
		return views.Status{Tone: "wait", Label: "Applying"}
	case condition.Status == metav1.ConditionTrue:
		return views.Status{Tone: "ok", Label: "Active"}
	case condition.Status == metav1.ConditionUnknown:
		return views.Status{Tone: "wait", Label: "Applying", Text: conditionText(condition.Message)}
	}
	status := views.Status{Tone: "bad", Label: "Not active", Text: conditionText(condition.Message)}
	if !admin {
		status.Text = "Cluster admins see the reason."
	}
	return status
}

// rankingProgress returns the progress of a change of the ranking; nil for none.
func rankingProgress(r *v1alpha1.Ranking) *views.PolicyProgress {
	switch {
	case r == nil || r.Step == v1alpha1.RankingSettled || r.Step == "":
		return nil
	case r.Step == v1alpha1.RankingPausing:
		return &views.PolicyProgress{Text: "Re-ranking: switching off preemption by priority in every queue before tasks get their new priority"}
	case r.Tasks <= 0:
		return &views.PolicyProgress{Text: "Re-ranking: priority classes have their new values; preemption by priority is off until tasks have them too"}
	}
	done := max(0, r.Tasks-r.Remaining)
	return &views.PolicyProgress{
		Text:  fmt.Sprintf("Re-ranking: %s of %s have their new priority; preemption by priority is off until all do", format.Thousands(int64(done)), format.Tasks(int(r.Tasks))),
		Done:  int(done),
		Tasks: int(r.Tasks),
	}
}

func rankingLine(p *v1alpha1.ClusterPolicy, admin bool) views.PolicyPart {
	part := views.PolicyPart{
		ID: "prioritization", Label: "Task prioritization", Value: describe.Prioritization(p.Spec.TaskPrioritization),
		Status: policyStatus(p, v1alpha1.ConditionPriorityClasses, admin),
	}
	if r := p.Status.Ranking; r != nil && r.Step != v1alpha1.RankingSettled && r.Step != "" && p.DeletionTimestamp == nil {
		part.Status = views.Status{Tone: "wait", Label: "Re-ranking", Text: part.Status.Text}
	}
	classes := slices.Clone(p.Spec.PriorityClasses)
	slices.SortStableFunc(classes, func(a, b v1alpha1.PriorityClass) int {
		return cmp.Compare(ptr.Deref(b.Weight, 0), ptr.Deref(a.Weight, 0))
	})
	for _, class := range classes {
		part.Classes = append(part.Classes, views.ClassLine{Name: class.Name, Object: desired.PriorityClassName(class.Name), Weight: wholeText(class.Weight), Description: class.Description, Limits: describe.TimeLimits(class)})
	}
	switch ranking := p.Spec.TaskPrioritization == v1alpha1.TaskRanking; {
	case ranking && len(classes) == 0 && !p.Spec.NumericPriorities:
		part.Text = "There are no priority classes, so all tasks have the same priority."
	case ranking:
		part.Text = "The highest weight starts first. A task sets its class with the label " + desired.PriorityClassLabel + "; without it, its weight is 0."
	case len(classes) > 0:
		part.Text = "Waiting tasks start in the order of submission. Priority classes are kept, and their weights have no effect."
	default:
		part.Text = "Waiting tasks start in the order of submission."
	}
	if p.Spec.NumericPriorities {
		part.Text += " Tasks can also name a number from 0 to 99 by " + desired.PriorityLabel + "."
	}
	return part
}

func loopText(loops v1alpha1.PreemptionLoops) string {
	if loops == v1alpha1.WarnOfLoops {
		return "Kuota reports a task that Kueue preempts again and again for one that it does not admit, and changes nothing."
	}
	return "Kuota holds a task that Kueue preempts again and again until the task that it is preempted for is admitted."
}

func enforcementText(spec *v1alpha1.ClusterPolicySpec, noMutation bool) string {
	limited := slices.ContainsFunc(spec.PriorityClasses, func(c v1alpha1.PriorityClass) bool { return describe.TimeLimits(c) != "" })
	if spec.Enforcement == v1alpha1.EnforcementNone {
		text := "Jobs without a queue are admitted, and no quota limits them."
		if limited {
			text += " Time limits of classes have no effect."
		}
		return text
	}
	text := "Team namespaces reject jobs without a queue, with an unknown priority class, or of a kind that Kueue does not manage."
	if limited && noMutation {
		text += " Time limits are only checked: this API server cannot set their defaults, so only the submit page does."
	}
	return text
}

func idleText(idle v1alpha1.IdleCompute) string {
	if idle.Strategy == v1alpha1.IdleFairShare {
		return "Teams borrow idle compute by their fair-share weights."
	}
	return "Teams borrow idle compute first come, first served, up to their borrow limit."
}

// gangLine describes gang scheduling.
func gangLine(p *v1alpha1.ClusterPolicy, admin bool) views.PolicyPart {
	gang := p.Spec.GangScheduling
	part := views.PolicyPart{ID: "gang", Label: "Gang scheduling", Value: "Off", Status: policyStatus(p, v1alpha1.ConditionGangScheduling, admin)}
	if !gang.Enabled {
		part.Text = "Pods of a task start one by one as capacity allows."
		return part
	}
	part.Value = "On"
	sentences := []string{"All pods ready within " + format.OrDash(describe.Duration(gang.Timeout)) + ", or the task is requeued."}
	if recovery := describe.Duration(gang.RecoveryTimeout); recovery == "0s" {
		sentences = append(sentences, "A running task can miss a pod without limit.")
	} else {
		sentences = append(sentences, "A running task can miss a pod for "+format.OrDash(recovery)+".")
	}
	if gang.BlockAdmission {
		sentences = append(sentences, "One task starts at a time.")
	}
	tries := "without limit"
	if limit := gang.Requeuing.BackoffLimitCount; limit != nil {
		tries = "at most " + format.Count(int(*limit), "time")
	}
	sentences = append(sentences, fmt.Sprintf("Requeued %s, %s, with backoff from %s to %s s.", tries, strings.ToLower(describe.RequeuingOrder(gang.Requeuing.Timestamp)),
		format.OrDash(wholeText(gang.Requeuing.BackoffBaseSeconds)), format.OrDash(wholeText(gang.Requeuing.BackoffMaxSeconds))))
	part.Text = strings.Join(sentences, " ")
	return part
}

// usageLine describes how the usage of shares is counted.
func usageLine(p *v1alpha1.ClusterPolicy, admin bool) views.PolicyPart {
	part := views.PolicyPart{ID: "usage", Label: "Shares inside a team", Value: "Not set", Text: "Kuota leaves this part of Kueue's configuration as it is."}
	if usage := p.Spec.AdmissionFairSharing; usage != nil {
		part.Value, part.Text = "By usage", format.Capitalize(describe.Usage(usage))+"."
		part.Status = policyStatus(p, v1alpha1.ConditionFairShare, admin)
	}
	return part
}

func pricesLine(p *v1alpha1.Prices) views.PolicyPart {
	part := views.PolicyPart{ID: "prices", Label: "Prices", Value: "None", Text: "The usage report has hours without cost."}
	if p != nil {
		part.Value, part.Text = format.Count(len(p.Hourly), "price"), "The usage report has costs in "+p.Currency+"."
	}
	return part
}

// poolsLine lists the pools of the policy in the order in which they match.
func poolsLine(state policy.State) views.PolicyPart {
	p := state.Policy
	part := views.PolicyPart{ID: "pools", Label: "Pools", Value: "By instance type", Text: "Each instance type is a pool." + listedWords(p.Spec.Resources)}
	if len(p.Spec.Pools) == 0 && len(p.Status.Pools) == 0 {
		return part
	}
	part.Status = policyStatus(p, v1alpha1.ConditionPools, state.MayEdit)
	part.Value = format.Count(len(p.Spec.Pools), "pool")
	part.Text = "A node belongs to the first pool that matches it, else to the pool of its instance type." + listedWords(p.Spec.Resources)
	nodes := map[string]int64{}
	for _, pool := range state.Types.Pools() {
		nodes[pool.Name] = pool.Nodes
	}
	for _, pool := range p.Spec.Pools {
		line := views.PoolLine{Name: pool.Name, Match: format.Capitalize(describe.PoolMatch(pool.Match))}
		if n, known := nodes[pool.Name]; known {
			line.Nodes = nodesOrNone(n)
		}
		part.Pools = append(part.Pools, line)
	}
	return part
}

// listedWords names the listed resources; empty for none.
func listedWords(listed []v1alpha1.ListedResource) string {
	var labels []string
	for _, r := range listed {
		labels = append(labels, r.Label)
	}
	if len(labels) == 0 {
		return ""
	}
	return " Quota can also be of " + strings.Join(labels, ", ") + "."
}

func alertsLine(a *v1alpha1.Alerts) views.PolicyPart {
	part := views.PolicyPart{ID: "alerts", Label: "Alerts", Value: "No receivers", Text: "Alerts are shown on their page and in the header."}
	if a == nil {
		return part
	}
	if n := len(a.Receivers); n > 0 {
		part.Value, part.Text = format.Count(n, "receiver"), "Alerts are sent to them."
	}
	if n := len(a.Rules); n > 0 {
		part.Text += " " + format.Count(n, "default") + " of the rules changed."
	}
	return part
}
