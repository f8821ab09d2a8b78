package advice

import (
	"context"
	"slices"

	"kuota.dev/kuota/governance/kueue/simulate"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/tasks/explain"

	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// quotas returns the search for the smallest nominal quota or borrowing limit that
// starts the task, in the first flavor in which one does.
func (f *finder) quotas(kind explain.ChangeKind) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, flavor := range f.flavors() {
			if done, err := f.raise(ctx, kind, flavor); err != nil || done {
				return err
			}
		}
		return nil
	}
}

// enoughQuota offers the quota in the first flavor that is enough whatever others use. A
// single question finds it.
func (f *finder) enoughQuota(ctx context.Context) error {
	flavors := f.flavors()
	if len(flavors) == 0 {
		return nil
	}
	_, _, err := f.enough(ctx, explain.RaiseNominalQuota, flavors[0])
	return err
}

// flavors returns the flavors whose nodes match the task, the one that explain
// names first.
func (f *finder) flavors() (names []string) {
	if f.Verdict.Shortage != nil {
		names = append(names, f.Verdict.Shortage.Flavor)
	}
	mismatched := map[string]bool{}
	for _, v := range f.Verdict.Flavors {
		mismatched[v.Flavor] = v.Mismatch != ""
	}
	for _, name := range f.Cluster.Queue.Flavors {
		if !mismatched[name] && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// raise finds the smallest figures in one flavor: for each resource that the task
// needs, one that starts it while the next smaller one does not.
func (f *finder) raise(ctx context.Context, kind explain.ChangeKind, flavor string) (done bool, err error) {
	figures, ok, err := f.enough(ctx, kind, flavor)
	if err != nil || !ok {
		return err != nil, err
	}
	to := slices.Clone(highest(figures))
	// A smaller figure of one resource may keep a task waiting that is ahead, so that
	// less of another resource suffices: passes go on until none changes anything.
	stable := false
	for pass := 0; pass < passes && !stable; pass++ {
		stable = true
		for i, figure := range figures {
			low, high := int64(-1), (to[i].Minus(figure.from)).Per(figure.step) // in steps above from: low fails
			probes := []int64{0}
			switch {
			case pass > 0:
				probes = []int64{high - 1, 0}
			case figure.guess > figure.from && figure.guess < figure.high:
				guess := (figure.guess.Minus(figure.from).Plus(figure.step).Minus(1)).Per(figure.step)
				probes = append(probes, guess, guess-1)
			}
			for high-low > 1 {
				probe := (low + high) / 2
				for len(probes) > 0 {
					next := probes[0]
					if probes = probes[1:]; next > low && next < high {
						probe = next
						break
					}
				}
				to[i] = figure.from.Plus(figure.step.Times(probe))
				ok, err := f.starts(ctx, f.with(kind, figures, to), f.target)
				if err != nil {
					return false, err
				}
				if ok {
					high, stable = probe, false
				} else {
					low = probe
				}
			}
			to[i] = figure.from.Plus(figure.step.Times(high))
		}
		stable = stable || len(figures) == 1
	}
	change := f.raised(kind, figures, to)
	change.Minimal = stable
	return true, f.verify(ctx, change, f.with(kind, figures, to), f.target)
}

// enough offers the highest figures of a flavor, if they start the task. It asks once.
func (f *finder) enough(ctx context.Context, kind explain.ChangeKind, flavor string) (figures []figure, ok bool, err error) {
	key := string(kind) + " " + flavor
	if known, asked := f.sufficient[key]; asked {
		return known, len(known) > 0, nil
	}
	var to []resources.Amount
	if figures = f.candidates(kind, flavor); len(figures) > 0 {
		tries := [][]resources.Amount{highest(figures)}
		if first := guesses(figures); first != nil && len(f.ahead()) == 0 { // it raises only what is short
			tries = slices.Insert(tries, 0, first)
		}
		for _, to = range tries {
			if ok, err = f.starts(ctx, f.with(kind, figures, to), f.target); err != nil {
				return nil, false, err
			}
			if ok {
				break
			}
		}
		if !ok {
			figures = nil
		}
	}
	f.sufficient[key] = figures
	if !ok {
		return nil, false, nil
	}
	for i := range figures {
		figures[i].high = to[i]
	}
	change := f.raised(kind, figures, to)
	change.NeedsNodes = f.needsNodes
	return figures, true, f.offer(ctx, Change{Change: change})
}

// guesses returns the figures of package explain, and those of now for the rest; nil
// without any.
func guesses(figures []figure) (to []resources.Amount) {
	some := false
	for _, figure := range figures {
		some = some || figure.guess > figure.from
		to = append(to, max(figure.from, figure.guess))
	}
	if !some {
		return nil
	}
	return to
}

func highest(figures []figure) []resources.Amount {
	to := make([]resources.Amount, len(figures))
	for i, figure := range figures {
		to[i] = figure.high
	}
	return to
}

// raised returns the change of figures.
func (f *finder) raised(kind explain.ChangeKind, figures []figure, to []resources.Amount) explain.Change {
	change := explain.Change{Kind: kind, Share: f.Cluster.Queue.Share, LendAndBorrow: kind == explain.RaiseBorrowingLimit && f.Cluster.Queue.NeverBorrows}
	for i, figure := range figures {
		if to[i] > figure.from {
			change.Quotas = append(change.Quotas, explain.QuotaChange{FlavorResource: figure.FlavorResource, From: figure.from, To: to[i]})
		}
	}
	return change
}

// passes is how often figures of several resources are lowered in turn.
const passes = 4

// figure is one quota or limit that is raised.
type figure struct {
	quota.FlavorResource
	from, high resources.Amount // now, and enough whatever others use
	guess      resources.Amount // of package explain; 0 for none
	step       resources.Amount // in which quota is given
}

// candidates returns what a flavor would need to have for the task, by resource:
// accelerators first, as they decide. Empty if it cannot be raised.
func (f *finder) candidates(kind explain.ChangeKind, flavor string) (list []figure) {
	needs, ahead := f.needs(), f.ahead()
	for _, name := range needs.Names() {
		fr := quota.FlavorResource{Flavor: flavor, Resource: name}
		limit, covered := f.Cluster.Queue.Limits[fr]
		if needs[name] == 0 || !covered {
			continue
		}
		enough := f.Cluster.Queue.Usage[fr].Plus(ahead[name]).Plus(needs[name])
		one := figure{FlavorResource: fr, from: limit.Nominal, step: step(name)}
		if kind == explain.RaiseBorrowingLimit {
			if limit.BorrowingLimit == nil || f.queue.Spec.CohortName == "" {
				continue
			}
			one.from, enough = *limit.BorrowingLimit, enough.Minus(limit.Nominal)
		}
		one.high = one.from.Plus(one.step.Times(max(0, (enough.Minus(one.from).Plus(one.step).Minus(1)).Per(one.step))))
		for _, c := range f.Verdict.Changes {
			for _, q := range c.Quotas {
				if c.Kind == kind && q.FlavorResource == fr {
					one.guess = q.To
				}
			}
		}
		list = append(list, one)
	}
	return list
}

// ahead returns what the tasks of the queue request that Kueue tries before the
// task: with more quota they may start first.
func (f *finder) ahead() quota.Resources {
	sum := quota.Resources{}
	locals := map[string]bool{} // namespace/name of the queue's LocalQueues
	for _, q := range f.Snapshot.LocalQueues {
		if string(q.Spec.ClusterQueue) == f.queue.Name {
			locals[q.Namespace+"/"+q.Name] = true
		}
	}
	for _, w := range f.Snapshot.Workloads {
		priority, own := ptr.Deref(w.Spec.Priority, 0), ptr.Deref(f.workload.Spec.Priority, 0)
		behind := priority < own || priority == own && f.workload.CreationTimestamp.Before(&w.CreationTimestamp)
		if w == f.workload || w.Status.Admission != nil || !locals[w.Namespace+"/"+string(w.Spec.QueueName)] || behind {
			continue
		}
		for i := range w.Spec.PodSets {
			set := &w.Spec.PodSets[i]
			for j := range set.Template.Spec.Containers {
				for name, amount := range set.Template.Spec.Containers[j].Resources.Requests {
					sum[string(name)] = sum[string(name)].Plus(resources.AmountFromQuantity(string(name), amount).Times(int64(set.Count)))
				}
			}
		}
	}
	return sum
}

// step returns the unit in which quota of a resource is given: 1 vCPU, 1 GiB or one
// device.
func step(resource string) resources.Amount {
	switch {
	case resource == "cpu":
		return 1000
	case resource == "memory" || resource == "ephemeral-storage":
		return 1 << 30
	}
	return 1
}

// with returns the change of the task's queue to other figures.
func (f *finder) with(kind explain.ChangeKind, figures []figure, to []resources.Amount) simulate.Change {
	queue := f.queue.DeepCopy()
	queue.Generation++
	typed := quota.Resources{}
	for i, figure := range figures {
		if to[i] == figure.from {
			continue
		}
		typed[figure.Resource] = to[i]
		r := resourceQuota(queue, figure.FlavorResource)
		amount := to[i].Quantity(figure.Resource)
		if kind == explain.RaiseBorrowingLimit {
			r.BorrowingLimit = &amount
		} else {
			r.NominalQuota = amount
		}
	}
	if kind == explain.RaiseBorrowingLimit && f.Cluster.Queue.NeverBorrows {
		lend(queue)
	}
	if kind == explain.RaiseNominalQuota && f.Saved != nil && len(typed) > 0 {
		if resolved, ok := f.Saved(figures[0].Flavor, typed); ok {
			setQuota(queue, resolved)
		}
	}
	return simulate.Change{ClusterQueues: []*kueue.ClusterQueue{queue}}
}

// lend removes the lending limits of a queue, as the strategy LendAndBorrow does.
func lend(queue *kueue.ClusterQueue) {
	for _, r := range quota.ResourceQuotas(queue.Spec.ResourceGroups) {
		r.LendingLimit = nil
	}
}

// setQuota sets the quota and the limits of a queue to those of an allocation.
func setQuota(queue *kueue.ClusterQueue, resolved quota.Resolved) {
	for _, pool := range resolved.Pools {
		for name, amount := range pool.Nominal {
			r := resourceQuota(queue, quota.FlavorResource{Flavor: pool.Name, Resource: name})
			if r == nil {
				continue
			}
			r.NominalQuota = amount.Quantity(name)
			if r.BorrowingLimit = nil; pool.BorrowingLimit != nil {
				limit := pool.BorrowingLimit[name].Quantity(name)
				r.BorrowingLimit = &limit
			}
		}
	}
}

// resourceQuota returns the quota of a queue for a FlavorResource; nil for none.
func resourceQuota(q *kueue.ClusterQueue, fr quota.FlavorResource) *kueue.ResourceQuota {
	for of, r := range quota.ResourceQuotas(q.Spec.ResourceGroups) {
		if of == fr {
			return r
		}
	}
	return nil
}

func nominal(q *kueue.ClusterQueue, fr quota.FlavorResource) resources.Amount {
	if r := resourceQuota(q, fr); r != nil {
		return resources.AmountFromQuantity(fr.Resource, r.NominalQuota)
	}
	return 0
}
