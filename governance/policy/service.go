package policy

import (
	"context"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/record/audit"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Service reads, reviews and saves the cluster policy.
type Service struct {
	Cluster *cluster.Cluster
	Access  *access.Service
	Audit   *audit.Recorder
	Naming  desired.Naming
	// Kueue returns whether Kueue must restart for a policy, or the patch that an
	// admin must apply to its configuration. If nil, neither is previewed.
	Kueue func(context.Context, *v1alpha1.ClusterPolicySpec) (restart bool, patch string, err error)
	// Secrets returns the names of the Secrets in the namespace of the console. If nil, they are
	// not known.
	Secrets func(context.Context) ([]string, error)
}

// State reads the policy from the cache, for every reader who sees a team.
// Readers who see only some teams are no admins, so no access review is sent for
// them: see docs/decisions/0008.
func (s *Service) State(ctx context.Context, user governance.User) (State, error) {
	scope, err := s.Access.Scope(ctx, user)
	outside := governance.KindOf(err) == governance.Outside
	if err != nil && !outside {
		return State{}, err
	}
	var may bool
	if scope.All || scope.Empty() {
		var askErr error
		if may, askErr = s.Access.MayEditPolicy(ctx, user); askErr != nil {
			return State{}, askErr
		}
	}
	if outside && !may {
		return State{}, err
	}
	state, err := s.read(ctx)
	state.MayEdit, state.NoMutation = may, s.Cluster.MissingKinds().MutatingPolicies
	if scope.All {
		for _, team := range state.teams {
			state.Teams = append(state.Teams, team.Name)
		}
		state.Departments = state.departments
	}
	return state, err
}

// CountTasks sets Tasks of a state.
func (s *Service) CountTasks(ctx context.Context, state *State) (err error) {
	state.Tasks, err = s.tasksByClass(ctx, state.Policy)
	if governance.KindOf(err) == governance.Unavailable { // the policy can be shown without task counts
		return nil
	}
	return err
}

// read returns the state without permissions and task counts.
func (s *Service) read(ctx context.Context) (State, error) {
	reader, err := s.Cluster.Reader()
	if err != nil {
		return State{}, err
	}
	var state State
	var policy v1alpha1.ClusterPolicy
	switch err := reader.Get(ctx, client.ObjectKey{Name: v1alpha1.ClusterPolicyName}, &policy); {
	case err == nil:
		state.Policy = &policy
	case client.IgnoreNotFound(err) != nil:
		return State{}, cluster.Translate("read policy", err)
	}
	var nodes corev1.NodeList
	if err := cluster.List(ctx, reader, &nodes); err != nil {
		return State{}, err
	}
	allocations, err := cluster.All[v1alpha1.ComputeAllocation](ctx, reader)
	if err != nil {
		return State{}, err
	}
	slices.SortFunc(allocations, func(a, b *v1alpha1.ComputeAllocation) int { return strings.Compare(a.Name, b.Name) })
	departments, err := cluster.All[v1alpha1.Department](ctx, reader)
	if err != nil {
		return State{}, err
	}
	state = NewState(state.Policy, nodes.Items, allocations, s.Naming.InstanceTypeLabel)
	for _, d := range departments {
		state.departments = append(state.departments, d.Name)
	}
	slices.Sort(state.departments)
	return state, nil
}

// NewState returns the state that a policy is validated against, without
// permissions and task counts.
func NewState(policy *v1alpha1.ClusterPolicy, nodes []corev1.Node, teams []*v1alpha1.ComputeAllocation, instanceTypeLabel string) State {
	state := State{Policy: policy, nodes: nodes, teams: teams, label: instanceTypeLabel}
	state.Types = state.catalog(state.appliedPools())
	return state
}

// tasksByClass returns the number of unfinished tasks of each priority class.
func (s *Service) tasksByClass(ctx context.Context, policy *v1alpha1.ClusterPolicy) (map[string]int, error) {
	reader, err := s.Cluster.Reader()
	if err != nil {
		return nil, err
	}
	all, err := cluster.All[kueue.Workload](ctx, reader)
	if err != nil {
		return nil, err
	}
	names := map[string]string{} // of classes, by the names of their WorkloadPriorityClasses
	if policy != nil {
		for _, class := range policy.Spec.PriorityClasses {
			names[desired.PriorityClassName(class.Name)] = class.Name
		}
	}
	tasks := map[string]int{}
	for _, w := range all {
		if meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished) {
			continue
		}
		class := ""
		if ref := w.Spec.PriorityClassRef; ref != nil && ref.Kind == kueue.WorkloadPriorityClassKind {
			if class = names[ref.Name]; class == "" {
				class = strings.TrimSuffix(ref.Name, desired.PriorityClassName(""))
			}
		}
		tasks[class]++
	}
	return tasks, nil
}

// Nodes returns the number of nodes that each of these pools would have. The
// first match wins.
func (s *Service) Nodes(ctx context.Context, pools []v1alpha1.Pool) ([]int64, error) {
	state, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	types := state.catalog(pools)
	counts := make([]int64, len(pools))
	for i, pool := range pools {
		if found, named := types.Named(pool.Name); named {
			counts[i] = found.Nodes
		}
	}
	return counts, nil
}
