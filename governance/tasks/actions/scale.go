package actions

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strconv"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/record/audit"
	"kuota.dev/kuota/governance/tasks"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// scaleKind is the kind of the subresource scale.
var scaleKind = schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}

// resumedReplicas returns how many replicas Resume gives to a serving task: as many as
// it had when it was stopped. A StatefulSet's Workload has them, too (Kueue 0.19). One
// if nobody knows.
func resumedReplicas(t *tasks.Task) int32 {
	return cmp.Or(t.StoppedReplicas, int32(min(t.Size.Wanted, math.MaxInt32)), 1)
}

// scaled is a serving task as its subresource scale has it.
type scaled struct {
	of            *metav1.PartialObjectMetadata
	object, scale *unstructured.Unstructured
	replicas      int64
}

// readScale reads the number of replicas of a serving task.
func (s *Service) readScale(ctx context.Context, t *tasks.Task, reader client.Client) (scaled, error) {
	of, err := s.metadata(objects(t)[0], t.Namespace)
	if err != nil {
		return scaled{}, err
	}
	now := scaled{of: of, object: &unstructured.Unstructured{}, scale: &unstructured.Unstructured{}}
	now.object.SetGroupVersionKind(of.GroupVersionKind())
	now.object.SetNamespace(t.Namespace)
	now.object.SetName(t.Name)
	now.scale.SetGroupVersionKind(scaleKind)
	switch err := reader.SubResource("scale").Get(ctx, now.object, now.scale); {
	case err != nil:
		return scaled{}, translate("read scale", t, err)
	case now.scale.GetUID() != of.UID:
		return scaled{}, changed(fmt.Sprintf("%s was deleted and submitted again in between. Look at the new one before you change it.", t.Name))
	}
	if now.replicas, _, err = unstructured.NestedInt64(now.scale.Object, "spec", "replicas"); err != nil {
		return scaled{}, &governance.Error{Op: "read scale", Message: "The number of its replicas cannot be read.", Err: err}
	}
	return now, nil
}

// setScale sets the number of replicas. asRead requires that nothing of the object was
// changed since it was read.
func (now scaled) setScale(ctx context.Context, writer client.Client, replicas int64, asRead bool) error {
	metadata := map[string]any{"uid": now.of.UID}
	if asRead {
		metadata["resourceVersion"] = now.scale.GetResourceVersion()
	}
	return writer.SubResource("scale").Patch(ctx, now.object, merge(map[string]any{"metadata": metadata, "spec": map[string]any{"replicas": replicas}}), client.WithSubResourceBody(now.scale))
}

// auditScale records the result of setScale, and translates its error.
func (s *Service) auditScale(user governance.User, action audit.Action, t *tasks.Task, was, replicas int64, object client.Object, err error) error {
	err = translate("scale task", t, err)
	s.Audit.Record(audit.Change{User: user, Action: action, Object: object, Of: of(t), Old: spec{"replicas": was}, New: spec{"replicas": replicas}, Err: err})
	return err
}

// scale stops a serving task, or resumes it, as user: it scales it to 0 and back, by
// the subresource. A deactivated Workload of its pods would only be replaced.
func (s *Service) scale(ctx context.Context, user governance.User, t *tasks.Task, writer client.Client, active bool) error {
	now, err := s.readScale(ctx, t, writer)
	if err != nil || (now.replicas > 0) == active {
		return err
	}
	if missing, err := s.missing(ctx, user, t, Stop); err != nil || missing != nil { // before the console writes
		return cmp.Or(err, translate("scale task", t, apierrors.NewForbidden(schema.GroupResource{}, t.Name, nil)))
	}
	replicas := int64(0)
	if active {
		replicas = int64(resumedReplicas(t))
	} else if err := s.remember(ctx, now.of, now.replicas); err != nil {
		return translate("remember replicas", t, err)
	}
	err = now.setScale(ctx, writer, replicas, active) // the annotation of a stopped one changed its version
	err = s.auditScale(user, audit.Switching(active), t, now.replicas, replicas, now.of, err)
	if err == nil && active {
		_ = s.remember(ctx, now.of, 0) // it is not read while the task runs
	}
	return err
}

// Scale sets the number of replicas of a serving task, as user, if it still has as many as
// the user saw.
func (s *Service) Scale(ctx context.Context, user governance.User, at tasks.Address, replicas, saw int32) error {
	ctx, cancel := context.WithTimeout(ctx, cluster.WriteLimit)
	defer cancel()
	t, writer, err := s.open(ctx, user, at)
	if err != nil {
		return err
	}
	if !Scale.applies(t) {
		return changed(notApplicable(Scale, t))
	}
	for {
		now, err := s.readScale(ctx, t, writer)
		switch {
		case err != nil || now.replicas == int64(replicas):
			return err
		case now.replicas != int64(saw):
			return changed(fmt.Sprintf("%s was scaled to %d meanwhile. Review your number against that.", t.Name, now.replicas))
		}
		err = now.setScale(ctx, writer, int64(replicas), true)
		if apierrors.IsConflict(err) && ctx.Err() == nil { // its status changes often: the replicas decide
			continue
		}
		if err = s.auditScale(user, audit.Scale, t, now.replicas, int64(replicas), now.of, err); err == nil && saw == 0 {
			_ = s.remember(ctx, now.of, 0)
		}
		return err
	}
}

// remember annotates a serving task with its number of replicas, as the console: users
// may scale it, but not patch it. 0 removes the annotation. Outside of the namespaces of
// teams the console may not, nor if a webhook changes more, and the number is unknown.
func (s *Service) remember(ctx context.Context, of *metav1.PartialObjectMetadata, replicas int64) error {
	var value any // null removes the annotation
	if replicas > 0 {
		value = strconv.FormatInt(replicas, 10)
	}
	patch := merge(map[string]any{"metadata": map[string]any{"uid": of.UID, "annotations": map[string]any{v1alpha1.AnnotationStoppedReplicas: value}}})
	err := s.Cluster.Manager.GetClient().Patch(ctx, of.DeepCopy(), patch, client.FieldOwner(cluster.FieldManager))
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		return nil
	}
	return err
}
