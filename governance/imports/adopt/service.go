package adopt

import (
	"context"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/cluster/managed"
	"kuota.dev/kuota/governance/imports/adoption"
	"kuota.dev/kuota/governance/kueue/kueueconfig"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/record/audit"

	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Service adopts ClusterQueues as the signed-in user.
type Service struct {
	Cluster *cluster.Cluster
	Naming  desired.Naming
	Access  *access.Service
	Audit   *audit.Recorder
	// Kueue returns Kueue's configuration.
	Kueue func(context.Context) (kueueconfig.Current, error)
}

// Plan returns how the ClusterQueues of the cluster can be adopted. It returns
// governance.NotFound to users who may not create allocations and edit the cluster
// policy, or do not see all teams: the plan names ClusterQueues of any namespace.
func (s *Service) Plan(ctx context.Context, user governance.User) (adoption.Plan, error) {
	if err := s.mayAdopt(ctx, user); err != nil {
		return adoption.Plan{}, err
	}
	reader, err := s.Cluster.Reader()
	if err != nil {
		return adoption.Plan{}, err
	}
	return ReadPlan(ctx, reader, s.Naming, s.Kueue)
}

// Unmanaged returns the number of ClusterQueues that Kuota neither manages nor
// observes.
func (s *Service) Unmanaged(ctx context.Context) (int, error) {
	reader, err := s.Cluster.Reader()
	if err != nil {
		return 0, err
	}
	var queues kueue.ClusterQueueList
	var allocations v1alpha1.ComputeAllocationList
	if err := cluster.List(ctx, reader, &queues, &allocations); err != nil {
		return 0, err
	}
	named := map[string]bool{}
	for i := range allocations.Items {
		named[desired.ClusterQueueName(&allocations.Items[i], s.Naming)] = true
	}
	n := 0
	for i := range queues.Items {
		if q := &queues.Items[i]; !named[q.Name] && !managed.ByKuota(q) {
			n++
		}
	}
	return n, nil
}

// ReadPlan reads the cluster and returns the plan. kueue returns Kueue's
// configuration.
func ReadPlan(ctx context.Context, reader client.Reader, naming desired.Naming, kueue func(context.Context) (kueueconfig.Current, error)) (adoption.Plan, error) {
	in, err := clusterstate.AdoptionInput(ctx, reader, naming)
	if err != nil {
		return adoption.Plan{}, err
	}
	if current, err := kueue(ctx); err == nil { // otherwise the plan reports that it is unknown
		in.Kueue = &current
	}
	return adoption.NewPlan(in), nil
}

func (s *Service) mayAdopt(ctx context.Context, user governance.User) error {
	for _, may := range []func(context.Context, governance.User) (bool, error){
		s.Access.MayCreateAllocations, s.Access.MayEditPolicy,
		func(ctx context.Context, user governance.User) (bool, error) { return s.Access.CanSee(ctx, user, "") },
	} {
		if ok, err := may(ctx, user); err != nil {
			return err
		} else if !ok {
			return &governance.Error{Kind: governance.NotFound, Op: "plan the adoption of ClusterQueues", Message: "There is no such page, or you may not see it."}
		}
	}
	return nil
}

// Check returns why the API server would reject the adoption of each of the ClusterQueues
// with these names by the user.
func (s *Service) Check(ctx context.Context, user governance.User, names []string) ([]Result, error) {
	ctx, cancel := context.WithTimeout(ctx, cluster.WriteLimit)
	defer cancel()
	_, selected, writer, err := s.selection(ctx, user, names)
	if err != nil {
		return nil, err
	}
	return Check(ctx, writer, selected), nil
}

func (s *Service) selection(ctx context.Context, user governance.User, names []string) (plan adoption.Plan, selected []adoption.Queue, writer client.Client, err error) {
	if plan, err = s.Plan(ctx, user); err != nil {
		return plan, nil, nil, err
	}
	if selected, err = Select(plan, names); err != nil {
		return plan, nil, nil, err
	}
	writer, err = s.Cluster.ClientAs(user)
	return plan, selected, writer, err
}

// Adopt adopts the ClusterQueues with these names, for a reason that may be empty.
func (s *Service) Adopt(ctx context.Context, user governance.User, names []string, reason string) ([]Result, error) {
	ctx, cancel := context.WithTimeout(ctx, cluster.WriteLimit)
	defer cancel()
	plan, selected, writer, err := s.selection(ctx, user, names)
	if err != nil {
		return nil, err
	}
	return Adopt(ctx, writer, plan, selected, reason, func(object client.Object) {
		change := audit.Change{User: user, Action: audit.Create, Object: object, Reason: reason}
		switch o := object.(type) {
		case *v1alpha1.ClusterPolicy:
			change.New = o.Spec
		case *v1alpha1.Department:
			change.Action, change.New = audit.Adopt, o.Spec
		case *v1alpha1.ComputeAllocation:
			change.Action, change.New = audit.Adopt, o.Spec
		}
		s.Audit.Record(change)
	})
}
