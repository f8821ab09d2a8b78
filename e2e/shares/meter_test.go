package shares_test

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/quota/desired"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// meter adds up the GPU time of the admitted tasks of each share, which use one GPU
// each.
type meter struct {
	mu       sync.Mutex
	admitted map[types.UID]bool
	running  map[string]int // tasks by share
	finished map[string]int
	seen     map[types.UID]bool // that are finished
	total    map[string]time.Duration
	since    time.Time // of total

	created map[string]int // Jobs of saturate
}

// newMeter starts a meter of a team, which stops when the test ends.
func newMeter(t *testing.T, c *clustertest.Cluster, team string) *meter {
	t.Helper()
	m := &meter{
		admitted: map[types.UID]bool{}, running: map[string]int{}, finished: map[string]int{}, seen: map[types.UID]bool{},
		total: map[string]time.Duration{}, since: time.Now(), created: map[string]int{},
	}
	watchWorkloads(t, c, team, m.observe)
	return m
}

// watchWorkloads calls observe for each version of the Workloads of a team, one at a time,
// until the test ends.
func watchWorkloads(t *testing.T, c *clustertest.Cluster, team string, observe func(*kueue.Workload)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	informers, err := cache.New(c.Config, cache.Options{Scheme: cluster.Scheme, DefaultNamespaces: map[string]cache.Config{desired.DefaultNaming.Namespace(team): {}}})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = informers.Start(ctx) }()
	informer, err := informers.GetInformer(ctx, &kueue.Workload{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { observe(object.(*kueue.Workload)) },
		UpdateFunc: func(_, object any) { observe(object.(*kueue.Workload)) },
	}); err != nil {
		t.Fatal(err)
	}
}

func (m *meter) observe(w *kueue.Workload) {
	share := shareOf(string(w.Spec.QueueName))
	finished := meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished)
	admitted := !finished && meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadAdmitted)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance()
	switch was := m.admitted[w.UID]; {
	case admitted && !was:
		m.running[share]++
	case was && !admitted:
		m.running[share]--
	}
	m.admitted[w.UID] = admitted
	if finished && !m.seen[w.UID] {
		m.seen[w.UID] = true
		m.finished[share]++
	}
}

// advance adds the time since the last call. The caller has the lock.
func (m *meter) advance() {
	now := time.Now()
	for share, n := range m.running {
		m.total[share] += time.Duration(n) * now.Sub(m.since)
	}
	m.since = now
}

// gpuTime returns the GPU time of each share.
func (m *meter) gpuTime() map[string]time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance()
	return maps.Clone(m.total)
}

// awaitSaturation waits until nearly all slots are used.
func (m *meter) awaitSaturation(t *testing.T) {
	t.Helper()
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
		m.mu.Lock()
		defer m.mu.Unlock()
		if n := m.running["highpri"] + m.running["midpri"] + m.running["lowpri"]; n < slots-2 {
			return fmt.Errorf("%d of %d slots are used", n, slots)
		}
		return nil
	})
}

// missing returns how many Jobs a share lacks for its backlog, and counts them as
// created.
func (m *meter) missing(share string) (from, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	from = m.created[share]
	n = max(0, m.running[share]+backlog-(from-m.finished[share]))
	m.created[share] += n
	return from, n
}

// saturate keeps a backlog of tasks in each of the shares until stop is called.
func (m *meter) saturate(t *testing.T, c *clustertest.Cluster, team string, shares ...string) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for _, share := range shares {
		wg.Go(func() {
			for ctx.Err() == nil {
				from, n := m.missing(share)
				for i := range n {
					if err := c.Client.Create(t.Context(), job(team, share, from+i)); err != nil {
						t.Error(err)
						return
					}
				}
				select {
				case <-ctx.Done():
				case <-time.After(submitEvery):
				}
			}
		})
	}
	return func() { cancel(); wg.Wait() }
}
