package dependencies

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/tasks"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// kinds are those whose gates Kuota may remove: see members.yaml.
var kinds = map[schema.GroupKind]bool{
	{Group: "batch", Kind: "Job"}: true, {Group: "jobset.x-k8s.io", Kind: "JobSet"}: true, {Group: "kubeflow.org", Kind: "PyTorchJob"}: true, {Group: "ray.io", Kind: "RayJob"}: true,
	{Group: v1alpha1.GroupVersion.Group, Kind: v1alpha1.ElasticJobKind}: true,
}

func releasable(owner *metav1.OwnerReference) bool {
	return owner != nil && kinds[schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind()]
}

// Release leaves a Workload with these gates only, by changing its job, from which Kueue copies
// them: the ElasticJob first, whose controller copies them to the Job of its minimum. Those of
// other kinds stay.
func Release(ctx context.Context, c client.Client, w *kueue.Workload, keep []string) error {
	owner := metav1.GetControllerOfNoCopy(w)
	if !releasable(owner) {
		return nil
	}
	owners := []metav1.OwnerReference{*owner}
	if name, uid := v1alpha1.ElasticJobOf(owner.Name, podLabels(w)); uid != "" && owner.Kind == "Job" { // as Kueue writes it
		owners = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ElasticJobKind, Name: name, UID: uid}, *owner}
	} else if owner.Kind == v1alpha1.ElasticJobKind { // as the cache of Workloads has it
		owners = append(owners, metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: v1alpha1.ElasticPartName(owner.Name, 0)})
	}
	for _, o := range owners {
		var value any
		if len(keep) > 0 {
			value = strings.Join(keep, ",")
		}
		metadata := map[string]any{"annotations": map[string]any{tasks.AdmissionGatedByAnnotation: value}}
		if o.UID != "" { // of a new object of the name, nothing is removed
			metadata["uid"] = o.UID
		}
		patch, err := json.Marshal(map[string]any{"metadata": metadata})
		if err != nil {
			return err
		}
		object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: o.Name}}
		object.SetGroupVersionKind(schema.FromAPIVersionAndKind(o.APIVersion, o.Kind))
		if err := c.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch)); client.IgnoreNotFound(err) != nil && !meta.IsNoMatchError(err) {
			return fmt.Errorf("remove the gate of %s %s/%s: %w", o.Kind, w.Namespace, o.Name, err)
		}
	}
	return nil
}

func podLabels(w *kueue.Workload) map[string]string {
	if len(w.Spec.PodSets) == 0 {
		return nil
	}
	return w.Spec.PodSets[0].Template.Labels
}
