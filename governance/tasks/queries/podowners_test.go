package queries

import (
	"kuota.dev/kuota/governance/tasks/taskstest"
	"testing"
	"time"

	"kuota.dev/kuota/governance/access"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/index"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Whose a pod is, and what its task holds; to who may not see it, that it is
// somebody's.
func TestPodOwners(t *testing.T) {
	x, c := newTestService()
	holds := taskstest.Workload("a", "holds", "", 0, taskstest.Start, taskstest.Admitted(taskstest.Start)...)
	holds.Status.Admission = &kueue.Admission{ClusterQueue: "q", PodSetAssignments: []kueue.PodSetAssignment{{
		Name: "main", Count: new(int32(1)),
		Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{"nvidia.com/gpu": "h100", "nvidia.com/mig-1g.5gb": "h100", "cpu": "h100", "vpc.amazonaws.com/efa": "h100"},
		ResourceUsage: corev1.ResourceList{
			"nvidia.com/gpu": resource.MustParse("8"), "nvidia.com/mig-1g.5gb": resource.MustParse("2"), "cpu": resource.MustParse("96"), "vpc.amazonaws.com/efa": resource.MustParse("4"),
		},
	}}}
	x.SetWorkload(holds, false)
	x.SetWorkload(taskstest.Workload("a", "waits", "", 0, taskstest.Start, taskstest.Pending(taskstest.Start)...), false)
	pod := func(namespace, name, owner string, phase corev1.PodPhase) *index.Pod {
		return &index.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("p-" + namespace + name)}, Owner: types.UID(owner), Phase: phase}
	}
	x.SetPod(pod("a", "holds-0", "j-aholds", corev1.PodRunning))
	x.SetPod(pod("a", "holds-1", "j-aholds", corev1.PodSucceeded))
	x.SetPod(pod("a", "waits-0", "j-awaits", corev1.PodRunning))
	x.SetPod(pod("kube-system", "daemon", "d", corev1.PodRunning))

	var known podOwnersCache
	pods := known.get(x, c.At)
	all := viewer{scope: access.Scope{All: true}, teams: map[string]string{"a": "vision"}}
	got, ok := all.owner(pods[index.PodName{Namespace: "a", Name: "holds-0"}])
	want := Owner{Team: "vision", Task: tasks.Address{Namespace: "a", Kind: "Job", Name: "holds", UID: "j-aholds"}, Accelerators: 10, AdmittedAt: taskstest.Start}
	if !ok || got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, ok := (viewer{}).owner(pods[index.PodName{Namespace: "a", Name: "holds-0"}]); !ok || got != (Owner{Hidden: true}) {
		t.Errorf("to who may not see it: %+v", got)
	}
	for _, name := range []string{"holds-1", "waits-0", "none"} {
		if got, ok := all.owner(pods[index.PodName{Namespace: "a", Name: name}]); ok {
			t.Errorf("%s is of %+v", name, got)
		}
	}
	if got, ok := all.owner(pods[index.PodName{Namespace: "kube-system", Name: "daemon"}]); ok {
		t.Errorf("the daemon is of %+v", got)
	}

	x.SetPod(pod("a", "holds-2", "j-aholds", corev1.PodRunning))
	if known.get(x, c.At.Add(time.Second))[index.PodName{Namespace: "a", Name: "holds-2"}] != nil {
		t.Error("looked up anew for each reader")
	}
	if known.get(x, c.At.Add(ownersFreshness))[index.PodName{Namespace: "a", Name: "holds-2"}] == nil {
		t.Error("what is old is kept")
	}
}
