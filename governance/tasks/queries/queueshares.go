package queries

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/kueue/kueueconfig"
	"kuota.dev/kuota/governance/kueue/simulate"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/index"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// QueueShare is one LocalQueue of a team: one whose tasks Kueue orders by usage, or one of a
// share with quota.
type QueueShare struct {
	Name              string // of the share; empty for the team's own queue
	Queue             string // the LocalQueue
	Weight            float64
	Consumed          corev1.ResourceList // decayed, of the resources that count
	Usage             float64             // of Consumed, by the resource weights
	Admitted, Pending int32
	SampledAt         time.Time // of Consumed; zero while Kueue does not count usage

	// Own is the quota of the share's ClusterQueue with its usage, as Kueue reports it; empty for
	// the team's quota. Weight is then its fair-share weight.
	Own []QuotaUsage
}

// QuotaUsage is the nominal quota of a ClusterQueue and what of it, and borrowed, is used.
type QuotaUsage struct {
	quota.FlavorResource
	Nominal, Usage resources.Amount
}

// relative is the usage that Kueue compares.
func (s QueueShare) relative() float64 { return s.Usage / s.Weight }

// QueueSharesWithin returns the shares of a team, those with quota of their own last; none if
// the scope does not include the team.
func (s *Service) QueueSharesWithin(ctx context.Context, scope access.Scope, team string) ([]QueueShare, error) {
	v, err := s.within(ctx, scope)
	if err != nil {
		return nil, err
	}
	shares, err := v.queueShares(ctx, team)
	if err != nil || !v.seesTeam(team) {
		return nil, err
	}
	own, err := v.sharesWithQuota(ctx, team)
	return append(shares, own...), err
}

// sharesWithQuota returns the shares of a team that have ClusterQueues, by name.
func (v viewer) sharesWithQuota(ctx context.Context, team string) (shares []QueueShare, err error) {
	queues, err := cluster.All[kueue.ClusterQueue](ctx, v.reader)
	if err != nil {
		return nil, err
	}
	locals, err := cluster.All[kueue.LocalQueue](ctx, v.reader)
	if err != nil {
		return nil, err
	}
	for _, q := range queues {
		name := q.Labels[desired.LabelShare]
		if name == "" || v.teams.OfClusterQueue(q.Name) != team {
			continue
		}
		share := QueueShare{Name: name, Weight: weightOf(q.Spec.FairSharing), Admitted: q.Status.AdmittedWorkloads, Pending: q.Status.PendingWorkloads}
		if at := slices.IndexFunc(locals, func(l *kueue.LocalQueue) bool { return string(l.Spec.ClusterQueue) == q.Name }); at >= 0 {
			share.Queue = locals[at].Name
		}
		usage := map[quota.FlavorResource]resources.Amount{}
		for _, flavor := range q.Status.FlavorsUsage {
			for _, r := range flavor.Resources {
				usage[quota.FlavorResource{Flavor: string(flavor.Name), Resource: string(r.Name)}] = resources.AmountFromQuantity(string(r.Name), r.Total)
			}
		}
		for fr, r := range quota.ResourceQuotas(q.Spec.ResourceGroups) {
			share.Own = append(share.Own, QuotaUsage{fr, resources.AmountFromQuantity(fr.Resource, r.NominalQuota), usage[fr]})
		}
		shares = append(shares, share)
	}
	slices.SortFunc(shares, func(a, b QueueShare) int { return strings.Compare(a.Name, b.Name) })
	return shares, nil
}

func (v viewer) queueShares(ctx context.Context, team string) ([]QueueShare, error) {
	if !v.seesTeam(team) {
		return nil, nil
	}
	queues, err := cluster.All[kueue.LocalQueue](ctx, v.reader)
	if err != nil {
		return nil, err
	}
	weights, err := v.usageWeights(ctx)
	if err != nil {
		return nil, err
	}
	of := v.queueOf(team)
	var shares []QueueShare
	for _, q := range queues {
		if !of(index.QueueKey{Namespace: q.Namespace, Queue: q.Name}) {
			continue
		}
		ordered, err := v.orderedByUsage(ctx, q.Spec.ClusterQueue)
		if err != nil {
			return nil, err
		}
		if ordered {
			shares = append(shares, queueShare(q, weights))
		}
	}
	slices.SortFunc(shares, func(a, b QueueShare) int {
		return cmp.Or(-cmp.Compare(min(1, len(a.Name)), min(1, len(b.Name))), -cmp.Compare(a.Weight, b.Weight), strings.Compare(a.Queue, b.Queue))
	})
	return shares, nil
}

// usageWeights returns by how much Kueue multiplies the usage of each resource.
func (v viewer) usageWeights(ctx context.Context) (map[string]int, error) {
	policy, err := clusterstate.Policy(ctx, v.reader)
	if err != nil {
		return nil, err
	}
	counted := &v1alpha1.AdmissionFairSharing{}
	if policy != nil && policy.Spec.AdmissionFairSharing != nil {
		counted = policy.Spec.AdmissionFairSharing
	}
	return kueueconfig.ResourceWeights(counted), nil
}

// orderedByUsage reports whether Kueue orders the tasks of a ClusterQueue by usage, which
// it does once its configuration enables that.
func (v viewer) orderedByUsage(ctx context.Context, name kueue.ClusterQueueReference) (bool, error) {
	var queue kueue.ClusterQueue
	err := v.reader.Get(ctx, client.ObjectKey{Name: string(name)}, &queue)
	if client.IgnoreNotFound(err) != nil {
		return false, cluster.Translate("read queue", err)
	}
	return ordersByUsage(&queue), nil
}

func ordersByUsage(q *kueue.ClusterQueue) bool {
	scope := q.Spec.AdmissionScope
	return scope != nil && scope.AdmissionMode == kueue.UsageBasedAdmissionFairSharing
}

// weightOf returns the weight of a queue, which is 1 by default.
func weightOf(f *kueue.FairSharing) float64 {
	if f == nil || f.Weight == nil {
		return 1
	}
	return f.Weight.AsApproximateFloat64()
}

func queueShare(q *kueue.LocalQueue, weights map[string]int) QueueShare {
	share := QueueShare{Name: q.Labels[desired.LabelShare], Queue: q.Name, Weight: weightOf(q.Spec.FairSharing), Admitted: q.Status.AdmittedWorkloads, Pending: q.Status.PendingWorkloads}
	status := q.Status.FairSharing
	if status == nil || status.AdmissionFairSharingStatus == nil {
		return share
	}
	share.SampledAt, share.Consumed = status.AdmissionFairSharingStatus.LastUpdate.Time, corev1.ResourceList{}
	for name, amount := range status.AdmissionFairSharingStatus.ConsumedResources {
		weight, named := weights[string(name)]
		if !named {
			weight = 1 // as Kueue counts it
		}
		if weight > 0 && !amount.IsZero() {
			share.Consumed[name] = amount
			share.Usage += float64(weight) * amount.AsApproximateFloat64()
		}
	}
	return share
}

// sampled reports whether Kueue counts the usage of shares: its configuration may not
// enable that.
func sampled(shares []QueueShare) bool {
	return slices.ContainsFunc(shares, func(s QueueShare) bool { return !s.SampledAt.IsZero() })
}

// headOfShares returns the first n tasks of the queues of a team whose tasks Kueue
// orders by usage, and how many wait there. The order is Kueue's own where the visibility
// API answers, else by the usage that Kueue sampled last.
func (s *Service) headOfShares(ctx context.Context, v viewer, team string, shares []QueueShare, n int) (list []index.Positioned, of int) {
	relative := map[string]float64{}
	for _, share := range shares {
		relative[share.Queue] = share.relative()
	}
	list, of = v.index.Heads(v.queueOf(team), n*len(shares))
	slices.SortStableFunc(list, func(a, b index.Positioned) int {
		return cmp.Or(cmp.Compare(relative[a.Task.Queue], relative[b.Task.Queue]), strings.Compare(a.Task.Queue, b.Task.Queue), cmp.Compare(a.Position, b.Position))
	})
	heads := make([]*tasks.Task, len(list))
	for i := range list {
		heads[i] = list[i].Task
	}
	if places := s.placesByKueue(ctx, v, heads); places != nil {
		slices.SortStableFunc(list, func(a, b index.Positioned) int {
			return cmp.Compare(places[simulate.WorkloadKey(a.Task.Main)], places[simulate.WorkloadKey(b.Task.Main)])
		})
	}
	list = list[:min(n, len(list))]
	for i := range list {
		list[i].Position = i + 1
	}
	return list, of
}

// maxAsked is how many LocalQueues one page reads the order of.
const maxAsked = 8

// placesByKueue returns the positions of tasks in their ClusterQueue by their Workloads,
// from Kueue's visibility API; nil if it does not answer for each of their LocalQueues.
func (s *Service) placesByKueue(ctx context.Context, v viewer, list []*tasks.Task) map[string]int {
	places, asked := map[string]int{}, map[index.QueueKey]bool{}
	for _, t := range list {
		key := index.QueueKey{Namespace: t.Namespace, Queue: t.Queue}
		if asked[key] {
			continue
		}
		if asked[key] = true; len(asked) > maxAsked {
			return nil
		}
		items, ok := s.pendingByKueue(ctx, v, t, 1)
		if !ok {
			return nil
		}
		for _, item := range items {
			places[t.Namespace+"/"+item.Name] = int(item.PositionInClusterQueue)
		}
	}
	for _, t := range list { // one that Kueue does not know yet
		if _, known := places[simulate.WorkloadKey(t.Main)]; !known {
			return nil
		}
	}
	return places
}
