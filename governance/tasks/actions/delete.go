package actions

import (
	"context"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/record/audit"
	"kuota.dev/kuota/governance/tasks"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Delete deletes, as user, what the user submitted: the job, the pods of a group, or
// the Workload if nothing owns it, with all dependents.
func (s *Service) Delete(ctx context.Context, user governance.User, at tasks.Address) error {
	ctx, cancel := context.WithTimeout(ctx, cluster.WriteLimit)
	defer cancel()
	t, writer, err := s.open(ctx, user, at)
	if err != nil {
		return err
	}
	if len(objects(t)) == 0 {
		return &governance.Error{Kind: governance.Invalid, Op: "delete task", Message: noObjects}
	}
	missing, err := s.delete(ctx, user, t, writer, objects(t))
	if err != nil || !missing || len(t.Parts) == 0 || objects(t)[0].kind == workloadKind {
		return err
	}
	// The job is deleted already; only the Workload is left.
	_, err = s.delete(ctx, user, t, writer, workloads(t))
	return err
}

// delete deletes objects; missing reports whether none of them existed.
func (s *Service) delete(ctx context.Context, user governance.User, t *tasks.Task, writer client.Client, all []object) (missing bool, err error) {
	missing = true
	id := audit.NewID()
	for _, o := range all {
		object, err := s.metadata(o, t.Namespace)
		if err != nil {
			return false, err
		}
		err = writer.Delete(ctx, object, client.Preconditions{UID: &o.uid}, client.PropagationPolicy("Background"))
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // another object has the name
			continue
		}
		err = translate("delete task", t, err)
		s.Audit.Record(audit.Change{User: user, Action: audit.Delete, Object: object, Of: of(t), ID: id, Err: err})
		if err != nil {
			return false, err
		}
		missing = false
	}
	return missing, nil
}
