package actions

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/audit"
	"kuota.dev/kuota/governance/cluster"
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
	return cmp.Or(t.StoppedReplicas, t.Size.Wanted, 1)
}

// scale stops a serving task, or resumes it, as user: it scales it to 0 and back, by
// the subresource. A deactivated Workload of its pods would only be replaced.
func (s *Service) scale(ctx context.Context, user governance.User, t *tasks.Task, writer client.Client, active bool) error {
	of, err := s.metadata(objects(t)[0], t.Namespace)
	if err != nil {
		return err
	}
	object, now := &unstructured.Unstructured{}, &unstructured.Unstructured{}
	object.SetGroupVersionKind(of.GroupVersionKind())
	object.SetNamespace(t.Namespace)
	object.SetName(t.Name)
	now.SetGroupVersionKind(scaleKind)
	switch err := writer.SubResource("scale").Get(ctx, object, now); {
	case err != nil:
		return translate("read scale", t, err)
	case now.GetUID() != of.UID:
		return changed(fmt.Sprintf("%s was deleted and submitted again in between. Look at the new one before you change it.", t.Name))
	}
	was, _, err := unstructured.NestedInt64(now.Object, "spec", "replicas")
	if err != nil {
		return &governance.Error{Op: "read scale", Message: "The number of its replicas cannot be read.", Err: err}
	}
	if (was > 0) == active {
		return nil
	}
	if missing, err := s.missing(ctx, user, t, Stop); err != nil || missing != nil { // before the console writes
		return cmp.Or(err, translate("scale task", t, apierrors.NewForbidden(schema.GroupResource{}, t.Name, nil)))
	}
	replicas := int64(0)
	if active {
		replicas = int64(resumedReplicas(t))
	} else if err := s.remember(ctx, of, was); err != nil {
		return translate("remember replicas", t, err)
	}
	metadata := map[string]any{"uid": of.UID, "resourceVersion": now.GetResourceVersion()}
	if !active { // the annotation changed it
		delete(metadata, "resourceVersion")
	}
	err = writer.SubResource("scale").Patch(ctx, object, merge(map[string]any{"metadata": metadata, "spec": map[string]any{"replicas": replicas}}), client.WithSubResourceBody(now))
	err = translate("scale task", t, err)
	s.Audit.Record(audit.Change{User: user, Action: "update", Object: of, Old: spec{"replicas": was}, New: spec{"replicas": replicas}, Err: err})
	if err == nil && active {
		_ = s.remember(ctx, of, 0) // it is not read while the task runs
	}
	return err
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
