package behavior_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/clustertest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// limit is how long a story waits for a state. Kueue evicts about one task a
// second for each queue that takes back, and other stories run beside.
const limit = 60 * time.Second

const (
	gpu               = corev1.ResourceName("nvidia.com/gpu")
	instanceTypeLabel = "node.kubernetes.io/instance-type"
)

// story is one test's corner of the cluster: a pool of nodes that no other test
// uses, its teams, and their tasks.
type story struct {
	t       *testing.T
	cluster *clustertest.Cluster
	pool    string // an instance type, and the name of its pool
	nodes   int
	teams   []*team
	classes map[int32]string // by weight
}

// begin gives a story nodes of an instance type of its own. All of it goes
// when the test ends.
func begin(t *testing.T, nodes, gpusEach int) *story {
	t.Helper()
	s := &story{t: t, cluster: setup(t), pool: clustertest.Name("lab.story"), nodes: nodes, classes: map[int32]string{}}
	t.Cleanup(s.end)
	s.inParallel(nodes, func(i int) error { return s.cluster.Client.Create(t.Context(), s.node(i, gpusEach)) })
	return s
}

// node is a node that KWOK plays the kubelet of.
func (s *story) node(i, gpus int) *corev1.Node {
	name := s.nodeName(i)
	has := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse(strconv.Itoa(8 * gpus)),
		corev1.ResourceMemory: resource.MustParse(strconv.Itoa(64*gpus) + "Gi"),
		corev1.ResourcePods:   resource.MustParse("110"),
		gpu:                   resource.MustParse(strconv.Itoa(gpus)),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
			Labels:      map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux", instanceTypeLabel: s.pool},
		},
		Status: corev1.NodeStatus{Capacity: has, Allocatable: has},
	}
}

func (s *story) nodeName(i int) string { return fmt.Sprintf("%s-%d", s.pool, i) }

// class is a priority class of a weight, for this story alone. It is not
// labelled: no controller takes it for its own.
func (s *story) class(weight int32) string {
	s.t.Helper()
	name, ok := s.classes[weight]
	if !ok {
		name = clustertest.Name(fmt.Sprintf("weight-%d", weight))
		class := &kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: weight}
		if err := s.cluster.Client.Create(s.t.Context(), class); err != nil {
			s.t.Fatal(err)
		}
		s.classes[weight] = name
	}
	return name
}

// await waits until check finds nothing wrong any more. When that takes too
// long, it fails the test with what was wrong last, and tells all that Kueue
// says of the story's queues and tasks.
func (s *story) await(check func() error) {
	s.t.Helper()
	deadline := time.Now().Add(limit)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("still after %s: %v\n%s", limit, err, s.tell())
		}
		<-time.After(20 * time.Millisecond)
	}
}

// inParallel does n things, a few at once, and fails the test when one fails.
func (s *story) inParallel(n int, do func(i int) error) {
	s.t.Helper()
	var wg sync.WaitGroup
	errs, slots := make(chan error, n), make(chan struct{}, 8)
	for i := range n {
		wg.Go(func() {
			slots <- struct{}{}
			errs <- do(i)
			<-slots
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

// end takes away what the story made, tasks first, so that the queues are
// empty and go at once. What is stuck is told, and fails nothing.
func (s *story) end() {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for _, team := range s.teams {
		team.leave(ctx)
	}
	for _, team := range s.teams {
		for !apierrors.IsNotFound(s.cluster.Client.Get(ctx, client.ObjectKey{Name: team.name}, team.allocation())) {
			if ctx.Err() != nil {
				fmt.Fprintf(os.Stderr, "team %s is still there\n", team.name)
				break
			}
			<-time.After(50 * time.Millisecond)
		}
	}
	_ = s.cluster.Client.Delete(ctx, &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: s.pool}})
	for _, name := range s.classes {
		_ = s.cluster.Client.Delete(ctx, &kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	for i := range s.nodes {
		_ = s.cluster.Client.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.nodeName(i)}})
	}
}
