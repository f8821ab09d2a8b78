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

// limit is how long a scenario waits for a state. Kueue evicts about one task a
// second for each queue that reclaims, and other scenarios run in parallel.
const limit = clustertest.Patience

const (
	gpu               = corev1.ResourceName("nvidia.com/gpu")
	instanceTypeLabel = "node.kubernetes.io/instance-type"
)

// scenario is the part of the cluster that belongs to one test: a pool of nodes
// that no other test uses, its teams, and their tasks.
type scenario struct {
	t       *testing.T
	cluster *clustertest.Cluster
	pool    string // the instance type, which is also the name of the pool
	nodes   int
	teams   []*team
	classes map[int32]string // names of WorkloadPriorityClasses by weight
}

// newScenario creates nodes of an instance type of the scenario's own. Everything
// that the scenario creates is deleted when the test ends.
func newScenario(t *testing.T, nodes, gpusEach int) *scenario {
	t.Helper()
	s := &scenario{t: t, cluster: setup(t), pool: clustertest.Name("lab.scenario"), nodes: nodes, classes: map[int32]string{}}
	t.Cleanup(s.cleanUp)
	s.inParallel(nodes, func(i int) error { return s.cluster.Client.Create(t.Context(), s.node(i, gpusEach)) })
	return s
}

// node returns a node whose kubelet KWOK simulates.
func (s *scenario) node(i, gpus int) *corev1.Node {
	name := s.nodeName(i)
	resources := corev1.ResourceList{
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
		Status: corev1.NodeStatus{Capacity: resources, Allocatable: resources},
	}
}

func (s *scenario) nodeName(i int) string { return fmt.Sprintf("%s-%d", s.pool, i) }

// priorityClass returns the name of the scenario's WorkloadPriorityClass of a
// weight, and creates it on first use. The object has no labels, so that no
// controller manages it.
func (s *scenario) priorityClass(weight int32) string {
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

// await waits until check returns nil. After limit it fails the test with the last
// error and with the state of the scenario's queues and tasks.
func (s *scenario) await(check func() error) {
	s.t.Helper()
	deadline := time.Now().Add(limit)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("after %s: %v\n%s", limit, err, s.report())
		}
		<-time.After(20 * time.Millisecond)
	}
}

// inParallel calls do for 0 to n-1, at most 8 at once, and fails the test when a
// call fails.
func (s *scenario) inParallel(n int, do func(i int) error) {
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

// cleanUp deletes what the scenario created, tasks first, so that the queues are
// empty and are deleted at once. It prints the teams that are not deleted in time
// and does not fail the test.
func (s *scenario) cleanUp() {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for _, team := range s.teams {
		team.delete(ctx)
	}
	for _, team := range s.teams {
		for !apierrors.IsNotFound(s.cluster.Client.Get(ctx, client.ObjectKey{Name: team.name}, team.allocation())) {
			if ctx.Err() != nil {
				fmt.Fprintf(os.Stderr, "team %s is not deleted\n", team.name)
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
