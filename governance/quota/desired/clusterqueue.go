package desired

import (
	"cmp"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/effective"
	"kuota.dev/kuota/governance/quota/resources"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/utils/ptr"
	kueueapi "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	kueue "sigs.k8s.io/kueue/client-go/applyconfiguration/kueue/v1beta2"
)

// clusterQueue returns a ClusterQueue of a team: that of its allocation, or that of a share with
// the spec that the share has alone.
func clusterQueue(name, team string, of *v1alpha1.ComputeAllocationSpec, resolved quota.Resolved, namespace string, naming Naming, ranking Ranking) *kueue.ClusterQueueApplyConfiguration {
	spec := kueue.ClusterQueueSpec().
		WithQueueingStrategy(cmp.Or(kueueapi.QueueingStrategy(of.QueueingStrategy), kueueapi.BestEffortFIFO)).
		WithStopPolicy(stopPolicy(strictest(of.Activation, naming.activation(of.Department)))).
		WithPreemption(preemption(of.Preemption, ranking))
	if cohort := ptr.Deref(of.CohortName, naming.CohortOf(of.Department)); cohort != "" {
		spec.WithCohortName(kueueapi.CohortReference(cohort))
	}
	if !of.Adopted() {
		spec.WithNamespaceSelector(applymeta.LabelSelector().WithMatchLabels(map[string]string{corev1.LabelMetadataName: namespace})).
			WithFlavorFungibility(kueue.FlavorFungibility().
				WithWhenCanBorrow(kueueapi.TryNextFlavor).
				WithWhenCanPreempt(kueueapi.TryNextFlavor))
	}
	if weight := of.FairShareWeight; !of.Adopted() || weight != DefaultWeight {
		spec.WithFairSharing(kueue.FairSharing().WithWeight(*resource.NewQuantity(int64(weight), resource.DecimalSI)))
	}
	if slices.ContainsFunc(of.Shares, func(s v1alpha1.Share) bool { return len(s.Quota) == 0 }) {
		spec.WithAdmissionScope(kueue.AdmissionScope().WithAdmissionMode(kueueapi.UsageBasedAdmissionFairSharing))
	}
	if len(resolved.Pools) > 0 {
		spec.WithResourceGroups(resourceGroup(resolved))
	}
	return kueue.ClusterQueue(name).
		WithLabels(queueLabels(team)).
		WithAnnotations(map[string]string{AnnotationDesired: digest(spec)}).
		WithSpec(spec)
}

// DefaultWeight is the fair-share weight that Kueue gives to a ClusterQueue without
// one.
const DefaultWeight = 1

// resourceGroup returns the only resource group of a queue. Kueue requires every
// flavor to list the covered resources in the same order.
func resourceGroup(resolved quota.Resolved) *kueue.ResourceGroupApplyConfiguration {
	group := kueue.ResourceGroup()
	for _, name := range resolved.Covered() {
		group.WithCoveredResources(corev1.ResourceName(name))
	}
	for _, pool := range resolved.Pools {
		flavor := kueue.FlavorQuotas().WithName(kueueapi.ResourceFlavorReference(pool.Name))
		for _, name := range resolved.Covered() {
			amount := kueue.ResourceQuota().
				WithName(corev1.ResourceName(name)).
				WithNominalQuota(pool.Nominal.Quantity(name))
			if pool.BorrowingLimit != nil {
				amount.WithBorrowingLimit(pool.BorrowingLimit.Quantity(name))
			}
			if !resolved.Lends {
				amount.WithLendingLimit(resources.Amount(0).Quantity(name))
			}
			flavor.WithResources(amount)
		}
		group.WithFlavors(flavor)
	}
	return group
}

// preemption returns what tasks of the queue may preempt. By default, lent quota can
// always be reclaimed, whatever the priority.
func preemption(p v1alpha1.Preemption, ranking Ranking) *kueue.ClusterQueuePreemptionApplyConfiguration {
	within := kueueapi.PreemptionPolicyLowerPriority
	borrowing := cmp.Or(kueueapi.BorrowWithinCohortPolicy(p.BorrowWithinCohort), kueueapi.BorrowWithinCohortPolicyLowerPriority)
	if p.WithinTeam == v1alpha1.PreemptNever || ranking != ByPriority {
		within = kueueapi.PreemptionPolicyNever
	}
	if ranking == Paused {
		borrowing = kueueapi.BorrowWithinCohortPolicyNever
	}
	return kueue.ClusterQueuePreemption().
		WithWithinClusterQueue(within).
		WithReclaimWithinCohort(cmp.Or(kueueapi.PreemptionPolicy(p.ReclaimWithinCohort), kueueapi.PreemptionPolicyAny)).
		WithBorrowWithinCohort(kueue.BorrowWithinCohort().WithPolicy(borrowing))
}

// activation returns the strictest activation of a department and of those above it.
func (n Naming) activation(department string) v1alpha1.Activation {
	strict := v1alpha1.Active
	for _, d := range DepartmentChain(n.Departments, department) {
		strict = strictest(strict, effective.Spec(d.Allocation()).Activation)
	}
	return strict
}

// strictest returns the stricter of two activations.
func strictest(a, b v1alpha1.Activation) v1alpha1.Activation {
	for _, strict := range []v1alpha1.Activation{v1alpha1.Drain, v1alpha1.Hold} {
		if a == strict || b == strict {
			return strict
		}
	}
	return v1alpha1.Active
}

func stopPolicy(activation v1alpha1.Activation) kueueapi.StopPolicy {
	switch activation {
	case v1alpha1.Hold:
		return kueueapi.Hold
	case v1alpha1.Drain:
		return kueueapi.HoldAndDrain
	}
	return kueueapi.None
}

// DefaultQueueName is the LocalQueue that Kueue uses for jobs without a queue
// label.
const DefaultQueueName = "default"

// localQueue returns a LocalQueue of an allocation. The stop policy of one that
// existed before the allocation stays as it is.
func localQueue(name string, allocation *v1alpha1.ComputeAllocation, namespace string, naming Naming) *kueue.LocalQueueApplyConfiguration {
	spec := kueue.LocalQueueSpec().WithClusterQueue(kueueapi.ClusterQueueReference(ClusterQueueName(allocation, naming)))
	if name != allocation.Spec.LocalQueueName {
		spec.WithStopPolicy(kueueapi.None)
	}
	queue := kueue.LocalQueue(name, namespace).WithLabels(queueLabels(allocation.Name)).WithSpec(spec)
	return queue.WithAnnotations(map[string]string{AnnotationDesired: digest(queue.Spec)})
}

// shareObjects returns the objects of a share. A share whose quota is not resolved is one of the
// team's quota.
func shareObjects(share *v1alpha1.Share, allocation *v1alpha1.ComputeAllocation, resolved quota.Resolved, namespace string, naming Naming, ranking Ranking) (objects ShareObjects) {
	label := map[string]string{LabelShare: share.Name}
	queue := localQueue(naming.ShareQueue(allocation.Name, share.Name), allocation, namespace, naming).WithLabels(label)
	i := slices.IndexFunc(resolved.Shares, func(r quota.ShareQuota) bool { return r.Share == share.Name })
	if own := len(share.Quota) > 0 && i >= 0; own {
		of := allocation.Spec.OfShare(share)
		name := naming.ShareClusterQueue(allocation.Name, share.Name)
		objects.ClusterQueue = clusterQueue(name, allocation.Name, &of, resolved.Shares[i].Resolved, namespace, naming, ranking).WithLabels(label)
		objects.Nominal = quota.Nominal(resolved.Shares[i].Pools)
		queue.Spec.WithClusterQueue(kueueapi.ClusterQueueReference(name))
	} else {
		queue.Spec.WithFairSharing(kueue.FairSharing().WithWeight(*resource.NewQuantity(int64(share.Weight), resource.DecimalSI)))
	}
	objects.LocalQueue = queue.WithAnnotations(map[string]string{AnnotationDesired: digest(queue.Spec)})
	return objects
}

// shareMembers returns the value of AnnotationShareMembers.
func shareMembers(allocation *v1alpha1.ComputeAllocation, naming Naming) string {
	var lines []string
	for _, share := range allocation.Spec.Shares {
		for _, m := range share.Members {
			lines = append(lines, naming.ShareQueue(allocation.Name, share.Name)+" "+m.Kind+" "+m.Name)
		}
	}
	return strings.Join(lines, "\n")
}

// flavor returns the ResourceFlavor of a pool.
func flavor(pool catalog.Pool, naming Naming) *kueue.ResourceFlavorApplyConfiguration {
	return kueue.ResourceFlavor(pool.Name).
		WithLabels(map[string]string{LabelManagedBy: ManagedBy}).
		WithSpec(kueue.ResourceFlavorSpec().WithNodeLabels(pool.Selects(naming.InstanceTypeLabel)))
}

// UsesFlavor reports whether an existing ResourceFlavor that Kuota does not manage
// can be the flavor of a pool as it is: it selects the labels that Kuota's own
// flavor would select, or only labels that all nodes of the pool have by the
// policy.
func (o Objects) UsesFlavor(name string, nodeLabels map[string]string) bool {
	for _, f := range o.Flavors {
		if *f.GetName() != name {
			continue
		}
		return includes(nodeLabels, f.Spec.NodeLabels) && len(nodeLabels) == len(f.Spec.NodeLabels) ||
			len(o.NodeLabels[name]) > 0 && includes(o.NodeLabels[name], nodeLabels)
	}
	return false
}

// includes reports whether all has each of some.
func includes(all, some map[string]string) bool {
	for key, value := range some {
		if got, ok := all[key]; !ok || got != value {
			return false
		}
	}
	return true
}
