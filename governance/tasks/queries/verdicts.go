package queries

import (
	"context"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/kueue/enforcement"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/index"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// explainInput converts t to the input of package explain.
func explainInput(t *tasks.Task) explain.Task {
	w := t.Main
	q := explain.Task{
		Namespace: t.Namespace, Priority: t.Priority, RetryAt: t.RetryAt, NoWorkload: t.NoWorkload,
		Deactivated: t.State == tasks.Stopped, TimedOut: t.TimedOut(), LoopHeld: tasks.HeldByLoopGuard(w), Gated: w.Annotations[tasks.AdmissionGatedByAnnotation], QuotaReserved: w.Status.Admission != nil, Reason: t.Reason,
	}
	q.PodSets = podSets(w)
	for i := range w.Status.AdmissionChecks {
		if check := &w.Status.AdmissionChecks[i]; check.State != kueue.CheckStateReady {
			q.PendingChecks = append(q.PendingChecks, strings.TrimSuffix(string(check.Name)+": "+string(check.State)+", "+tasks.FirstLine(check.Message), ", "))
		}
	}
	return q
}

// podSets converts those of a Workload.
func podSets(w *kueue.Workload) (sets []explain.PodSet) {
	for i := range w.Spec.PodSets {
		set := &w.Spec.PodSets[i]
		s := explain.PodSet{Name: string(set.Name), Count: set.Count, MinCount: ptr.Deref(set.MinCount, set.Count), Requests: tasks.PodRequests(&set.Template.Spec), Spec: &set.Template.Spec}
		s.CountedRequests = counted(w, set, s.Requests)
		sets = append(sets, s)
	}
	return sets
}

// counted returns the requests that Kueue counts of one pod, if the Workload has
// them: Kueue excludes or replaces resources as configured.
func counted(w *kueue.Workload, set *kueue.PodSet, each quota.Resources) quota.Resources {
	for i := range w.Status.ResourceRequests {
		said := &w.Status.ResourceRequests[i]
		if said.Name != set.Name || set.Count == 0 || len(said.Resources) == 0 {
			continue
		}
		counts := quota.Resources{}
		for name, amount := range said.Resources { // of all its pods
			own, asked := each[string(name)]
			if count := resources.Amount(set.Count); !asked {
				own = (resources.AmountFromQuantity(string(name), amount).Plus(count).Minus(1)) / count
			}
			counts[string(name)] = own
		}
		return counts
	}
	return nil
}

// why explains why a task does not start, or not with all its pods, with the names
// that the viewer may see. nil if there is nothing to explain.
func (v viewer) why(ctx context.Context, t *tasks.Task, pods []*index.Pod, count index.PodCount) (*explain.Verdict, error) {
	s := newSurvey(v)
	q, c, err := s.input(ctx, t, pods, count)
	if q == nil || err != nil {
		return nil, err
	}
	if err := s.setPriorityClasses(ctx, t, c); err != nil {
		return nil, err
	}
	return v.explain(*q, c), nil
}

// explain returns the verdict of a task with the names that the viewer may see.
func (v viewer) explain(q explain.Task, c *explain.Cluster) *explain.Verdict {
	verdict := explain.Why(q, c)
	verdict.Detail = v.names.redact(verdict.Detail)
	for _, list := range verdict.AdmittedWorkloads() {
		*list = v.visibleWorkloads(*list)
	}
	for _, list := range verdict.Borrowers() {
		*list = v.visibleBorrowers(*list)
	}
	for _, list := range verdict.Withheld() {
		*list = v.visibleWithheld(*list)
	}
	for i := range verdict.Terminating {
		if p := &verdict.Terminating[i]; !v.scope.Includes(p.Namespace) {
			p.Node, p.Namespace, p.Kind, p.Name, p.UID = "", "", "", "", ""
		}
	}
	return &verdict
}

// visibleWorkloads returns the workloads that the viewer may see. All others are
// one sum at the end, so that their number is hidden too.
func (v viewer) visibleWorkloads(list []explain.AdmittedWorkload) []explain.AdmittedWorkload {
	var known []explain.AdmittedWorkload
	others := explain.AdmittedWorkload{Team: anotherTeam}
	for _, h := range list {
		if v.seesNamespace(h.Namespace) {
			h.Team = v.team(tasks.Place{Namespace: h.Namespace, ClusterQueue: h.Queue})
			known = append(known, h)
			continue
		}
		if others.Usage == nil {
			others.Usage = quota.FlavorResourceQuantities{}
		}
		others.Usage.Add(h.Usage)
	}
	if others.Usage != nil {
		known = append(known, others)
	}
	return known
}

// visibleBorrowers is the same for queues.
func (v viewer) visibleBorrowers(list []explain.Borrower) []explain.Borrower {
	if v.names == nil {
		return list
	}
	var known []explain.Borrower
	others := explain.Borrower{Team: anotherTeam}
	for _, b := range list {
		if v.names.own[b.Queue] {
			known = append(known, b)
		} else {
			others.Amount = others.Amount.Plus(b.Amount)
		}
	}
	if others.Amount > 0 {
		known = append(known, others)
	}
	return known
}

// visibleWithheld is the same for what lending limits keep.
func (v viewer) visibleWithheld(list []explain.Withheld) []explain.Withheld {
	if v.names == nil {
		return list
	}
	var known []explain.Withheld
	others := explain.Withheld{Team: anotherTeam}
	for _, w := range list {
		if v.names.own[w.Queue] {
			known = append(known, w)
		} else {
			others.Amount = others.Amount.Plus(w.Amount)
		}
	}
	if others.Amount > 0 {
		known = append(known, others)
	}
	return known
}

// without reads why a job has no Workload.
func (v viewer) explainMissingWorkload(ctx context.Context, t *tasks.Task, c *explain.Cluster) error {
	if t.PriorityClass != "" {
		var class kueue.WorkloadPriorityClass
		switch err := v.reader.Get(ctx, client.ObjectKey{Name: t.PriorityClass}, &class); {
		case client.IgnoreNotFound(err) != nil:
			return cluster.Translate("read priority class", err)
		case err != nil:
			c.MissingClass = t.PriorityClass
			var all kueue.WorkloadPriorityClassList
			if err := cluster.List(ctx, v.reader, &all); err != nil {
				return err
			}
			for i := range all.Items {
				if name := all.Items[i].Name; name != desired.GrowthClass && !desired.IsNumber(name) {
					c.ClassNames = append(c.ClassNames, name)
				}
			}
			slices.Sort(c.ClassNames)
		}
	}
	policy, err := clusterstate.Policy(ctx, v.reader)
	if err == nil && policy != nil && policy.Status.Kueue != nil && len(policy.Status.Kueue.Integrations) > 0 && !slices.Contains(policy.Status.Kueue.Integrations, integrationOf(t.Kind)) {
		c.NotIntegrated = t.Kind
	}
	return err
}

// integrationOf returns Kueue's name of the integration of a kind.
func integrationOf(kind string) string {
	if kind == v1alpha1.ElasticJobKind { // it consists of Jobs
		kind = "Job"
	}
	for _, k := range enforcement.JobKinds() {
		if k.Kind == kind {
			return k.Framework
		}
	}
	return "pod"
}

func isStopped(policy *kueue.StopPolicy) bool { return policy != nil && *policy != kueue.None }

// cohortMember returns what other queues of the tree need of a queue: its quota.
// There may be a thousand.
func (v viewer) cohortMember(q *kueue.ClusterQueue) *explain.Queue {
	return &explain.Queue{Name: q.Name, Team: v.teams.OfClusterQueue(q.Name), Share: q.Labels[desired.LabelShare], Cohort: string(q.Spec.CohortName), Weight: weightOf(q.Spec.FairSharing), Limits: limits(q.Spec.ResourceGroups)}
}

// limits returns the quota of resource groups.
func limits(groups []kueue.ResourceGroup) map[quota.FlavorResource]explain.Limit {
	all := map[quota.FlavorResource]explain.Limit{}
	for fr, r := range quota.ResourceQuotas(groups) {
		limit := explain.Limit{Nominal: resources.AmountFromQuantity(fr.Resource, r.NominalQuota)}
		if r.BorrowingLimit != nil {
			amount := resources.AmountFromQuantity(fr.Resource, *r.BorrowingLimit)
			limit.BorrowingLimit = &amount
		}
		if r.LendingLimit != nil {
			amount := resources.AmountFromQuantity(fr.Resource, *r.LendingLimit)
			limit.LendingLimit = &amount
		}
		all[fr] = limit
	}
	return all
}

// clusterQueue returns the queue of a task that is explained.
func (v viewer) clusterQueue(q *kueue.ClusterQueue) *explain.Queue {
	e := v.cohortMember(q)
	e.Stopped, e.StrictFIFO, e.NeverWithinClusterQueue = isStopped(q.Spec.StopPolicy), q.Spec.QueueingStrategy == kueue.StrictFIFO, true
	if p := q.Spec.Preemption; p != nil {
		e.NeverWithinClusterQueue = p.WithinClusterQueue == "" || p.WithinClusterQueue == kueue.PreemptionPolicyNever
		e.ReclaimWithinCohort = p.ReclaimWithinCohort
		if b := p.BorrowWithinCohort; b != nil {
			e.BorrowWithinCohort, e.MaxPriorityThreshold = b.Policy == kueue.BorrowWithinCohortPolicyLowerPriority, b.MaxPriorityThreshold
		}
	}
	e.PreemptionRules = q.Annotations[tasks.PreemptionConfigAnnotation] != ""
	if active := meta.FindStatusCondition(q.Status.Conditions, kueue.ClusterQueueActive); active != nil && active.Status == metav1.ConditionFalse {
		e.Inactive = tasks.FirstLine(active.Message)
	}
	for i := range q.Spec.ResourceGroups {
		group := &q.Spec.ResourceGroups[i]
		var g explain.ResourceGroup
		for _, name := range group.CoveredResources {
			e.Resources, g.Resources = append(e.Resources, string(name)), append(g.Resources, string(name))
		}
		for j := range group.Flavors {
			name := string(group.Flavors[j].Name)
			e.Flavors, g.Flavors = append(e.Flavors, name), append(g.Flavors, name)
		}
		e.Groups = append(e.Groups, g)
	}
	return e
}

// excludes reports whether the selector of a queue does not select a namespace.
func (s *survey) excludes(ctx context.Context, q *kueue.ClusterQueue, namespace string) (bool, error) {
	if q.Spec.NamespaceSelector == nil {
		return true, nil // as in Kueue
	}
	selector, err := metav1.LabelSelectorAsSelector(q.Spec.NamespaceSelector)
	if err != nil || selector.Empty() {
		return false, nil //nolint:nilerr // Kueue marks a queue with an invalid selector as inactive
	}
	var o corev1.Namespace
	if err := s.reader.Get(ctx, client.ObjectKey{Name: namespace}, &o); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return !selector.Matches(labels.Set(o.Labels)), nil
}

// explainGrowth explains why a task that runs does not get its pending increment.
func (v viewer) explainGrowth(ctx context.Context, t, next *tasks.Task) (*explain.Verdict, error) {
	c, err := v.surroundings(ctx, next)
	if err != nil {
		return nil, err
	}
	c.Admitted = slices.DeleteFunc(c.Admitted, func(h *explain.AdmittedWorkload) bool { return h.UID == t.UID && h.Namespace == t.Namespace })
	q := explainInput(next)
	if next.Elastic() { // Kueue counts the larger slice as a whole
		q.ReplacedUsage = quota.FlavorResourceQuantities{}
		for _, h := range t.AdmittedWorkloads {
			q.ReplacedUsage.Add(h.Usage)
			if queue := c.Queues[h.Queue]; queue != nil {
				for fr, amount := range h.Usage {
					queue.Usage[fr] = queue.Usage[fr].Minus(amount)
				}
			}
		}
	}
	if t.PriorityClass == "" { // Kueue ignores a class that is set after admission without one
		c.PriorityClasses = nil
	}
	verdict := v.explain(q, c)
	verdict.Changes = slices.DeleteFunc(verdict.Changes, func(c explain.Change) bool {
		// An increment is admitted as a whole, and a size below the current one is
		// no growth.
		return c.Kind == explain.FewerPods && (!next.Elastic() || int64(c.Pods) <= t.Size.Admitted)
	})
	return verdict, nil
}

// verdicts counts explanations that were shown, and whether Kueue's own reason
// agrees. An open page is explained again at each change: the same explanation of
// the same task counts once.
var verdicts = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "kuota_task_verdicts_total", Help: "Explanations shown, each counted once until it changes, by whether Kueue's own reason agrees; unknown for a reason that Kuota does not know.",
}, []string{"agrees"})

// agreesLabels are the values of the label agrees.
var agreesLabels = map[explain.Agreement]string{explain.Agrees: "true", explain.Disagrees: "false", explain.UnknownReason: "unknown"}

func init() {
	metrics.Registry.MustRegister(verdicts)
	for _, agrees := range agreesLabels { // present from the start, so that the first one is an increase
		verdicts.WithLabelValues(agrees)
	}
}

// maxShown is how many tasks' last explanations are kept. Older ones count again.
const maxShown = 4000

// shownVerdict is the last explanation of a task that was shown, and Kueue's reason.
type shownVerdict struct {
	constraint explain.Constraint
	reason     string
}

// countShown counts an explanation, unless it was the last one shown of the task.
func (s *Service) countShown(t *tasks.Task, constraint explain.Constraint, agreement explain.Agreement) {
	verdict := shownVerdict{constraint, t.Reason}
	last, _ := s.shown.Get(t.Key())
	s.shown.Add(t.Key(), verdict)
	if last != verdict {
		verdicts.WithLabelValues(agreesLabels[agreement]).Inc()
	}
}
