package allocations

import (
	"context"
	"fmt"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/gitops"
	"kuota.dev/kuota/governance/cluster/rejection"
	"kuota.dev/kuota/governance/record/audit"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Update changes the spec of a team's allocation as user, for the reason in its
// annotation AnnotationReason. resourceVersion is that of the version that the
// user read: if someone changed the spec since, Update returns
// governance.Conflict and writes nothing. It creates pools first. A repeated
// update to the same spec succeeds, so an update whose response was lost can be
// repeated.
func (s *Service) Update(ctx context.Context, user governance.User, state State, allocation *v1alpha1.ComputeAllocation, pools []v1alpha1.Pool) error {
	ctx, cancel := context.WithTimeout(ctx, cluster.WriteLimit)
	defer cancel()
	before, after, err := s.update(ctx, user, state, allocation, pools)
	change := audit.Change{User: user, Action: audit.Update, Object: allocation, New: allocation.Spec, Err: err}
	if before != nil {
		change.Old, change.Action = before.Spec, audit.OfActivation(before.Spec.Activation, allocation.Spec.Activation)
	}
	switch governance.KindOf(err) {
	case governance.Forbidden, governance.Unavailable:
		s.Audit.Record(change)
	}
	if err == nil && before.Generation != after.Generation {
		change.Object, change.New = after, after.Spec
		s.Audit.Record(change)
		s.Cluster.WaitForCache(ctx, after)
	}
	return TranslateUnreachable(err)
}

func (s *Service) update(ctx context.Context, user governance.User, state State, allocation *v1alpha1.ComputeAllocation, pools []v1alpha1.Pool) (before, after *v1alpha1.ComputeAllocation, err error) {
	reader, err := s.Cluster.Reader()
	if err != nil {
		return nil, nil, err
	}
	writer, _, err := s.writer(ctx, user, allocation, "update allocation")
	if err != nil {
		return nil, nil, err
	}
	wanted, err := s.build(ctx, state, allocation, pools)
	if err != nil {
		return nil, nil, err
	}
	if err := wanted.checkConflicts(ctx, reader, allocation); err != nil {
		return nil, nil, err
	}
	if len(pools) > 0 {
		if before, _, err = s.edit(ctx, writer, allocation, client.DryRunAll); err != nil {
			return before, nil, err
		}
		if err := s.addPools(ctx, user, &allocation.Spec, pools); err != nil {
			return before, nil, err
		}
	}
	return s.edit(ctx, writer, allocation)
}

// edit writes the spec of an allocation over the version at its resourceVersion.
func (s *Service) edit(ctx context.Context, writer client.Client, allocation *v1alpha1.ComputeAllocation, options ...client.UpdateOption) (before, after *v1alpha1.ComputeAllocation, err error) {
	after = &v1alpha1.ComputeAllocation{}
	after.Name = allocation.Name
	was, err := s.Cluster.UpdateSpec(ctx, writer, after, allocation.ResourceVersion, func() error {
		if after.DeletionTimestamp != nil {
			return &governance.Error{Kind: governance.Conflict, Op: "update allocation", Message: fmt.Sprintf("Team %s is being deleted and cannot be changed.", after.Name)}
		}
		if err := gitops.CheckUnmanaged(after, "update allocation", "Team "+after.Name); err != nil {
			return err
		}
		if after.Spec.Observed() {
			return &governance.Error{Kind: governance.Conflict, Op: "update allocation", Message: fmt.Sprintf("Kuota only observes ClusterQueue %s of team %s, and cannot change it.", after.Spec.ClusterQueueName, after.Name)}
		}
		after.Spec = *allocation.Spec.DeepCopy()
		v1alpha1.SetReason(after, allocation.Annotations[v1alpha1.AnnotationReason])
		delete(after.Annotations, v1alpha1.AnnotationDeletedBy) // of a rejected deletion
		return nil
	}, options...)
	before, _ = was.(*v1alpha1.ComputeAllocation)
	return before, after, translateNotFound(rejection.Translate("update allocation", err), allocation.Name)
}

// translateNotFound names the team whose allocation no longer exists.
func translateNotFound(err error, team string) error {
	if governance.KindOf(err) == governance.NotFound {
		return &governance.Error{Kind: governance.NotFound, Op: "find allocation", Message: fmt.Sprintf("The allocation of team %s was deleted.", team), Err: err}
	}
	return err
}

// QueueActivity is the current tasks of a team.
type QueueActivity struct {
	Running []Task // those that use quota; named only for users who may see them
	Waiting int
}

// QueueActivity returns the tasks that holding or resuming a team's queue
// affects, for users who may update allocations.
func (s *Service) QueueActivity(ctx context.Context, user governance.User, name string) (QueueActivity, error) {
	allocation, err := s.findFor(ctx, user, s.Access.MayUpdateAllocations, "hold queue", name)
	if err != nil {
		return QueueActivity{}, err
	}
	reader, err := s.Cluster.Reader()
	if err != nil {
		return QueueActivity{}, err
	}
	tasks, err := s.tasksOf(ctx, user, reader, &allocation)
	if err != nil {
		return QueueActivity{}, err
	}
	activity := QueueActivity{Waiting: tasks.waiting}
	for _, h := range tasks.admitted {
		activity.Running = append(activity.Running, h.task)
	}
	return activity, nil
}
