package desired

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"

	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	applyrbac "k8s.io/client-go/applyconfigurations/rbac/v1"
	kueueapi "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	kueue "sigs.k8s.io/kueue/client-go/applyconfiguration/kueue/v1beta2"
)

// Objects are the objects that follow from one allocation.
type Objects struct {
	Namespace    *applycore.NamespaceApplyConfiguration
	Flavors      []*kueue.ResourceFlavorApplyConfiguration // one per pool, in the order of the rows
	ClusterQueue *kueue.ClusterQueueApplyConfiguration
	LocalQueue   *kueue.LocalQueueApplyConfiguration

	// NodeLabels are labels that all nodes of a pool have, by the name of its
	// flavor, if the policy matches the pool by labels. An existing flavor that
	// selects some of them is used as it is.
	NodeLabels map[string]map[string]string

	// Optional objects; nil if the allocation does not have them.
	DefaultQueue *kueue.LocalQueueApplyConfiguration // for jobs without a queue label
	Shares       []ShareObjects                      // one per share, in the order of the shares
	Members      *applyrbac.RoleBindingApplyConfiguration
	Department   *applyrbac.RoleBindingApplyConfiguration // lets the members of the department see the tasks
	Elastic      *applyrbac.RoleBindingApplyConfiguration // lets the console create the Jobs of ElasticJobs
	Ceiling      *applycore.ResourceQuotaApplyConfiguration
	Defaults     *applycore.LimitRangeApplyConfiguration // default requests, which a ceiling needs

	// Quota is the quota of ClusterQueue, and of those of shares.
	Quota quota.Resolved
}

// ShareObjects are the objects of a share.
type ShareObjects struct {
	LocalQueue   *kueue.LocalQueueApplyConfiguration
	ClusterQueue *kueue.ClusterQueueApplyConfiguration // nil for a share of the team's quota
	Nominal      quota.PoolResources                   // of ClusterQueue
}

// ClusterQueues returns the ClusterQueues of an allocation: its own first.
func (o Objects) ClusterQueues() []*kueue.ClusterQueueApplyConfiguration {
	all := []*kueue.ClusterQueueApplyConfiguration{o.ClusterQueue}
	for _, share := range o.Shares {
		if share.ClusterQueue != nil {
			all = append(all, share.ClusterQueue)
		}
	}
	return all
}

// LocalQueues returns the LocalQueues of an allocation: its own first.
func (o Objects) LocalQueues() []*kueue.LocalQueueApplyConfiguration {
	all := []*kueue.LocalQueueApplyConfiguration{o.LocalQueue}
	if o.DefaultQueue != nil {
		all = append(all, o.DefaultQueue)
	}
	for _, share := range o.Shares {
		all = append(all, share.LocalQueue)
	}
	return all
}

// NamespaceName returns the namespace of the tasks of an allocation.
func NamespaceName(allocation *v1alpha1.ComputeAllocation, naming Naming) string {
	if allocation.Spec.Namespace != "" {
		return allocation.Spec.Namespace
	}
	return naming.Namespace(allocation.Name)
}

// Build returns the objects that follow from an allocation under a ranking, or
// all its errors.
func Build(allocation *v1alpha1.ComputeAllocation, types catalog.Catalog, naming Naming, ranking Ranking) (Objects, []governance.FieldError) {
	resolved, errs := quota.Resolve(&allocation.Spec, types)
	if problem := quota.CheckTeamName(allocation.Name); problem != "" {
		errs = append([]governance.FieldError{{Path: "metadata.name", Message: problem}}, errs...)
	}
	if len(errs) > 0 {
		return Objects{}, errs
	}
	return BuildResolved(allocation, resolved, types, naming, ranking), nil
}

// BuildResolved returns the objects that follow from an allocation with this
// quota: that of its spec, or the one applied last.
func BuildResolved(allocation *v1alpha1.ComputeAllocation, resolved quota.Resolved, types catalog.Catalog, naming Naming, ranking Ranking) Objects {
	team, namespace := allocation.Name, NamespaceName(allocation, naming)
	objects := Objects{
		Namespace: applycore.Namespace(namespace).
			WithLabels(namespaceLabels(team, allocation.Spec.Namespace == "")).
			WithAnnotations(namespaceAnnotations(allocation, naming)),
		ClusterQueue: clusterQueue(ClusterQueueName(allocation, naming), team, &allocation.Spec, resolved, namespace, naming, ranking),
		LocalQueue:   localQueue(LocalQueueName(allocation, naming), allocation, namespace, naming),
		NodeLabels:   map[string]map[string]string{},
		Members:      members(team, namespace, allocation.Spec.Members),
		Department:   departmentBinding(namespace, DepartmentViewerRole, queueLabels(team), DepartmentChain(naming.Departments, allocation.Spec.Department), v1alpha1.DepartmentAdmin, v1alpha1.DepartmentViewer),
		Elastic:      elastic(team, namespace, naming.Console),
		Quota:        resolved,
	}
	for _, p := range resolved.Total().Pools {
		pool, ok := types.Find(p.Name)
		if !ok {
			continue // the pool has no nodes any more; its flavor stays as it is
		}
		objects.NodeLabels[pool.Name] = pool.NodeLabels
		f := flavor(pool, naming)
		objects.Flavors = append(objects.Flavors, f.WithAnnotations(map[string]string{AnnotationDesired: digest(f.Spec)}))
	}
	if allocation.Spec.DefaultQueue {
		objects.DefaultQueue = localQueue(DefaultQueueName, allocation, namespace, naming)
	}
	for i := range allocation.Spec.Shares {
		objects.Shares = append(objects.Shares, shareObjects(&allocation.Spec.Shares[i], allocation, resolved, namespace, naming, ranking))
	}
	if len(allocation.Spec.Shares) > 0 {
		objects.Namespace.WithAnnotations(map[string]string{AnnotationShareMembers: shareMembers(allocation, naming)})
	}
	if allocation.Spec.NamespaceCeiling || len(allocation.Spec.Ceiling) > 0 {
		objects.Ceiling, objects.Defaults = ceiling(team, namespace, &allocation.Spec, resolved)
	}
	return objects
}

// Keep gives the ClusterQueue the quota and the cohort that it has.
func (o *ShareObjects) Keep(groups []kueue.ResourceGroupApplyConfiguration, cohort kueueapi.CohortReference) {
	o.ClusterQueue.Spec.ResourceGroups, o.ClusterQueue.Spec.CohortName = groups, nil
	if cohort != "" {
		o.ClusterQueue.Spec.WithCohortName(cohort)
	}
	o.ClusterQueue.Annotations[AnnotationDesired] = digest(o.ClusterQueue.Spec)
}

// ShareTeam makes the share one of the team's quota, without a ClusterQueue.
func (o *ShareObjects) ShareTeam(allocation *v1alpha1.ComputeAllocation, naming Naming) {
	o.ClusterQueue = nil
	o.LocalQueue.Spec.WithClusterQueue(kueueapi.ClusterQueueReference(ClusterQueueName(allocation, naming)))
	o.LocalQueue.Annotations[AnnotationDesired] = digest(o.LocalQueue.Spec)
}

// KeepCohort puts the ClusterQueue into the cohort in which it is.
func (o Objects) KeepCohort(name kueueapi.CohortReference) {
	o.ClusterQueue.Spec.CohortName = nil
	if name != "" {
		o.ClusterQueue.Spec.WithCohortName(name)
	}
	o.ClusterQueue.Annotations[AnnotationDesired] = digest(o.ClusterQueue.Spec)
}

// digest returns a short hash of a desired spec.
func digest(spec any) string {
	text, err := json.Marshal(spec)
	if err != nil {
		panic("desired: apply configurations always marshal: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
