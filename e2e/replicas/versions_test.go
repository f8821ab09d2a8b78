package replicas_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/clustertest"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	toolswatch "k8s.io/client-go/tools/watch"
)

// versions observes every version that is created, also those that are pruned.
type versions struct {
	mu          sync.Mutex
	byName      map[string]string           // UID of the ControllerRevision by name
	generations map[string]map[int64]string // name of the version by UID of the allocation and generation
	problems    []string
}

// watchVersions observes until the test ends.
func watchVersions(t *testing.T, c *clustertest.Cluster) *versions {
	t.Helper()
	v := &versions{byName: map[string]string{}, generations: map[string]map[int64]string{}}
	clients, err := kubernetes.NewForConfig(c.Config)
	must(t, err)
	all := clients.AppsV1().ControllerRevisions("kuota-system")
	options := metav1.ListOptions{LabelSelector: cluster.LabelRevisionOf}
	list, err := all.List(t.Context(), options)
	must(t, err)
	for i := range list.Items {
		v.byName[list.Items[i].Name] = string(list.Items[i].UID)
	}
	events, err := toolswatch.NewRetryWatcherWithContext(t.Context(), list.ResourceVersion, watcher(func(from metav1.ListOptions) (watch.Interface, error) {
		from.LabelSelector = cluster.LabelRevisionOf
		return all.Watch(t.Context(), from)
	}))
	must(t, err)
	go func() {
		for event := range events.ResultChan() {
			if r, ok := event.Object.(*appsv1.ControllerRevision); ok && event.Type == watch.Added {
				v.add(r)
			} else if !ok {
				v.report("the watch of versions failed: %v", event.Object)
			}
		}
	}()
	return v
}

type watcher func(metav1.ListOptions) (watch.Interface, error)

// WatchWithContext implements toolscache.WatcherWithContext.
func (w watcher) WatchWithContext(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return w(options)
}

func (v *versions) report(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.problems = append(v.problems, fmt.Sprintf(format, args...))
}

func (v *versions) add(r *appsv1.ControllerRevision) {
	of := r.Annotations["kuota.dev/of-uid"]
	generation, err := strconv.ParseInt(r.Annotations["kuota.dev/of-generation"], 10, 64)
	if before := v.byName[r.Name]; before != "" && before != string(r.UID) {
		v.report("version %s was created twice", r.Name)
	}
	if err != nil {
		v.report("version %s: %v", r.Name, err)
	}
	v.mu.Lock()
	before := v.generations[of][generation]
	v.byName[r.Name] = string(r.UID)
	if v.generations[of] == nil {
		v.generations[of] = map[int64]string{}
	}
	v.generations[of][generation] = r.Name
	v.mu.Unlock()
	if before != "" {
		v.report("generation %d of %s is version %s and %s", generation, of, before, r.Name)
	}
}

// waitForAll waits until the current generations of allocations have versions. If
// the leader fails while changes still wait that the other replica, which was just
// started, did not observe, these become no versions.
func (v *versions) waitForAll(t *testing.T, c *clustertest.Cluster, teams []string) {
	t.Helper()
	for _, team := range teams {
		now, err := allocation(t.Context(), c, team)
		must(t, err)
		clustertest.Eventually(t, patience, func(context.Context) error {
			v.mu.Lock()
			defer v.mu.Unlock()
			if v.generations[string(now.UID)][now.Generation] == "" {
				return fmt.Errorf("generation %d of allocation %s has no version", now.Generation, team)
			}
			return nil
		})
	}
}

// check fails the test unless every generation of every allocation became one
// version.
func (v *versions) check(t *testing.T, c *clustertest.Cluster, teams []string) {
	t.Helper()
	for _, team := range teams {
		clustertest.Eventually(t, patience, func(ctx context.Context) error {
			a, err := allocation(ctx, c, team)
			if err != nil {
				return err
			}
			v.mu.Lock()
			defer v.mu.Unlock()
			of := v.generations[string(a.UID)]
			for generation := int64(1); generation <= a.Generation; generation++ {
				if of[generation] == "" {
					return fmt.Errorf("generation %d of %d of allocation %s has no version", generation, a.Generation, team)
				}
			}
			return nil
		})
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for i, problem := range v.problems {
		if i == 10 {
			t.Errorf("and %d more", len(v.problems)-i)
			break
		}
		t.Error(problem)
	}
	t.Logf("%d versions were created", len(v.byName))
}
