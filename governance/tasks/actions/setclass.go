package actions

import (
	"context"
	"fmt"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/audit"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/tasks"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// SetClass gives a task another priority class, as user, by the label of its job,
// which Kueue follows. The class must exist; Kueue's own objections are
// governance.Invalid with its words.
func (s *Service) SetClass(ctx context.Context, user governance.User, at tasks.Address, class string) error {
	ctx, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	t, writer, err := s.open(ctx, user, at)
	if err != nil {
		return err
	}
	switch {
	case t.State.Finished():
		return changed(fmt.Sprintf("%s has ended in between. Its class decides nothing any more.", t.Name))
	case unclassed(t) != "":
		return &governance.Error{Kind: governance.Invalid, Op: "change class", Message: unclassed(t)}
	}
	var object kueue.WorkloadPriorityClass
	switch err := s.Cluster.APIReader().Get(ctx, client.ObjectKey{Name: class}, &object); {
	case apierrors.IsNotFound(err):
		return changed(fmt.Sprintf("There is no priority class %s any more. Choose another one.", class))
	case err != nil:
		return cluster.Translate("read priority class", err)
	}
	if t.PriorityClass == class {
		return nil
	}
	job, err := s.metadata(objects(t)[0], t.Namespace)
	if err != nil {
		return err
	}
	uid := job.UID
	err = writer.Patch(ctx, job, merge(map[string]any{"metadata": map[string]any{"uid": uid, "labels": map[string]string{labelClass: class}}}))
	err = refused("change class", t, err)
	job.UID, job.Namespace, job.Name = uid, t.Namespace, t.Name
	s.Audit.Record(audit.Change{
		User: user, Action: "update", Object: job, Old: classSpec(t.PriorityClass), New: classSpec(class), Err: err,
		Discriminator: job.ResourceVersion, // a label is no new generation
	})
	if err == nil {
		s.copied(ctx, t, class)
	}
	return err
}

// copyLimit is how long Kueue is waited for.
const copyLimit = 2 * time.Second

// copied waits until Kueue has copied the class, or for a while. A task that is
// resumed, or gets its quota, before that is never given one (Kueue 0.19).
func (s *Service) copied(ctx context.Context, t *tasks.Task, class string) {
	ctx, cancel := context.WithTimeout(ctx, copyLimit)
	defer cancel()
	s.Tasks.WaitForPriorityClass(ctx, t.Address(), class)
}

// classSpec is a class as the audit shows it.
func classSpec(class string) spec {
	if class == "" {
		return nil
	}
	return spec{"priorityClass": class}
}
