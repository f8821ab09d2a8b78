package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/cluster/managed"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/quota/effective"
	"kuota.dev/kuota/governance/record/activity"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	applykueue "sigs.k8s.io/kueue/client-go/applyconfiguration/kueue/v1beta2"
)

// cohortDelay coalesces changes before the Cohort is reconciled.
const cohortDelay = 50 * time.Millisecond

const (
	restsBeside = 500             // ClusterQueues, with which a reconciliation of the Cohorts takes long
	maxRest     = 5 * time.Second // between two of them
)

// CohortReconciler keeps the Cohorts: the shared one, which lends compute that is not
// allocated to any team, and one for each department, which lends its reserve. The nominal
// quota of all Cohorts and of all teams together never exceeds the capacity, and below a
// department never its quota: a Cohort shrinks before what is beside it grows, and grows
// after that shrank.
type CohortReconciler struct {
	client.Client               // reads from the cache
	APIReader     client.Reader // reads from the API server
	Naming        desired.Naming
	Events        events.EventRecorder
	Activity      *activity.Log // nil without history
	Now           func() time.Time

	policies policyReader
	ledger   ledger
	writes   lastWrites              // of Cohorts
	requests chan event.GenericEvent // triggers a reconciliation
	answered answered
	refused  map[string]bool // the allocations that were refused last
	rests    time.Time       // until when allocations have the time
}

// answered are the teams whose requests the Cohorts now answer: AllocationReconciler continues
// with them.
type answered struct {
	mu     sync.Mutex
	teams  map[string]bool
	events chan event.GenericEvent // one for all teams
}

// add adds teams. An event that is not handled yet has them, too.
func (a *answered) add(teams []string) {
	if len(teams) == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.teams == nil {
		a.teams = map[string]bool{}
	}
	for _, team := range teams {
		a.teams[team] = true
	}
	select {
	case a.events <- event.GenericEvent{Object: &v1alpha1.ComputeAllocation{}}:
	default:
	}
}

// take returns the teams as requests, once.
func (a *answered) take(context.Context, client.Object) (requests []reconcile.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for team := range a.teams {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Name: team}})
	}
	clear(a.teams)
	return requests
}

// reserve reserves what a ClusterQueue of a team is to have (see ledger.reserve), and triggers
// a reconciliation if there is not enough. That answers it.
func (r *CohortReconciler) reserve(shares bool, team, queue string, wanted desired.Wish) reservation {
	got := r.ledger.reserve(shares, team, queue, wanted)
	if !got.ok && got.refused == "" {
		r.trigger()
	}
	return got
}

// recordWritten records that a ClusterQueue has this quota in this department, and triggers a
// reconciliation if Cohorts may have more: the last one may have counted more for
// the ClusterQueue, although it saw the ClusterQueue's change.
func (r *CohortReconciler) recordWritten(queue string, has desired.Wish) {
	if r.ledger.recordWritten(queue, has) {
		r.trigger()
	}
}

func (r *CohortReconciler) trigger() {
	select {
	case r.requests <- event.GenericEvent{}:
	default: // a reconciliation is already triggered
	}
}

// Reconcile implements reconcile.Reconciler. Beside many ClusterQueues it rests three times as long
// as it works, so that the allocations that it answered are written in between.
func (r *CohortReconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	began := time.Now()
	if rest := r.rests.Sub(began); rest > 0 {
		return ctrl.Result{RequeueAfter: rest}, nil
	}
	r.ledger.suspend() // nothing grows until the Cohorts are written
	policy, leaves, err := r.policies.get(ctx, r, r.APIReader)
	if err != nil || leaves {
		return ctrl.Result{}, err
	}
	var departments v1alpha1.DepartmentList
	var allocations v1alpha1.ComputeAllocationList
	if err := cluster.List(ctx, r, &departments, &allocations); err != nil {
		return ctrl.Result{}, err
	}
	naming := r.Naming.Under(policy).In(departments.Items)
	shares := policy != nil && policy.Spec.IdleCompute.ShareUnallocated
	if !shares && len(departments.Items) == 0 {
		return requeueOnConflict(ctrl.Result{}, r.disable(ctx, policy))
	}
	state := newCondition(v1alpha1.ConditionShareUnallocated, metav1.ConditionTrue, "Shared", "Cohort %s lends unallocated compute", naming.Cohort)
	if !shares {
		state.Reason, state.Message = "Off", sharesNothing
	}
	others, err := r.otherOwner(ctx, naming.Cohort)
	if err != nil {
		return ctrl.Result{}, err
	}
	result := ctrl.Result{}
	if shares && others {
		state = newCondition(v1alpha1.ConditionShareUnallocated, metav1.ConditionFalse, "Blocked",
			"Cohort %s exists and is not managed by Kuota; delete it, or start Kuota with another --cohort", naming.Cohort)
		if shares, result.RequeueAfter = false, retryInterval; len(departments.Items) == 0 {
			r.answered.add(r.ledger.disable()) // the Cohort of another manager has no quota of Kuota
			return requeueOnConflict(result, r.patchPolicy(ctx, policy, state))
		}
	}
	types, err := clusterstate.Catalog(ctx, r, r.Naming.InstanceTypeLabel)
	if err != nil {
		return ctrl.Result{}, err
	}
	queues, err := r.clusterQueues(ctx, naming)
	if err != nil {
		return ctrl.Result{}, err
	}
	if len(queues) > restsBeside {
		defer func() { r.rests = time.Now().Add(min(3*time.Since(began), maxRest)) }()
	}
	newTree := func() (*desired.Tree, desired.Wishes) {
		return desired.NewTree(desired.Inputs{Naming: naming, Types: types, Unallocated: shares, Departments: departments.Items, Allocations: allocations.Items, ClusterQueues: queues, Problems: func(spec *v1alpha1.ComputeAllocationSpec) governance.FieldErrors {
			return effective.Problems(spec, r.Now())
		}})
	}
	tree, wishes := newTree()
	tree.Refused = func(before, after quota.PoolResources) string {
		return quota.DescribeRefused(quota.Refused(policy, before, after, types))
	}
	r.ledger.addTo(tree, wishes.Queues)
	before := maps.Clone(tree.Queues)
	refused, err := r.refuseBlocked(ctx, tree, wishes.Departments, newTree)
	if err != nil {
		return ctrl.Result{}, err
	}
	settled := tree.Settle(wishes.Departments, wishes.Queues)
	maps.Copy(settled.Departments, refused)
	cohorts, leftOut := tree.Cohorts()
	if err := r.applyCohorts(ctx, policy, naming, cohorts, settled.Moved); err != nil {
		r.answered.add(r.ledger.resume(nil, "the Cohorts that lend compute cannot be written: "+err.Error()))
		state = newCondition(v1alpha1.ConditionShareUnallocated, metav1.ConditionFalse, "ApplyFailed", "Kubernetes rejected a Cohort, retrying: %v", err)
		return requeueOnConflict(ctrl.Result{}, errors.Join(err, r.patchPolicy(ctx, policy, state)))
	}
	r.resume(tree, before, wishes.Queues, settled.Queues, allocations.Items)
	err = r.patchDepartments(ctx, tree, wishes, settled, allocations.Items)
	if shares && len(leftOut) > 0 {
		state = newCondition(v1alpha1.ConditionShareUnallocated, metav1.ConditionFalse, "TooManyPools",
			"Kueue supports 64 pools in a Cohort, so unallocated compute of %s is not lent. Group instance types into pools", strings.Join(leftOut, ", "))
	}
	return requeueOnConflict(result, errors.Join(err, r.patchPolicy(ctx, policy, state)))
}

// patchPolicy patches a condition of the policy, if there is one.
func (r *CohortReconciler) patchPolicy(ctx context.Context, policy *v1alpha1.ClusterPolicy, state metav1.Condition) error {
	if policy == nil {
		return nil
	}
	return patchPolicyStatus(ctx, r, policy, nil, state)
}

// sharesNothing is the message of the condition ShareUnallocated while the policy does not
// lend unallocated compute.
const sharesNothing = "unallocated compute is not lent"

// otherOwner reports whether a Cohort exists that is not Kuota's.
func (r *CohortReconciler) otherOwner(ctx context.Context, name string) (bool, error) {
	var present kueue.Cohort
	err := r.Get(ctx, client.ObjectKey{Name: name}, &present)
	return err == nil && !managed.ByKuota(&present), client.IgnoreNotFound(err)
}

// refuseBlocked removes from wishes the departments whose Cohort or namespace is that of another
// owner, and returns why. A Cohort that a department names and describes it may take over. trial is
// a tree to try that on.
func (r *CohortReconciler) refuseBlocked(ctx context.Context, tree *desired.Tree, wishes map[string]desired.Border, trial func() (*desired.Tree, desired.Wishes)) (map[string]desired.Refusal, error) {
	refused, taken := map[string]desired.Refusal{}, map[string]string{} // departments by the Cohort that they take over
	for name := range wishes {
		d := tree.Departments[name]
		cohort := desired.DepartmentCohort(d.Department)
		others, err := r.otherOwner(ctx, cohort)
		if err != nil {
			return nil, err
		}
		var namespace corev1.Namespace
		err = client.IgnoreNotFound(r.Get(ctx, client.ObjectKey{Name: desired.DepartmentNamespace(name)}, &namespace))
		if err != nil {
			return nil, err
		}
		switch {
		case namespace.Name != "" && !managed.ByKuota(&namespace):
			refused[name] = desired.Refusal{Reason: v1alpha1.ReasonBlocked, Message: fmt.Sprintf("namespace %s exists and is not managed by Kuota; delete it", namespace.Name)}
		case others && d.Spec.CohortName == "":
			refused[name] = desired.Refusal{Reason: v1alpha1.ReasonBlocked, Message: fmt.Sprintf("Cohort %s exists and is not managed by Kuota; delete it, or set cohortName in a new department to take it over", cohort)}
		case others:
			taken[cohort] = name
		}
	}
	if len(taken) > 0 {
		tried, all := trial()
		tried.Settle(all.Departments, all.Queues)
		cohorts, _ := tried.Cohorts()
		for _, want := range cohorts {
			name := taken[*want.GetName()]
			if name == "" {
				continue
			}
			delete(taken, *want.GetName())
			var is kueue.Cohort
			if err := r.APIReader.Get(ctx, client.ObjectKey{Name: *want.GetName()}, &is); err != nil {
				return nil, err
			}
			if !managed.ByKuota(&is) && !desired.SameCohort(want, &is) {
				refused[name] = desired.Refusal{Reason: v1alpha1.ReasonBlocked, Message: fmt.Sprintf("Cohort %s cannot be taken over, because the department would change it; correct the department, or the Cohort first", is.Name)}
			}
		}
	}
	for name := range refused {
		delete(wishes, name)
	}
	return refused, nil
}

// clusterQueues returns the ClusterQueues of Kuota, and those of others in a Cohort of the
// tree.
func (r *CohortReconciler) clusterQueues(ctx context.Context, naming desired.Naming) ([]*kueue.ClusterQueue, error) {
	var list kueue.ClusterQueueList
	if err := r.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	return naming.Members(list.Items, func(q *kueue.ClusterQueue) bool { return managed.ByKuota(q) }), nil
}

// resume lets ClusterQueues become what was granted, and reconciles the allocations that were
// refused before and are not any more.
func (r *CohortReconciler) resume(tree *desired.Tree, before map[string]desired.TreeQueue, wishes map[string]desired.Wish, refused map[string]desired.Refusal, all []v1alpha1.ComputeAllocation) {
	granted := map[string]grant{}
	for name, wish := range wishes {
		g := grant{Wish: desired.Wish{Department: wish.Department, Nominal: tree.Queues[name][wish.Department]}, wanted: wish, refused: refused[name]}
		if g.refused != (desired.Refusal{}) {
			g.Nominal = before[name][wish.Department]
		}
		granted[name] = g
	}
	teams, now := r.ledger.resume(granted, ""), map[string]bool{}
	for i := range all {
		if slices.ContainsFunc(desired.ClusterQueueNames(&all[i], r.Naming), func(name string) bool { return refused[name] != (desired.Refusal{}) }) {
			now[all[i].Name] = true
		} else if r.refused[all[i].Name] {
			teams = append(teams, all[i].Name)
		}
	}
	r.refused = now
	r.answered.add(teams)
}

// applyCohorts applies Cohorts and deletes earlier ones, in an order in which no quota counts
// twice: first what falls, then the parents that change, then what rises.
func (r *CohortReconciler) applyCohorts(ctx context.Context, policy *v1alpha1.ClusterPolicy, naming desired.Naming, cohorts []*applykueue.CohortApplyConfiguration, moved []string) error {
	var list kueue.CohortList
	if err := r.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	present := map[string]*kueue.Cohort{}
	for i := range list.Items {
		present[list.Items[i].Name] = &list.Items[i]
	}
	released := map[string]bool{} // DepartmentReconciler removes Kuota's labels from them
	for i := range naming.Departments {
		if d := &naming.Departments[i]; d.DeletionTimestamp != nil && d.Annotations[v1alpha1.AnnotationRelease] == "true" {
			released[desired.DepartmentCohort(d)] = true
		}
	}
	cohorts = slices.DeleteFunc(slices.Clone(cohorts), func(c *applykueue.CohortApplyConfiguration) bool { return released[*c.GetName()] })
	wanted := map[string]*applykueue.CohortApplyConfiguration{}
	for _, cohort := range cohorts {
		wanted[*cohort.GetName()] = cohort
	}
	for _, cohort := range cohorts {
		is := present[*cohort.GetName()]
		if is == nil || r.writes.isStale(is) {
			is = &kueue.Cohort{}
			if err := client.IgnoreNotFound(r.APIReader.Get(ctx, client.ObjectKey{Name: *cohort.GetName()}, is)); err != nil {
				return err
			}
		}
		if lower := desired.LowerCohort(cohort, is); lower != nil {
			if err := r.applyCohort(ctx, policy, lower); err != nil {
				return err
			}
		}
	}
	for _, department := range moved {
		for _, cohort := range cohorts {
			if cohort.Labels[desired.LabelDepartment] == department {
				if err := r.applyCohort(ctx, policy, cohort); err != nil {
					return err
				}
			}
		}
	}
	if err := r.deleteCohorts(ctx, func(name string) bool { return wanted[name] != nil || released[name] }); err != nil {
		return err
	}
	for _, cohort := range cohorts {
		if err := r.applyCohort(ctx, policy, cohort); err != nil {
			return err
		}
	}
	return nil
}

// applyCohort applies a Cohort unless it is up to date.
func (r *CohortReconciler) applyCohort(ctx context.Context, policy *v1alpha1.ClusterPolicy, cohort *applykueue.CohortApplyConfiguration) error {
	name, department := *cohort.GetName(), cohort.Labels[desired.LabelDepartment]
	var cached kueue.Cohort
	if err := client.IgnoreNotFound(r.Get(ctx, client.ObjectKey{Name: name}, &cached)); err != nil {
		return err
	}
	// The shared Cohort is always compared with the API server's.
	live := department == "" || cached.Name == "" || r.writes.isStale(&cached)
	copied := *cohort
	meta := *cohort.ObjectMetaApplyConfiguration
	copied.ObjectMetaApplyConfiguration = &meta
	object := managed.NewObject("Cohort", &kueue.Cohort{}, &copied, copied.ObjectMetaApplyConfiguration)
	object.TakesOver = department != "" && name != desired.DepartmentNamespace(department)
	correction, err := applier{r.Client, r.APIReader}.apply(ctx, object, live)
	if err != nil {
		return err
	}
	if written := copied.ObjectMetaApplyConfiguration.ResourceVersion; written != nil {
		r.writes.record(&kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: *written}})
	}
	if correction != nil && policy != nil {
		addCorrection(r.Events, r.Activity, policy, correction)
	}
	return nil
}

// deleteCohorts deletes the Cohorts that Kuota created and does not keep: that
// of an earlier policy has another name. If a CRD of Kuota's is being deleted, all stay.
func (r *CohortReconciler) deleteCohorts(ctx context.Context, keep func(name string) bool) error {
	var list kueue.CohortList
	if err := r.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range list.Items {
		cohort := &list.Items[i]
		if keep(cohort.Name) || !managed.ByKuota(cohort) || cohort.DeletionTimestamp != nil {
			continue
		}
		if cohort.Labels[desired.LabelDepartment] != "" {
			if leaves, err := crdsDeleted(ctx, r.APIReader); err != nil || leaves {
				return err
			}
		}
		if err := client.IgnoreNotFound(r.Delete(ctx, cohort.DeepCopy())); err != nil {
			return fmt.Errorf("delete Cohort %s: %w", cohort.Name, err)
		}
	}
	return nil
}

// disable deletes the Cohort, because the policy does not share unallocated
// compute.
func (r *CohortReconciler) disable(ctx context.Context, policy *v1alpha1.ClusterPolicy) error {
	if err := r.deleteCohorts(ctx, func(string) bool { return false }); err != nil {
		return err
	}
	r.answered.add(r.ledger.disable())
	return r.patchPolicy(ctx, policy, newCondition(v1alpha1.ConditionShareUnallocated, metav1.ConditionTrue, "Off", sharesNothing))
}

// resolvedQuota returns the nominal quota of an allocation.
func resolvedQuota(resolved quota.Resolved) quota.PoolResources {
	pools := quota.PoolResources{}
	pools.AddNominal(resolved)
	return pools
}
