package recorder_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/controllers/reconcile"
	"kuota.dev/kuota/governance/observe/capacity"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/record/recorder"
	"kuota.dev/kuota/governance/report/usage"
	"kuota.dev/kuota/governance/tasks/queries"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

func TestMain(m *testing.M) { clustertest.Main(m) }

const soon = clustertest.Patience

var log = slog.New(slog.DiscardHandler)

// startControllers starts the allocation controller, once for all tests.
var startControllers = sync.OnceValue(func() error {
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
	connection, err := cluster.New(clustertest.Current().Console, cluster.Options{Log: log})
	if err != nil {
		return err
	}
	if _, err := reconcile.SetupWithManager(connection.Manager, reconcile.Options{Naming: desired.DefaultNaming, Kueue: reconcile.DefaultKueueInstall}); err != nil {
		return err
	}
	go func() { _ = connection.Run(context.Background()) }()
	return nil
})

// lab is the pool of one test and the store that records it.
type lab struct {
	t     *testing.T
	c     *clustertest.Cluster
	pool  string
	file  string
	store *history.Store
	*console
}

// console contains the parts of the console that a test runs.
type console struct {
	recorder *recorder.Recorder
	capacity *capacity.Service
	contact  *cluster.Contact
	stop     func()
}

func newLab(t *testing.T) *lab {
	t.Helper()
	current := clustertest.Get(t)
	if err := startControllers(); err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, c: current, pool: clustertest.Name("lab.record"), file: filepath.Join(t.TempDir(), "history.db")}
	var err error
	if l.store, err = history.Open(t.Context(), l.file, history.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.store.Close() })
	return l
}

// start starts a console that records into a store.
func (l *lab) start(store recorder.Store, wall func() time.Time) {
	l.t.Helper()
	connection, err := cluster.New(l.c.Console, cluster.Options{Log: log})
	if err != nil {
		l.t.Fatal(err)
	}
	service := queries.New(connection, &access.Service{Cluster: connection})
	capacities := &capacity.Service{Cluster: connection, Tasks: service, Naming: desired.DefaultNaming}
	ctx, cancel := context.WithCancel(context.Background())
	r := &recorder.Recorder{Store: store, Cluster: connection, Tasks: service, Capacity: capacities, Log: log, Clock: wall}
	r.Observe()
	var running sync.WaitGroup
	running.Go(func() { _ = connection.Run(ctx) })
	running.Go(func() { _ = r.Run(ctx) })
	l.console = &console{recorder: r, capacity: capacities, contact: connection.Contact, stop: sync.OnceFunc(func() { cancel(); running.Wait() })}
	l.t.Cleanup(l.stop)
	l.eventually(func() error {
		if s := r.State(); s.Since.IsZero() || s.WrittenUntil.IsZero() {
			return fmt.Errorf("nothing is recorded: %+v", s)
		}
		return nil
	})
}

func (l *lab) eventually(check func() error) {
	l.t.Helper()
	clustertest.Eventually(l.t, soon, func(context.Context) error { return check() })
}

func (l *lab) apply(yaml string, values ...any) {
	l.t.Helper()
	l.c.Apply(l.t, fmt.Sprintf(yaml, values...))
}

func (l *lab) kubectl(args ...string) { l.t.Helper(); l.c.Kubectl(l.t, "", args...) }

// node creates a node; KWOK simulates its kubelet.
func (l *lab) node(suffix string, gpus int) {
	l.t.Helper()
	name := l.pool + suffix
	l.apply(`{apiVersion: v1, kind: Node, metadata: {name: %s, labels: {node.kubernetes.io/instance-type: %s, kubernetes.io/hostname: %[1]s}, annotations: {kwok.x-k8s.io/node: fake}}}`, name, l.pool)
	resources := fmt.Sprintf(`{"nvidia.com/gpu":"%d","cpu":"%d","memory":"%dGi","pods":"110"}`, gpus, 8*gpus, 64*gpus)
	l.kubectl("patch", "node", name, "--subresource=status", "--type=merge", "-p", fmt.Sprintf(`{"status":{"allocatable":%s,"capacity":%[1]s}}`, resources))
	l.t.Cleanup(func() { _, _ = l.c.TryKubectl("", "delete", "node", name, "--wait=false") })
}

// team creates a team with a nominal quota of gpus in the pool.
func (l *lab) team(role string, gpus int) string {
	l.t.Helper()
	name := clustertest.Name(role)
	l.apply(`{apiVersion: kuota.dev/v1alpha1, kind: ComputeAllocation, metadata: {name: %s}, spec: {quota: [{instanceType: %s, accelerators: %d}], sharing: {strategy: LendAndBorrow, borrowLimitPercent: 100}}}`, name, l.pool, gpus)
	l.t.Cleanup(func() {
		_, _ = l.c.TryKubectl("", "annotate", "computeallocation", name, "kuota.dev/drain=true", "--overwrite")
		_, _ = l.c.TryKubectl("", "delete", "jobs", "--all", "-n", space(name), "--wait=false")
		_, _ = l.c.TryKubectl("", "delete", "computeallocation", name, "--timeout=30s")
	})
	l.kubectl("wait", "computeallocation/"+name, "--for=condition=Ready", "--timeout=180s")
	l.kubectl("wait", "computeallocation/"+name, "--for=condition=QueueActive", "--timeout=180s")
	return name
}

func space(team string) string { return desired.DefaultNaming.Namespace(team) }

// job submits a task of gpus pods with one GPU each, which run for the time runs.
func (l *lab) job(team, name string, gpus int, class, runs string) {
	l.t.Helper()
	if class != "" {
		class = ", kueue.x-k8s.io/priority-class: " + class
	}
	l.apply(`
apiVersion: batch/v1
kind: Job
metadata: {name: %s, namespace: %s, labels: {kueue.x-k8s.io/queue-name: %s%s}}
spec:
  parallelism: %d
  completions: %[5]d
  suspend: true
  template:
    metadata: {annotations: {pod-complete.stage.kwok.x-k8s.io/delay: %[6]s}}
    spec:
      terminationGracePeriodSeconds: 0
      restartPolicy: Never
      containers: [{name: train, image: example.com/train:1, resources: {requests: {cpu: "1", memory: 1Gi}, limits: {nvidia.com/gpu: 1}}}]
`, name, space(team), desired.DefaultNaming.LocalQueue(team), class, gpus, runs)
}

// class creates a WorkloadPriorityClass.
func (l *lab) class(weight int) string {
	l.t.Helper()
	name := clustertest.Name("weight")
	l.apply(`{apiVersion: kueue.x-k8s.io/v1beta2, kind: WorkloadPriorityClass, metadata: {name: %s}, value: %d}`, name, weight)
	l.t.Cleanup(func() { _, _ = l.c.TryKubectl("", "delete", "workloadpriorityclass", name, "--wait=false") })
	return name
}

// gpus returns the GPU figures of the lab's pool, as the console computes them.
func (l *lab) gpus() (usage.PoolUsage, error) {
	s, err := l.capacity.Snapshot(l.t.Context())
	if err != nil {
		return usage.PoolUsage{}, err
	}
	for _, p := range s.Pools {
		for _, c := range p.Resources {
			if p.Name == l.pool && c.Resource == catalog.GPU {
				return c.PoolUsage, nil
			}
		}
	}
	return usage.PoolUsage{}, fmt.Errorf("pool %s not found", l.pool)
}

// fromCluster computes the figures of the lab's pool from Kueue's status, the nodes
// and the pods: usage and borrowing of all queues, physical, and bound by teams.
func (l *lab) fromCluster(teams ...string) (u usage.PoolUsage, err error) {
	for _, team := range teams {
		var q kueue.ClusterQueue
		if err := l.c.Client.Get(l.t.Context(), client.ObjectKey{Name: desired.DefaultNaming.ClusterQueue(team)}, &q); err != nil {
			return u, err
		}
		for _, flavor := range q.Status.FlavorsReservation {
			for _, r := range flavor.Resources {
				if string(flavor.Name) == l.pool && r.Name == catalog.GPU {
					u.Usage += resources.AmountFromQuantity(catalog.GPU, r.Total)
					u.Borrowed += resources.AmountFromQuantity(catalog.GPU, r.Borrowed)
				}
			}
		}
		for _, flavor := range q.Spec.ResourceGroups[0].Flavors {
			for _, r := range flavor.Resources {
				if r.Name == catalog.GPU {
					u.Nominal += resources.AmountFromQuantity(catalog.GPU, r.NominalQuota)
				}
			}
		}
	}
	var nodes corev1.NodeList
	if err := l.c.Client.List(l.t.Context(), &nodes, client.MatchingLabels{catalog.InstanceTypeLabel: l.pool}); err != nil {
		return u, err
	}
	ready := map[string]bool{}
	free := map[string]resources.Amount{}
	for i := range nodes.Items {
		n := &nodes.Items[i]
		gpus := resources.AmountFromQuantity(catalog.GPU, n.Status.Capacity[catalog.GPU])
		u.Physical += gpus
		ready[n.Name], free[n.Name] = catalog.Schedulable(n), gpus
	}
	var pods corev1.PodList
	if err := l.c.Client.List(l.t.Context(), &pods); err != nil {
		return u, err
	}
	bound := map[string]resources.Amount{}
	for i := range pods.Items {
		p := &pods.Items[i]
		if _, ok := free[p.Spec.NodeName]; !ok || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		free[p.Spec.NodeName]--
		if p.Labels["kueue.x-k8s.io/podset"] == "" {
			u.Outside++
		} else {
			bound[p.Namespace]++
		}
	}
	for _, team := range teams {
		var q kueue.ClusterQueue
		if err := l.c.Client.Get(l.t.Context(), client.ObjectKey{Name: desired.DefaultNaming.ClusterQueue(team)}, &q); err != nil {
			return u, err
		}
		nominal := resources.AmountFromQuantity(catalog.GPU, q.Spec.ResourceGroups[0].Flavors[0].Resources[0].NominalQuota)
		u.OwnBound += min(bound[space(team)], nominal)
		u.BorrowedBound += max(0, bound[space(team)]-nominal)
	}
	for name, left := range free {
		if ready[name] {
			u.Idle += left
			u.LargestFree = max(u.LargestFree, left)
		} else {
			u.Unhealthy += left
		}
	}
	return u, nil
}

// seriesKeys returns the series of the lab's pool.
func (l *lab) seriesKeys(resource string) map[history.Measure]history.SeriesKey {
	all := map[history.Measure]history.SeriesKey{}
	for _, m := range strings.Fields("physical own borrowed outside unhealthy idle held unplaced") {
		all[history.Measure(m)] = history.SeriesKey{Pool: l.pool, Resource: resource, Measure: history.Measure(m)}
	}
	return all
}
