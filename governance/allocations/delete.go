package allocations

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/cluster/gitops"
	"kuota.dev/kuota/governance/cluster/managed"
	"kuota.dev/kuota/governance/cluster/rejection"
	"kuota.dev/kuota/governance/record/audit"
	"kuota.dev/kuota/governance/spec/change"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deleteTries is the number of attempts to delete while the status of the
// allocation changes concurrently.
const deleteTries = 5

// PreviewDeletion returns what deleting a team's allocation would do.
func (s *Service) PreviewDeletion(ctx context.Context, user governance.User, name string) (DeletionPreview, error) {
	allocation, err := s.findFor(ctx, user, s.Access.MayDeleteAllocations, "delete allocation", name)
	if err != nil {
		return DeletionPreview{}, err
	}
	reader, err := s.Cluster.Reader()
	if err != nil {
		return DeletionPreview{}, err
	}
	tasks, err := s.tasksOf(ctx, user, reader, &allocation)
	if err != nil {
		return DeletionPreview{}, err
	}
	departure := DeletionPreview{Waiting: tasks.waiting, Namespace: s.namespaceOf(&allocation)}
	for _, h := range tasks.admitted {
		departure.Running = append(departure.Running, h.task)
	}
	objects, err := managed.Removable(ctx, reader, &allocation, s.Naming)
	if err != nil {
		return DeletionPreview{}, err
	}
	departure.Removed, err = removals(ctx, reader, objects)
	return departure, err
}

// removals returns those of the objects that exist and are Kuota's, and so would
// be removed.
func removals(ctx context.Context, reader client.Reader, objects []managed.Object) ([]change.Object, error) {
	var removed []change.Object
	for _, object := range objects {
		err := reader.Get(ctx, object.Key, object.Live)
		if client.IgnoreNotFound(err) != nil {
			return nil, cluster.Translate("read "+object.Kind, err)
		}
		if err == nil && managed.ByKuota(object.Live) {
			removed = append(removed, change.Object{Kind: object.Kind, Name: object.Key.Name, Action: change.Removed})
		}
	}
	return removed, nil
}

// Deletion is how an allocation is deleted.
type Deletion struct {
	ResourceVersion string // of the allocation that the user read
	Drain           bool   // requeue the running tasks, which otherwise prevent it
	Release         bool   // keep the queues, without Kuota's labels; running tasks continue
	Reason          string // why; empty for none
}

// Delete deletes a team's allocation as user. An allocation that is being
// deleted can still be drained.
func (s *Service) Delete(ctx context.Context, user governance.User, name string, options Deletion) error {
	ctx, cancel := context.WithTimeout(ctx, cluster.WriteLimit)
	defer cancel()
	deleted := &v1alpha1.ComputeAllocation{}
	deleted.Name = name
	done, err := s.delete(ctx, user, deleted, options)
	action := audit.Delete
	if options.Release {
		action = audit.Release
	}
	switch kind := governance.KindOf(err); {
	case err == nil && done, err != nil && (kind == governance.Forbidden || kind == governance.Unavailable):
		s.Audit.Record(audit.Change{User: user, Action: action, Object: deleted, Old: deleted.Spec, Reason: options.Reason, Err: err})
	}
	var ours *governance.Error
	if errors.As(err, &ours) && ours.Message == cluster.Unreachable {
		ours.Message = "The cluster cannot be reached. Check whether the team is being deleted, or try again in a moment."
	}
	return translateNotFound(err, name)
}

func (s *Service) delete(ctx context.Context, user governance.User, allocation *v1alpha1.ComputeAllocation, options Deletion) (done bool, err error) {
	reader, err := s.Cluster.Reader()
	if err != nil {
		return false, err
	}
	writer, delegated, err := s.writerOf(ctx, user, allocation.Name, "delete allocation")
	if err != nil {
		return false, err
	}
	if delegated && options.Release {
		return false, access.Forbidden("release team")
	}
	for try := 1; ; try++ {
		same, err := s.Cluster.SpecUnchanged(ctx, writer, allocation, options.ResourceVersion)
		if err != nil {
			return false, cluster.Translate("delete allocation", err)
		}
		deleting := allocation.DeletionTimestamp != nil
		if deleting && options.Release && allocation.Annotations[v1alpha1.AnnotationRelease] != "true" {
			return false, &governance.Error{Kind: governance.Conflict, Op: "release team", Message: "The team is being deleted, and its queues with it."}
		}
		if !same && !deleting {
			return false, &governance.Error{Kind: governance.Conflict, Op: "delete allocation", Message: "The allocation was changed in the meantime. Review it before you delete it."}
		}
		if !deleting {
			if err := gitops.CheckUnmanaged(allocation, "delete allocation", "Team "+allocation.Name); err != nil {
				return false, err
			}
		}
		if !deleting && !options.Drain && !options.Release {
			if err := s.idle(ctx, user, reader, allocation); err != nil {
				return false, err
			}
		}
		options.ResourceVersion = allocation.ResourceVersion // of the version just checked
		err = nil
		if annotated := annotateDeletion(allocation, user, options, deleting); annotated != nil {
			before := allocation.DeepCopy()
			allocation.Annotations = annotated
			if delegated { // they may not patch
				err = cluster.Update(ctx, writer, writer, before, allocation)
			} else {
				err = writer.Patch(ctx, allocation, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
			}
			if apierrors.IsForbidden(err) && !options.Drain && !options.Release { // users who may delete do not need permission to update
				err, allocation.Annotations = nil, before.Annotations
			}
		}
		if err == nil && !deleting {
			err = writer.Delete(ctx, allocation, client.Preconditions{UID: &allocation.UID, ResourceVersion: &allocation.ResourceVersion})
		}
		err = rejection.Translate("delete allocation", err)
		if governance.KindOf(err) != governance.Conflict || try == deleteTries {
			return err == nil && !deleting, err
		}
	}
}

// annotateDeletion returns the annotations of an allocation before its deletion:
// whether it is drained or released and, for its last revision, by whom and why. It returns
// nil if they are already set.
func annotateDeletion(allocation *v1alpha1.ComputeAllocation, user governance.User, options Deletion, deleting bool) map[string]string {
	wanted := allocation.DeepCopy()
	if wanted.Annotations == nil {
		wanted.Annotations = map[string]string{}
	}
	if options.Drain {
		wanted.Annotations[v1alpha1.AnnotationDrain] = "true"
	}
	if options.Release {
		wanted.Annotations[v1alpha1.AnnotationRelease] = "true"
	}
	if !deleting {
		wanted.Annotations[v1alpha1.AnnotationDeletedBy] = user.Name
		v1alpha1.SetReason(wanted, options.Reason)
	}
	if maps.Equal(wanted.Annotations, allocation.Annotations) {
		return nil
	}
	return wanted.Annotations
}

// idle returns an error while tasks of the team are admitted.
func (s *Service) idle(ctx context.Context, user governance.User, reader client.Reader, allocation *v1alpha1.ComputeAllocation) error {
	tasks, err := s.tasksOf(ctx, user, reader, allocation)
	if err != nil {
		return err
	}
	running := len(tasks.admitted)
	if running == 0 {
		return nil
	}
	what := fmt.Sprintf("%d of its tasks are running", running)
	if running == 1 {
		what = "1 of its tasks is running"
	}
	return &governance.Error{
		Kind: governance.Invalid, Op: "delete allocation", Message: "The team's tasks are still running.",
		Fields: []governance.FieldError{{Message: what + ": hold the queue and wait until they finish, or drain the queue, which requeues them"}},
	}
}

// tasksOf returns a team's unfinished tasks, with their names if user may see
// them.
func (s *Service) tasksOf(ctx context.Context, user governance.User, reader client.Reader, allocation *v1alpha1.ComputeAllocation) (teamTasks, error) {
	named, err := s.Access.CanSee(ctx, user, "")
	if err == nil && !named {
		named, err = s.Access.CanSee(ctx, user, s.namespaceOf(allocation))
	}
	if err != nil {
		return teamTasks{}, err
	}
	return tasksOf(ctx, reader, allocation.Name, named)
}
