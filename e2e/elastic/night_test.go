package elastic_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// At night inference releases 96 of 256 GPUs, and a training of 32 grows to 128. In the
// morning inference comes back in three waves, and the training yields each of them.
// How fast is measured by make bench.
func TestNight(t *testing.T) {
	if !clustertest.Verify && os.Getenv("KUOTA_BENCH") == "" {
		t.Skip("takes half a minute: run by make verify and make bench")
	}
	l := newLab(t, 32)
	training, inference, others := l.team("training", 32, nil), l.team("inference", 96, nil), l.team("others", 128, nil)
	wave := func(team string, from, to int) (jobs []*batchv1.Job) {
		for i := from; i < to; i++ {
			jobs = append(jobs, l.submitPods(team, fmt.Sprintf("task-%d-%s", i, team), trainingClass, 1, 8))
		}
		for _, job := range jobs {
			l.admitted(job, soon)
		}
		return jobs
	}
	clusterPolicy{v1alpha1.TaskRanking, v1alpha1.IdleFirstComeFirstServe}.apply(t)
	wave(others, 0, 16)
	day := wave(inference, 0, 12)
	policy := v1alpha1.ElasticPolicy{
		MinReplicas: 4, MaxReplicas: 16, ReplicaIncrementStep: ptr.To[int32](1),
		ScalingTimeoutInSeconds: 5, FaultyScaleDownTimeoutInSeconds: 30, MinStablePeriodSeconds: 1, BackoffMaxSeconds: 5,
	}
	e := l.elasticOf(training, "train", trainingClass, policy, pods(8))
	l.size(e, 4, soon)

	released := time.Now()
	for _, job := range day {
		l.remove(job)
	}
	l.size(e, 16, soon)
	grown := time.Since(released)
	l.running(e, 16, soon)
	for i := range 3 {
		began := time.Now()
		wave(inference, 100+4*i, 104+4*i)
		back := time.Since(began)
		l.size(e, int32(16-4*(i+1)), soon)
		fmt.Printf("figure elastic_night_wave_%d %.2f s\n", i+1, back.Seconds())
	}
	l.running(e, 4, soon)

	fmt.Printf("figure elastic_night_growth %.2f s\n", grown.Seconds())
}

// The same night where a cluster autoscaler removed the 12 nodes that inference released before
// the training is submitted: without Provision it keeps its 32 GPUs; with it nodes come, each
// 30 s after a pod waits for one. Printed are the hours of GPUs of a night of eight hours.
func TestNightWithoutNodes(t *testing.T) {
	if os.Getenv("KUOTA_BENCH") == "" {
		t.Skip("takes two minutes: run by make bench")
	}
	const night, of = 8 * time.Hour, 8 // GPUs of a node
	for _, growth := range []v1alpha1.Growth{v1alpha1.GrowthExistingNodes, v1alpha1.GrowthProvision} {
		t.Run(string(growth), func(t *testing.T) {
			l := newLab(t, 32)
			training, _, others := l.team("training", 32, nil), l.team("inference", 96, nil), l.team("others", 128, nil)
			for i := range 16 {
				l.admitted(l.submitPods(others, fmt.Sprintf("task-%d", i), "", 1, of), soon)
			}
			s := autoscaler{lab: l, asked: map[types.UID]time.Time{}, nodes: map[string]*nodeTimes{}}
			s.removeIdle(12)
			began := time.Now()
			e := l.elasticOf(training, "train", "", v1alpha1.ElasticPolicy{
				MinReplicas: 4, MaxReplicas: 16, ReplicaIncrementStep: ptr.To[int32](1), Growth: growth, MaxUnscheduledReplicas: ptr.To[int32](12), ProvisionTimeoutInSeconds: 600,
				ScalingTimeoutInSeconds: 5, FaultyScaleDownTimeoutInSeconds: 30, MinStablePeriodSeconds: 1, BackoffMaxSeconds: 5,
			}, pods(of))
			l.running(e, 4, soon)
			for s.look(e) < 12 && time.Since(began) < 2*time.Minute {
				time.Sleep(100 * time.Millisecond)
			}
			idle, grown, paid := time.Duration(0), time.Duration(0), 20*night
			for name, n := range s.nodes {
				if n.used.IsZero() {
					t.Fatalf("node %s came and no pod runs on it\n%s", name, l.report(e.Namespace))
				}
				idle += n.used.Sub(n.came)
				grown += night - n.used.Sub(began)
				paid += night - n.came.Sub(began)
			}
			if want := map[v1alpha1.Growth]int{v1alpha1.GrowthProvision: 12}[growth]; len(s.nodes) != want {
				t.Fatalf("%d nodes came, want %d", len(s.nodes), want)
			}
			fmt.Printf("figure elastic_night_%s %.2f idle, %.1f grown, %.1f paid GPU hours; %.0f s until its size\n", growth, of*idle.Hours(), of*grown.Hours(), of*paid.Hours(), time.Since(began).Seconds())
		})
	}
}

// autoscaler does what a cluster autoscaler does with the nodes of a lab.
type autoscaler struct {
	*lab
	removed []int
	asked   map[types.UID]time.Time // since when pods wait for a node
	nodes   map[string]*nodeTimes   // that came
}

type nodeTimes struct{ came, used time.Time }

// removeIdle removes nodes without pods.
func (s *autoscaler) removeIdle(count int) {
	s.Helper()
	for i := 0; len(s.removed) < count; i++ {
		name := fmt.Sprintf("%s-%d", s.pool, i)
		var list corev1.PodList
		if err := s.Client.List(s.Context(), &list, client.MatchingFields{"spec.nodeName": name}); err != nil {
			s.Fatal(err)
		}
		if len(list.Items) > 0 {
			continue
		}
		if err := s.Client.Delete(s.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			s.Fatal(err)
		}
		s.removed = append(s.removed, i)
	}
}

// look creates a node for each pod that has waited for one for 30 s, and returns on how many of
// those that came a pod runs.
func (s *autoscaler) look(e *v1alpha1.ElasticJob) (used int) {
	s.Helper()
	for _, p := range s.pending(e) {
		if _, known := s.asked[p.UID]; !known {
			s.asked[p.UID] = time.Now()
		}
	}
	for uid, since := range s.asked {
		if time.Since(since) < 30*time.Second || len(s.removed) == 0 {
			continue
		}
		s.asked[uid] = time.Now().Add(time.Hour) // it has its node
		s.node(s.removed[0])
		s.nodes[fmt.Sprintf("%s-%d", s.pool, s.removed[0])], s.removed = &nodeTimes{came: time.Now()}, s.removed[1:]
	}
	var list corev1.PodList
	if err := s.Client.List(s.Context(), &list, client.InNamespace(e.Namespace)); err != nil {
		s.Fatal(err)
	}
	for _, p := range list.Items {
		if n := s.nodes[p.Spec.NodeName]; n != nil && p.Status.Phase == corev1.PodRunning && n.used.IsZero() {
			n.used = time.Now()
		}
	}
	for _, n := range s.nodes {
		if !n.used.IsZero() {
			used++
		}
	}
	return used
}
