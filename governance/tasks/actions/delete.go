package actions

import (
	"context"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/audit"
	"kuota.dev/kuota/governance/tasks"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Delete deletes what a task was submitted as, as user: its job, the pods of a
// group, or the Workload where nothing is behind it. What they own goes with
// them.
func (s *Service) Delete(ctx context.Context, user governance.User, at tasks.Address) error {
	ctx, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	t, writer, err := s.open(ctx, user, at)
	if err != nil {
		return err
	}
	if len(objects(t)) == 0 {
		return &governance.Error{Kind: governance.Invalid, Op: "delete task", Message: loose}
	}
	gone, err := s.delete(ctx, user, t, writer, objects(t))
	if err != nil || !gone || t.NoWorkload || objects(t)[0].kind == workloadKind {
		return err
	}
	// Its job was gone already: what is left is Kueue's record of it.
	_, err = s.delete(ctx, user, t, writer, workloads(t))
	return err
}

// delete deletes objects; gone tells whether none of them was there any more.
func (s *Service) delete(ctx context.Context, user governance.User, t *tasks.Task, writer client.Client, all []object) (gone bool, err error) {
	gone = true
	for _, o := range all {
		object, err := s.metadata(o, t.Namespace)
		if err != nil {
			return false, err
		}
		err = writer.Delete(ctx, object, client.Preconditions{UID: &o.uid}, client.PropagationPolicy("Background"))
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // another one has its name by now
			continue
		}
		err = refused("delete task", t, err)
		s.Audit.Record(audit.Change{User: user, Action: "delete", Object: object, Err: err})
		if err != nil {
			return false, err
		}
		gone = false
	}
	return gone, nil
}
