package actions

import (
	"context"
	"fmt"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/controllers/loopguard"
	"kuota.dev/kuota/governance/record/audit"
	"kuota.dev/kuota/governance/tasks"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Stop deactivates a task as user: it loses its quota and its job is suspended. A
// serving task is scaled to 0. It succeeds for a task that is stopped already. A task that finished or was deleted is
// governance.Conflict or governance.NotFound.
func (s *Service) Stop(ctx context.Context, user governance.User, at tasks.Address) error {
	return s.activate(ctx, user, at, false)
}

// Resume activates a stopped task as user: it waits in its queue again. A serving task
// gets the replicas that it had.
func (s *Service) Resume(ctx context.Context, user governance.User, at tasks.Address) error {
	return s.activate(ctx, user, at, true)
}

func (s *Service) activate(ctx context.Context, user governance.User, at tasks.Address, active bool) error {
	ctx, cancel := context.WithTimeout(ctx, cluster.WriteLimit)
	defer cancel()
	t, writer, err := s.open(ctx, user, at)
	if err != nil {
		return err
	}
	if t.NoWorkload && !t.IsServing() {
		return changed(notApplicable(Stop, t))
	}
	if _, held := t.Hold(); t.Kind == v1alpha1.ElasticJobKind && !held {
		return s.suspend(ctx, user, t, writer, !active)
	}
	if t.IsServing() {
		return s.scale(ctx, user, t, writer, active)
	}
	unfinished, id := 0, audit.NewID()
	for _, part := range t.Parts {
		var w kueue.Workload
		switch err := writer.Get(ctx, client.ObjectKeyFromObject(part), &w); {
		case apierrors.IsNotFound(err):
			continue // deleted
		case err != nil:
			return cluster.Translate("read task", err)
		case w.UID != part.UID || meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished):
			continue
		}
		unfinished++
		was := w.Spec.Active == nil || *w.Spec.Active
		_, marked := loopguard.MarkOf(&w)
		if was == active && !marked {
			continue
		}
		metadata := map[string]any{"uid": w.UID}
		if marked { // the user overrides the loop guard
			metadata["annotations"] = map[string]any{loopguard.MarkAnnotation: nil}
		}
		err := writer.Patch(ctx, &w, merge(map[string]any{"metadata": metadata, "spec": map[string]any{"active": active}}))
		err = translate("switch task", t, err)
		s.Audit.Record(audit.Change{User: user, Action: audit.Switching(active), Object: &w, Of: of(t), ID: id, Old: spec{"active": was}, New: spec{"active": active}, Err: err})
		if err != nil {
			return err
		}
	}
	if unfinished == 0 {
		return changed(fmt.Sprintf("%s has ended in between. There is nothing to stop or to resume.", t.Name))
	}
	return nil
}

// of returns a task as activity names it.
func of(t *tasks.Task) audit.Object {
	return audit.Object{Kind: t.Kind, Namespace: t.Namespace, Name: t.Name, UID: t.UID}
}

// suspend suspends or resumes an ElasticJob, as user. Its controller deactivates or
// activates the Workload of its minimum, and deletes its growth.
func (s *Service) suspend(ctx context.Context, user governance.User, t *tasks.Task, writer client.Client, suspend bool) error {
	if t.State.Finished() {
		return changed(fmt.Sprintf("%s has ended in between. There is nothing to stop or to resume.", t.Name))
	}
	job, err := s.metadata(objects(t)[0], t.Namespace)
	if err != nil {
		return err
	}
	uid := job.UID
	err = translate("switch task", t, writer.Patch(ctx, job, merge(map[string]any{"metadata": map[string]any{"uid": uid}, "spec": map[string]any{"suspend": suspend}})))
	job.UID, job.Namespace, job.Name = uid, t.Namespace, t.Name
	s.Audit.Record(audit.Change{User: user, Action: audit.Switching(!suspend), Object: job, Of: of(t), Old: spec{"suspend": t.State == tasks.Stopped}, New: spec{"suspend": suspend}, Err: err})
	return err
}

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
