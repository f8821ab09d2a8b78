package actions

import (
	"context"
	"fmt"
	"slices"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/record/audit"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/queries"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// SetClass sets the priority class of a task, as user, by the label of its job, which
// Kueue copies to the Workload whenever it changes (0.16 to 0.19). The class must exist. A
// refusal by Kueue is governance.Invalid with Kueue's message.
func (s *Service) SetClass(ctx context.Context, user governance.User, at tasks.Address, class string) error {
	return s.setClass(ctx, user, at, class, audit.ChangeClass)
}

// MoveToFront is SetClass with the class that a review of Front chose.
func (s *Service) MoveToFront(ctx context.Context, user governance.User, at tasks.Address, class string) error {
	return s.setClass(ctx, user, at, class, audit.Front)
}

func (s *Service) setClass(ctx context.Context, user governance.User, at tasks.Address, class string, action audit.Action) error {
	ctx, cancel := context.WithTimeout(ctx, cluster.WriteLimit)
	defer cancel()
	t, writer, err := s.open(ctx, user, at)
	if err != nil {
		return err
	}
	switch {
	case t.State.Finished():
		return changed(fmt.Sprintf("%s has ended in between. Its class decides nothing any more.", t.Name))
	case classFixed(t) != "":
		return &governance.Error{Kind: governance.Invalid, Op: "change class", Message: classFixed(t)}
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
	err = writer.Patch(ctx, job, merge(map[string]any{"metadata": map[string]any{"uid": uid, "labels": map[string]string{desired.PriorityClassLabel: class}}}))
	err = translate("change class", t, err)
	job.UID, job.Namespace, job.Name = uid, t.Namespace, t.Name
	s.Audit.Record(audit.Change{
		User: user, Action: action, Object: job, Of: of(t), Old: classSpec(t.PriorityClass), New: classSpec(class), Err: err,
		Discriminator: job.ResourceVersion, // a label does not change the generation
	})
	if err == nil {
		s.waitForCopy(ctx, t, class)
	}
	return err
}

// copyTimeout bounds the wait for Kueue.
const copyTimeout = 2 * time.Second

// waitForCopy waits until Kueue has copied the class to the Workload. A task that is
// resumed or admitted before that never gets the class (Kueue 0.19).
func (s *Service) waitForCopy(ctx context.Context, t *tasks.Task, class string) {
	ctx, cancel := context.WithTimeout(ctx, copyTimeout)
	defer cancel()
	s.Tasks.WaitForPriorityClass(ctx, t.Address(), class)
}

// classSpec returns a priority class for the audit log.
func classSpec(class string) spec {
	if class == "" {
		return nil
	}
	return spec{"priorityClass": class}
}

// classFixed returns why the priority class of a task can never change; empty if it
// can.
func classFixed(t *tasks.Task) string {
	ref := t.Main.Spec.PriorityClassRef
	switch {
	case t.Kind == tasks.PodGroup:
		return "Kueue reads the class of pods without a job from their labels when they are created, and not again. Submit them again with another class."
	case len(objects(t)) == 0 || objects(t)[0].kind == workloadKind:
		return "This Workload has no job to copy a class from."
	case ref != nil && ref.Kind != kueue.WorkloadPriorityClassKind:
		return fmt.Sprintf("Its priority comes from priorityClassName %s of its pods, so Kueue ignores its class. Submit it again without priorityClassName.", ref.Name)
	}
	return ""
}

// admittedWithoutClass reports whether a task was admitted without a priority class.
// Kueue refuses to add one to a job that is not suspended, and the API server to a
// Workload with quota (0.19).
func admittedWithoutClass(t *tasks.Task) bool {
	return slices.ContainsFunc(t.Parts, func(w *kueue.Workload) bool {
		return w.Spec.PriorityClassRef == nil && w.Status.Admission != nil && !meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished)
	})
}

// classes returns the priority classes for tasks of a team, the lowest first.
func classes(ctx context.Context, reader client.Reader, team string) ([]explain.PriorityClass, error) {
	policy, err := clusterstate.Policy(ctx, reader)
	if err != nil {
		return nil, err
	}
	if team == "" {
		policy = nil
	}
	return queries.AllowedPriorityClasses(ctx, reader, policy)
}
