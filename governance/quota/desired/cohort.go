package desired

import (
	"maps"
	"slices"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	kueueapi "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	kueue "sigs.k8s.io/kueue/client-go/applyconfiguration/kueue/v1beta2"
)

// maxFlavors is the limit of Kueue 0.19 for flavors in one resource group. A
// resource can be in one group only, so a Cohort cannot have more.
const maxFlavors = 64

// QuotaByQueue returns the nominal quota of these ClusterQueues and of those of all
// allocations: the larger of what a ClusterQueue has and what its allocation
// resolves to.
func QuotaByQueue(queues []*kueueapi.ClusterQueue, all []v1alpha1.ComputeAllocation, types catalog.Catalog, naming Naming) map[string]quota.PoolResources {
	by := map[string]quota.PoolResources{}
	for _, queue := range queues {
		by[queue.Name] = QueueQuota(queue)
	}
	for i := range all {
		name := ClusterQueueName(&all[i], naming)
		if by[name] == nil {
			by[name] = quota.PoolResources{}
		}
		if all[i].DeletionTimestamp == nil { // otherwise its ClusterQueue has the rest
			resolved, _ := quota.Effective(&all[i], types)
			nominal := quota.PoolResources{}
			nominal.AddNominal(resolved)
			by[name].Raise(nominal)
		}
	}
	return by
}

// QueueQuota returns the nominal quota of a ClusterQueue.
func QueueQuota(queue *kueueapi.ClusterQueue) quota.PoolResources {
	pools := quota.PoolResources{}
	for fr, r := range quota.ResourceQuotas(queue.Spec.ResourceGroups) {
		pools.Add(fr.Flavor, quota.Resources{fr.Resource: resources.AmountFromQuantity(fr.Resource, r.NominalQuota)})
	}
	return pools
}

// UnallocatedCohort returns the Cohort that lends what is left of the ready nodes
// beyond the quota of these ClusterQueues, and what Cohort returns beside it.
func UnallocatedCohort(naming Naming, queues map[string]quota.PoolResources, types catalog.Catalog) (cohort *kueue.CohortApplyConfiguration, leftOut []string) {
	allocated := quota.PoolResources{}
	for _, pools := range queues {
		for pool, amounts := range pools {
			allocated.Add(pool, amounts)
		}
	}
	ready := func(name string) quota.Resources {
		pool, _ := types.Find(name)
		return pool.Ready
	}
	return Cohort(naming, Unallocated(ready, allocated))
}

// Unallocated returns the resources of each pool that are not allocated to a
// team, at least 0. Pools that no team has quota in are left out, because no
// team could borrow from them.
func Unallocated(physical func(pool string) quota.Resources, allocated map[string]quota.Resources) map[string]quota.Resources {
	left := map[string]quota.Resources{}
	for pool, amounts := range allocated {
		rest := quota.Resources{}
		ready := physical(pool)
		for name := range amounts {
			rest[name] = max(0, ready[name].Minus(amounts[name]))
		}
		left[pool] = rest
	}
	return left
}

// Cohort returns the Cohort with the unallocated resources as its quota; nil if
// no team has quota in a pool. Pools beyond maxFlavors are left out, in the
// order of their names, and returned.
func Cohort(naming Naming, unallocated map[string]quota.Resources) (cohort *kueue.CohortApplyConfiguration, leftOut []string) {
	names := quota.Resources{}
	for _, amounts := range unallocated {
		names.Add(amounts)
	}
	covered, pools := names.Names(), slices.Sorted(maps.Keys(unallocated))
	if len(pools) > maxFlavors {
		pools, leftOut = pools[:maxFlavors], pools[maxFlavors:]
	}
	if len(pools) == 0 {
		return nil, nil
	}
	group := kueue.ResourceGroup()
	for _, name := range covered {
		group.WithCoveredResources(corev1.ResourceName(name))
	}
	for _, pool := range pools {
		flavor := kueue.FlavorQuotas().WithName(kueueapi.ResourceFlavorReference(pool))
		for _, name := range covered {
			flavor.WithResources(kueue.ResourceQuota().WithName(corev1.ResourceName(name)).WithNominalQuota(unallocated[pool].Quantity(name)))
		}
		group.WithFlavors(flavor)
	}
	spec := kueue.CohortSpec().WithResourceGroups(group)
	cohort = kueue.Cohort(naming.Cohort).WithLabels(map[string]string{LabelManagedBy: ManagedBy}).WithSpec(spec)
	return cohort.WithAnnotations(map[string]string{AnnotationDesired: digest(spec)}), leftOut
}

// CeilingName is the name of the ResourceQuota and the LimitRange of a namespace
// ceiling.
const CeilingName = "kuota-ceiling"

// The default requests of a container: once a namespace has a ceiling on cpu and
// memory, Kubernetes rejects pods without requests for them.
var (
	defaultCPU    = resource.MustParse("100m")
	defaultMemory = resource.MustParse("128Mi")
)

// ceiling returns the ResourceQuota that limits the requests of all pods of a
// namespace to the nominal quota and borrowing limits of the team, over all its
// pools, and the LimitRange with default requests.
func ceiling(team, namespace string, resolved quota.Resolved) (*applycore.ResourceQuotaApplyConfiguration, *applycore.LimitRangeApplyConfiguration) {
	total := quota.Resources{}
	for _, pool := range resolved.Pools {
		total.Add(pool.Nominal)
		total.Add(pool.BorrowingLimit)
	}
	hard := corev1.ResourceList{}
	for _, name := range resolved.Covered() {
		hard[corev1.ResourceName("requests."+name)] = total.Quantity(name)
	}
	bound := applycore.ResourceQuota(CeilingName, namespace).
		WithLabels(queueLabels(team)).
		WithSpec(applycore.ResourceQuotaSpec().WithHard(hard))
	bound.WithAnnotations(map[string]string{AnnotationDesired: digest(bound.Spec)})

	defaults := applycore.LimitRange(CeilingName, namespace).
		WithLabels(queueLabels(team)).
		WithSpec(applycore.LimitRangeSpec().WithLimits(applycore.LimitRangeItem().
			WithType(corev1.LimitTypeContainer).
			WithDefaultRequest(corev1.ResourceList{catalog.CPU: defaultCPU, catalog.Memory: defaultMemory})))
	defaults.WithAnnotations(map[string]string{AnnotationDesired: digest(defaults.Spec)})
	return bound, defaults
}
