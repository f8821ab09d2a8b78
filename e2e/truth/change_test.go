package truth_test

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/quota/resources"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// make makes a change that the page of a task offers, as a user of the console would.
func (l *lab) make(ctx context.Context, in *instance, k task, c change) error {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: k.name, Namespace: in.namespace(k.team)}}
	patch := func(text string) error {
		return in.client.Patch(ctx, job, client.RawPatch(types.MergePatchType, []byte(text)))
	}
	switch c.kind {
	case fewerPods: // submitted again, which takes its position
		if err := in.client.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			return err
		}
		if err := until(ctx, func() error {
			if _, ok := l.watcher.workloads(in)[k.name]; ok {
				return fmt.Errorf("the Workload of %s still exists", k.name)
			}
			return nil
		}); err != nil {
			return err
		}
		k.pods = c.pods
		return in.client.Create(ctx, in.job(k))
	case higherClass:
		return patch(fmt.Sprintf(`{"metadata": {"labels": {%q: %q}}}`, desired.PriorityClassLabel, c.class))
	case tasksEnd:
		for _, name := range c.tasks {
			i := slices.IndexFunc(in.tasks, func(k task) bool { return k.name == name })
			if i < 0 {
				return fmt.Errorf("no task %s", name)
			}
			ended := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: in.namespace(in.tasks[i].team)}}
			if err := in.client.Delete(ctx, ended, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
				return err
			}
		}
		return nil
	case moreQuota, borrowLimit:
		switch {
		case !in.byKuota():
			return in.setAmounts(ctx, k.team, c)
		case c.link != "":
			if err := l.follow(ctx, c); err != nil {
				return err
			}
			return until(ctx, func() error { return in.applied(ctx) })
		}
	}
	switch c.kind {
	case moreQuota:
		setQuota(&in.teams[k.team].Spec, c.pool, c.amounts)
	case borrowLimit:
		in.setBorrowLimit(k.team, c.pool, c.amounts)
	}
	return in.apply(ctx, k.team)
}

// setAmounts sets quota or limits of a ClusterQueue that follows from no allocation.
func (in *instance) setAmounts(ctx context.Context, team int, c change) error {
	var queue kueue.ClusterQueue
	if err := in.client.Get(ctx, client.ObjectKey{Name: in.queue(team)}, &queue); err != nil {
		return err
	}
	before := client.MergeFrom(queue.DeepCopy())
	for i := range queue.Spec.ResourceGroups {
		for j := range queue.Spec.ResourceGroups[i].Flavors {
			flavor := &queue.Spec.ResourceGroups[i].Flavors[j]
			if string(flavor.Name) != c.pool {
				continue
			}
			for k := range flavor.Resources {
				r := &flavor.Resources[k]
				amount, raised := c.amounts[string(r.Name)]
				switch to := amount.Quantity(string(r.Name)); {
				case raised && c.kind == borrowLimit:
					r.BorrowingLimit = &to
				case raised:
					r.NominalQuota = to
				}
			}
		}
	}
	return in.client.Patch(ctx, &queue, before)
}

// setQuota types amounts into a row of an allocation. What was not entered in the row
// follows from the other amounts, as in the form.
func setQuota(spec *v1alpha1.ComputeAllocationSpec, pool string, amounts quota.Resources) {
	i := slices.IndexFunc(spec.Quota, func(row v1alpha1.QuotaRow) bool { return row.InstanceType == pool })
	if i < 0 {
		i = len(spec.Quota)
		spec.Quota = append(spec.Quota, v1alpha1.QuotaRow{InstanceType: pool})
	}
	enter(&spec.Quota[i].Quantities, amounts)
}

// setBorrowLimit types amounts into a borrow limit of an allocation. The limits of other
// resources and pools stay what they are.
func (in *instance) setBorrowLimit(team int, pool string, amounts quota.Resources) {
	limit := quota.Resources{}
	for _, p := range in.resolved(team).Pools {
		if p.Name == pool {
			maps.Copy(limit, p.BorrowingLimit)
		}
	}
	maps.Copy(limit, amounts)
	sharing := &in.teams[team].Spec.Sharing
	if sharing.Strategy != v1alpha1.LendAndBorrow {
		sharing.Strategy, sharing.BorrowLimitPercent = v1alpha1.LendAndBorrow, ptr.To[int32](0)
	}
	row := v1alpha1.QuotaRow{InstanceType: pool}
	enter(&row.Quantities, limit)
	sharing.BorrowLimits = append(slices.DeleteFunc(sharing.BorrowLimits, func(row v1alpha1.QuotaRow) bool { return row.InstanceType == pool }), row)
}

// enter types amounts into a row.
func enter(row *v1alpha1.Quantities, amounts quota.Resources) {
	for name, amount := range amounts {
		switch name {
		case catalog.GPU:
			row.Accelerators = ptr.To(int64(amount))
		case catalog.CPU:
			row.VCPU = ptr.To(amount.Quantity(name))
		case catalog.Memory:
			row.Memory = ptr.To(amount.Quantity(name))
		}
	}
}

// current returns the quota, or the borrowing limit, of a team in a pool.
func (in *instance) current(team int, c change) quota.Resources {
	for _, p := range in.resolved(team).Pools {
		if p.Name == c.pool {
			if c.kind == borrowLimit {
				return p.BorrowingLimit
			}
			return p.Nominal
		}
	}
	return quota.Resources{}
}

// units are the units in which the page gives quota.
var units = map[string]resources.Amount{catalog.GPU: 1, catalog.CPU: 1000, catalog.Memory: catalog.GiB}

// smaller returns a change with one figure a unit smaller, of those that are more than a
// unit above what the team has; ok is false if there is none, so that the change is
// minimal as far as the task waits.
func smaller(c change, now quota.Resources, choose func(n int) int) (less change, ok bool) {
	var larger []string
	for _, name := range slices.Sorted(maps.Keys(c.amounts)) {
		if c.amounts[name]-units[name] > now[name] || len(c.amounts) > 1 && c.amounts[name] > now[name] {
			larger = append(larger, name)
		}
	}
	if len(larger) == 0 {
		return c, false
	}
	name := larger[choose(len(larger))]
	less = c
	less.amounts = maps.Clone(c.amounts)
	less.amounts[name] -= units[name]
	return less, true
}
