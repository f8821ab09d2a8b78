package tasks

import (
	"testing"
	"time"

	"kuota.dev/kuota/governance/access"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Whose a pod is, and what its task holds; to who may not see it, that it is
// somebody's.
func TestPodOwners(t *testing.T) {
	x, c := newTestIndex()
	holds := workload("a", "holds", "", 0, start, runs(start)...)
	holds.Status.Admission = &kueue.Admission{ClusterQueue: "q", PodSetAssignments: []kueue.PodSetAssignment{{
		Name: "main", Count: new(int32(1)),
		Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{"nvidia.com/gpu": "h100", "nvidia.com/mig-1g.5gb": "h100", "cpu": "h100", "vpc.amazonaws.com/efa": "h100"},
		ResourceUsage: corev1.ResourceList{
			"nvidia.com/gpu": resource.MustParse("8"), "nvidia.com/mig-1g.5gb": resource.MustParse("2"), "cpu": resource.MustParse("96"), "vpc.amazonaws.com/efa": resource.MustParse("4"),
		},
	}}}
	x.set(holds, false)
	x.set(workload("a", "waits", "", 0, start, waits(start)...), false)
	x.setPod(podObject(x, "a", "holds-0", "Job", "j-aholds"))
	x.setPod(podObject(x, "a", "holds-1", "Job", "j-aholds", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }))
	x.setPod(podObject(x, "a", "waits-0", "Job", "j-awaits"))
	x.setPod(podObject(x, "kube-system", "daemon", "DaemonSet", "d"))

	var known owners
	pods := known.get(x, c.at)
	all := viewer{scope: access.Scope{All: true}, teams: map[string]string{"a": "vision"}}
	got, ok := all.owner(pods[PodName{"a", "holds-0"}])
	want := Owner{Team: "vision", Task: Address{"a", "Job", "holds", "j-aholds"}, Accelerators: 10, AdmittedAt: start}
	if !ok || got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, ok := (viewer{}).owner(pods[PodName{"a", "holds-0"}]); !ok || got != (Owner{Hidden: true}) {
		t.Errorf("to who may not see it: %+v", got)
	}
	for _, name := range []string{"holds-1", "waits-0", "none"} {
		if got, ok := all.owner(pods[PodName{"a", name}]); ok {
			t.Errorf("%s is of %+v", name, got)
		}
	}
	if got, ok := all.owner(pods[PodName{"kube-system", "daemon"}]); ok {
		t.Errorf("the daemon is of %+v", got)
	}

	x.setPod(podObject(x, "a", "holds-2", "Job", "j-aholds"))
	if known.get(x, c.at.Add(time.Second))[PodName{"a", "holds-2"}] != nil {
		t.Error("looked up anew for each reader")
	}
	if known.get(x, c.at.Add(ownersFor))[PodName{"a", "holds-2"}] == nil {
		t.Error("what is old is kept")
	}
}
