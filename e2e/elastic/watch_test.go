package elastic_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/quota/desired"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// watch is a cache of the objects that tests look at, with the rights of an admin. It
// records each preemption, also of Workloads that are deleted right afterwards.
type watch struct {
	cache.Cache
	mu          sync.Mutex
	preemptions map[string][]preemption // by namespace

	// policy is locked while the policy changes, during which Kueue and its webhooks can
	// be away.
	policy sync.RWMutex
}

type preemption struct{ victim, message string }

func newWatch(t *testing.T) *watch {
	t.Helper()
	c := setup(t)
	all, err := cache.New(c.Config, cache.Options{Scheme: cluster.Scheme, DefaultTransform: cache.TransformStripManagedFields()})
	if err != nil {
		t.Fatal(err)
	}
	w := &watch{Cache: all, preemptions: map[string][]preemption{}}
	for _, kind := range []client.Object{&kueue.Workload{}, &kueue.ClusterQueue{}, &batchv1.Job{}, &corev1.Pod{}, &v1alpha1.ElasticJob{}} {
		informer, err := all.GetInformer(t.Context(), kind, cache.BlockUntilSynced(false))
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := kind.(*kueue.Workload); ok {
			if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: w.record, UpdateFunc: func(_, now any) { w.record(now) }}); err != nil {
				t.Fatal(err)
			}
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	go func() { _ = all.Start(ctx) }()
	if !all.WaitForCacheSync(t.Context()) {
		t.Fatal("the cache of the test has not synced")
	}
	return w
}

func (w *watch) record(object any) {
	victim, ok := object.(*kueue.Workload)
	if !ok {
		return
	}
	c := meta.FindStatusCondition(victim.Status.Conditions, kueue.WorkloadPreempted)
	if c == nil || c.Status != "True" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := (preemption{victim.Name, c.Message}); !slices.Contains(w.preemptions[victim.Namespace], p) {
		w.preemptions[victim.Namespace] = append(w.preemptions[victim.Namespace], p)
	}
}

// preemptionsOf returns the preemptions in the namespaces of teams, each once.
func (w *watch) preemptionsOf(teams []string) (all []preemption) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, team := range teams {
		namespace := desired.DefaultNaming.Namespace(team)
		all = append(all, w.preemptions[namespace]...)
		delete(w.preemptions, namespace)
	}
	return all
}
