package actions

import (
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/kueue/enforcement"
	"kuota.dev/kuota/governance/tasks"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// object identifies an object of a task.
type object struct {
	kind schema.GroupVersionKind
	name string
	uid  types.UID
}

// objects returns what the user submitted: the job, the pods of a group, or the
// Workload if nothing owns it; nothing for pods without a Workload. The version of a
// kind is empty if unknown.
func objects(t *tasks.Task) (found []object) {
	if len(t.Parts) == 0 && t.Kind == v1alpha1.ElasticJobKind {
		return []object{{kind: v1alpha1.GroupVersion.WithKind(t.Kind), name: t.Name, uid: types.UID(t.UID)}}
	}
	if len(t.Parts) == 0 {
		for _, k := range enforcement.JobKinds() {
			if k.Kind == t.Kind {
				return []object{{kind: schema.GroupVersionKind{Group: k.Group, Kind: k.Kind}, name: t.Name, uid: types.UID(t.UID)}}
			}
		}
		return nil
	}
	seen := map[types.UID]bool{}
	add := func(apiVersion, kind, name string, uid types.UID) {
		if !seen[uid] {
			seen[uid] = true
			found = append(found, object{kind: schema.FromAPIVersionAndKind(apiVersion, kind), name: name, uid: uid})
		}
	}
	for _, w := range t.Parts {
		for _, o := range w.OwnerReferences {
			if string(o.UID) == t.UID || t.Kind == tasks.PodGroup && o.Kind == "Pod" {
				add(o.APIVersion, o.Kind, o.Name, o.UID)
			}
		}
	}
	if len(found) == 0 {
		return workloads(t)
	}
	return found
}

func workloads(t *tasks.Task) (found []object) {
	for _, w := range t.Parts {
		found = append(found, object{kind: workloadKind, name: w.Name, uid: w.UID})
	}
	return found
}

var workloadKind = kueue.SchemeGroupVersion.WithKind("Workload")

// metadata returns the object as a client addresses it.
func (s *Service) metadata(o object, namespace string) (*metav1.PartialObjectMetadata, error) {
	mapping, err := s.mapping(o.kind)
	if err != nil {
		return nil, err
	}
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(mapping.GroupVersionKind)
	m.Namespace, m.Name, m.UID = namespace, o.name, o.uid
	return m, nil
}

func (s *Service) mapping(kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	var versions []string
	if kind.Version != "" {
		versions = []string{kind.Version}
	}
	mapping, err := s.Cluster.RESTMapping(kind.GroupKind(), versions...)
	return mapping, cluster.Translate("find kind "+kind.Kind, err)
}

// kubectlName returns the name of a resource for kubectl: jobs, rayjobs.ray.io.
func kubectlName(r schema.GroupVersionResource) string {
	return strings.TrimSuffix(r.Resource+"."+strings.TrimSuffix(r.Group, "batch"), ".")
}
