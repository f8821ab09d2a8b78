package queries

import (
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/taskstest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// The owner of a pod is its task, with the team and the accelerators that the task
// uses. A viewer who may not see the task learns only that the pod has an owner.
func TestPodOwners(t *testing.T) {
	x, c := newTestService()
	running := taskstest.Workload("a", "runs", "", 0, taskstest.Start, taskstest.Admitted(taskstest.Start)...)
	running.Status.Admission = &kueue.Admission{ClusterQueue: "q", PodSetAssignments: []kueue.PodSetAssignment{{
		Name: "main", Count: new(int32(1)),
		Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{"nvidia.com/gpu": "h100", "nvidia.com/mig-1g.5gb": "h100", "cpu": "h100", "vpc.amazonaws.com/efa": "h100"},
		ResourceUsage: corev1.ResourceList{
			"nvidia.com/gpu": resource.MustParse("8"), "nvidia.com/mig-1g.5gb": resource.MustParse("2"), "cpu": resource.MustParse("96"), "vpc.amazonaws.com/efa": resource.MustParse("4"),
		},
	}}}
	x.SetWorkload(running, false)
	x.SetWorkload(taskstest.Workload("a", "waits", "", 0, taskstest.Start, taskstest.Pending(taskstest.Start)...), false)
	pod := func(namespace, name, owner string, phase corev1.PodPhase) *index.Pod {
		return &index.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("p-" + namespace + name)}, Owner: types.UID(owner), Phase: phase}
	}
	x.SetPod(pod("a", "runs-0", "j-aruns", corev1.PodRunning))
	x.SetPod(pod("a", "runs-1", "j-aruns", corev1.PodSucceeded))
	x.SetPod(pod("a", "waits-0", "j-awaits", corev1.PodRunning))
	x.SetPod(pod("kube-system", "daemon", "d", corev1.PodRunning))

	var cache podOwnersCache
	pods := cache.get(x, c.At)
	all := viewer{scope: access.Scope{All: true}, teams: taskstest.Teams("a", "vision")}
	got, ok := all.owner(pods[index.PodName{Namespace: "a", Name: "runs-0"}])
	want := Owner{Team: "vision", Task: tasks.Address{Namespace: "a", Kind: "Job", Name: "runs", UID: "j-aruns"}, Accelerators: 10, AdmittedAt: taskstest.Start}
	if !ok || got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, ok := (viewer{}).owner(pods[index.PodName{Namespace: "a", Name: "runs-0"}]); !ok || got != (Owner{Hidden: true}) {
		t.Errorf("a viewer who may not see the task gets %+v, want a hidden owner", got)
	}
	for _, name := range []string{"runs-1", "waits-0", "none"} {
		if got, ok := all.owner(pods[index.PodName{Namespace: "a", Name: name}]); ok {
			t.Errorf("%s: got the owner %+v, want none", name, got)
		}
	}
	if got, ok := all.owner(pods[index.PodName{Namespace: "kube-system", Name: "daemon"}]); ok {
		t.Errorf("daemon: got the owner %+v, want none", got)
	}

	x.SetPod(pod("a", "runs-2", "j-aruns", corev1.PodRunning))
	if cache.get(x, c.At.Add(time.Second))[index.PodName{Namespace: "a", Name: "runs-2"}] != nil {
		t.Error("the owners are computed again for each viewer")
	}
	if cache.get(x, c.At.Add(ownersFreshness))[index.PodName{Namespace: "a", Name: "runs-2"}] == nil {
		t.Error("the owners are not computed again once they are old")
	}
}
