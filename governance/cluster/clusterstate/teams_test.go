package clusterstate_test

import (
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/tasks"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// A task belongs to the team of its ClusterQueue, whatever its namespace.
func TestTeams(t *testing.T) {
	allocation := func(name, namespace, observes string) *v1alpha1.ComputeAllocation {
		a := &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1alpha1.ComputeAllocationStatus{Namespace: namespace}}
		if observes != "" {
			a.Spec.Management, a.Spec.ClusterQueueName = v1alpha1.Observe, observes
		}
		return a
	}
	clusterQueue := func(name, team string) *kueue.ClusterQueue {
		q := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if team != "" {
			q.Labels = map[string]string{desired.LabelTeam: team}
		}
		return q
	}
	localQueue := func(namespace, name, of string) *kueue.LocalQueue {
		return &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(of)}}
	}
	teams := clusterstate.NewTeams(
		[]*v1alpha1.ComputeAllocation{allocation("duo-cpu", "duo", ""), allocation("duo-gpu", "duo", "gpu"), allocation("vision", "ns-vision", ""), allocation("new", "", "")},
		[]*kueue.ClusterQueue{clusterQueue("cpu", "duo-cpu"), clusterQueue("gpu", "deleted-team"), clusterQueue("vision", "vision"), clusterQueue("others", ""), clusterQueue("left", "deleted-team")},
		[]*kueue.LocalQueue{localQueue("duo", "cpu", "cpu"), localQueue("duo", "gpu", "gpu"), localQueue("far", "gpu", "gpu"), localQueue("ns-vision", "q", "vision"), localQueue("ns-vision", "aside", "others"), localQueue("ns-vision", "lost", "not-there")},
	)
	for name, tc := range map[string]struct {
		at   tasks.Place
		want string
	}{
		"one of two queues":                        {tasks.Place{Namespace: "duo", LocalQueue: "cpu"}, "duo-cpu"},
		"the other, which Kuota shows only":        {tasks.Place{Namespace: "duo", LocalQueue: "gpu"}, "duo-gpu"},
		"a queue in a namespace of no team":        {tasks.Place{Namespace: "far", LocalQueue: "gpu"}, "duo-gpu"},
		"admitted, its LocalQueue is deleted":      {tasks.Place{Namespace: "duo", LocalQueue: "gone", ClusterQueue: "gpu"}, "duo-gpu"},
		"admitted before its LocalQueue was moved": {tasks.Place{Namespace: "duo", LocalQueue: "cpu", ClusterQueue: "gpu"}, "duo-gpu"},
		"no queue, two teams":                      {tasks.Place{Namespace: "duo"}, ""},
		"no queue, one team":                       {tasks.Place{Namespace: "ns-vision"}, "vision"},
		"a LocalQueue that does not exist":         {tasks.Place{Namespace: "ns-vision", LocalQueue: "typo"}, "vision"},
		"a ClusterQueue that does not exist":       {tasks.Place{Namespace: "ns-vision", LocalQueue: "lost"}, "vision"},
		"a ClusterQueue of no team":                {tasks.Place{Namespace: "ns-vision", LocalQueue: "aside"}, ""},
		"a namespace of no team":                   {tasks.Place{Namespace: "default", LocalQueue: "q"}, ""},
	} {
		if got := teams.Of(tc.at); got != tc.want {
			t.Errorf("%s: got team %q, want %q", name, got, tc.want)
		}
	}
	for queue, want := range map[string]string{"cpu": "duo-cpu", "gpu": "duo-gpu", "others": "", "left": "", "not-there": ""} {
		if got := teams.OfClusterQueue(queue); got != want {
			t.Errorf("ClusterQueue %s belongs to %q, want %q", queue, got, want)
		}
	}
}
