package soak_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kuota.dev/kuota/e2e/consoles"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/quota/desired"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// team is an allocation with the tasks that it submits. Kueue preempts none of them:
// the quota of both teams of a pool suffices for the most tasks of both.
type team struct {
	name     string
	instance string        // type
	quota    int           // accelerators; half as many may be borrowed
	most     int           // tasks that have not ended
	hold     bool          // admits no tasks
	every    time.Duration // between two tasks
	runs     time.Duration // each task, which needs one accelerator

	submitted int // tasks; read after the load has stopped
}

func (t *team) namespace() string { return desired.DefaultNaming.Namespace(t.name) }

// load changes the cluster.
type load struct {
	t      *testing.T
	c      *clustertest.Cluster
	client client.Client // without rate limit
	http   *http.Client  // of the API server

	borrower, lender, other *team
	held                    *team              // its tasks are changed
	canary                  *team              // has one task, whose changes are measured
	changed                 []client.ObjectKey // Workloads of held
	probe                   client.ObjectKey   // Workload of canary
	changes, failed         atomic.Int64
}

func newLoad(t *testing.T, c *clustertest.Cluster) *load {
	t.Helper()
	config := rest.CopyConfig(c.Config)
	config.QPS = -1
	direct, err := rest.HTTPClientFor(config)
	must(t, err)
	unlimited, err := client.New(config, client.Options{Scheme: cluster.Scheme})
	must(t, err)
	name := clustertest.Name
	l := &load{
		t: t, c: c, client: unlimited, http: direct,
		borrower: &team{name: name("borrower"), instance: "ml.p5.48xlarge", quota: 4, most: 6, every: 1500 * time.Millisecond, runs: 6 * time.Second},
		lender:   &team{name: name("lender"), instance: "ml.p5.48xlarge", quota: 8, most: 6, every: 3 * time.Second, runs: 6 * time.Second},
		other:    &team{name: name("other"), instance: "ml.g5.2xlarge", quota: 4, most: 4, every: 3 * time.Second, runs: 6 * time.Second},
		held:     &team{name: name("held"), instance: "ml.trn1.32xlarge", quota: 1, hold: true},
		canary:   &team{name: name("canary"), instance: "ml.trn1.32xlarge", quota: 1, hold: true},
	}
	for _, team := range l.teams() {
		activation := "Active"
		if team.hold {
			activation = "Hold"
		}
		c.Apply(t, fmt.Sprintf(`{apiVersion: kuota.dev/v1alpha1, kind: ComputeAllocation, metadata: {name: %s}, spec: {fairShareWeight: 1, activation: %s, sharing: {strategy: LendAndBorrow, borrowLimitPercent: 50}, quota: [{instanceType: %s, accelerators: %d}]}}`, team.name, activation, team.instance, team.quota))
	}
	for _, team := range l.teams() {
		clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
			var queue kueue.LocalQueue
			return c.Client.Get(ctx, client.ObjectKey{Namespace: team.namespace(), Name: desired.DefaultNaming.LocalQueue(team.name)}, &queue)
		})
	}
	for i := range changedTasks {
		c.Apply(t, l.held.job(i, time.Hour))
	}
	c.Apply(t, l.canary.job(0, time.Hour))
	l.changed = l.workloads(l.held, changedTasks)
	l.probe = l.workloads(l.canary, 1)[0]
	return l
}

func (l *load) teams() []*team { return []*team{l.borrower, l.lender, l.other, l.held, l.canary} }

// workloads waits until Kueue has created that many Workloads of a team, and returns
// their keys.
func (l *load) workloads(team *team, count int) (keys []client.ObjectKey) {
	l.t.Helper()
	clustertest.Eventually(l.t, clustertest.Patience, func(ctx context.Context) error {
		var list kueue.WorkloadList
		if err := l.c.Client.List(ctx, &list, client.InNamespace(team.namespace())); err != nil {
			return err
		}
		if len(list.Items) != count {
			return fmt.Errorf("team %s has %d Workloads, want %d", team.name, len(list.Items), count)
		}
		keys = nil
		for i := range list.Items {
			keys = append(keys, client.ObjectKeyFromObject(&list.Items[i]))
		}
		return nil
	})
	return keys
}

// job returns the manifest of the i-th task, which the cluster deletes a minute after
// its end. A replica that begins to lead records tasks that were deleted within the
// minute before.
func (t *team) job(i int, runs time.Duration) string {
	accelerator := "nvidia.com/gpu"
	if strings.HasPrefix(t.instance, "ml.trn") {
		accelerator = "aws.amazon.com/neurondevice"
	}
	return fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {name: %s, namespace: %s, labels: {kueue.x-k8s.io/queue-name: %s}}
spec:
  suspend: true
  ttlSecondsAfterFinished: 60
  template:
    metadata: {annotations: {pod-complete.stage.kwok.x-k8s.io/delay: %s}}
    spec:
      terminationGracePeriodSeconds: 0
      restartPolicy: Never
      containers: [{name: train, image: example.com/train:1, resources: {requests: {cpu: "1", memory: 1Gi}, limits: {%s: 1}}}]
`, jobName(i), t.namespace(), desired.DefaultNaming.LocalQueue(t.name), runs, accelerator)
}

func jobName(i int) string { return fmt.Sprintf("task-%d", i) }

// run changes and submits tasks until ctx ends.
func (l *load) run(ctx context.Context) {
	var all sync.WaitGroup
	for _, team := range []*team{l.borrower, l.lender, l.other} {
		all.Go(func() { l.submit(ctx, team) })
	}
	all.Go(func() { l.change(ctx) })
	all.Wait()
}

// submit submits tasks of a team until ctx ends. It repeats what fails during a fault,
// so that each task is submitted once.
func (l *load) submit(ctx context.Context, team *team) {
	for ctx.Err() == nil {
		err := l.try(func(ctx context.Context) error {
			if unfinished, err := l.unfinished(ctx, team); err != nil || len(unfinished) >= team.most {
				return cmp.Or(err, errors.New("as many tasks as the quotas suffice for have not ended"))
			}
			return l.c.TryApply(ctx, team.job(team.submitted, team.runs))
		})
		pause := 500 * time.Millisecond
		if err == nil {
			team.submitted++
			pause = team.every
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// unfinished returns the names of the tasks of a team that have not ended.
func (l *load) unfinished(ctx context.Context, team *team) (names []string, err error) {
	var jobs batchv1.JobList
	if err := l.client.List(ctx, &jobs, client.InNamespace(team.namespace())); err != nil {
		return nil, err
	}
	for i := range jobs.Items {
		if jobs.Items[i].Status.Succeeded == 0 {
			names = append(names, jobs.Items[i].Name)
		}
	}
	return names, nil
}

// try calls the API server with a limit. A call that has begun is completed, so that
// its outcome is known.
func (l *load) try(call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return call(ctx)
}

// change changes the priority of a task of the held team, fifty times a second, until
// ctx ends. Their order in the queue changes with it. While the API server or Kueue's
// webhooks do not answer, changes fail.
func (l *load) change(ctx context.Context) {
	var writing sync.WaitGroup
	defer writing.Wait()
	free := make(chan struct{}, 32)
	ticker := time.NewTicker(time.Second / changesPerSecond)
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		key := l.changed[n%len(l.changed)]
		select {
		case free <- struct{}{}:
		default: // the API server is slower than the load, or does not answer
			l.failed.Add(1)
			continue
		}
		writing.Go(func() {
			defer func() { <-free }()
			body := fmt.Sprintf(`{"spec":{"priority":%d}}`, rand.IntN(1_000_000))
			if err := l.try(func(ctx context.Context) error { return l.patch(ctx, key, body) }); err != nil {
				l.failed.Add(1)
				return
			}
			l.changes.Add(1)
		})
	}
}

func (l *load) patch(ctx context.Context, key client.ObjectKey, body string) error {
	w := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Name: key.Name, Namespace: key.Namespace}}
	return l.client.Patch(ctx, w, client.RawPatch(types.MergePatchType, []byte(body)))
}

// finish waits until all submitted tasks have ended, and then submits tasks that do
// not end, so that figures are not zero: the borrower borrows and waits.
func (l *load) finish() {
	l.t.Helper()
	for _, team := range []*team{l.borrower, l.lender, l.other} {
		clustertest.Eventually(l.t, clustertest.Patience, func(ctx context.Context) error {
			unfinished, err := l.unfinished(ctx, team)
			if err == nil && len(unfinished) > 0 {
				err = fmt.Errorf("tasks %q of team %s have not ended", unfinished, team.name)
			}
			return err
		})
	}
	for team, lasting := range map[*team]int{l.borrower: 9, l.lender: 2, l.other: 3} {
		for i := range lasting {
			l.c.Apply(l.t, team.job(team.submitted+i, time.Hour))
		}
		clustertest.Eventually(l.t, clustertest.Patience, func(ctx context.Context) error {
			running, want := 0, min(lasting, team.quota+team.quota/2)
			var list kueue.WorkloadList
			if err := l.c.Client.List(ctx, &list, client.InNamespace(team.namespace())); err != nil {
				return err
			}
			for i := range list.Items {
				conditions := list.Items[i].Status.Conditions
				if meta.IsStatusConditionTrue(conditions, kueue.WorkloadAdmitted) && !meta.IsStatusConditionTrue(conditions, kueue.WorkloadFinished) {
					running++
				}
			}
			if running != want {
				return fmt.Errorf("team %s has %d admitted tasks, want %d", team.name, running, want)
			}
			return nil
		})
	}
}

// probes measures, until ctx ends, the time from a change of the canary's task until
// each open page of its team shows it. up reports whether the API server and Kueue,
// whose webhook sees each change, answer.
func (l *load) probes(ctx context.Context, pages streams, up func() bool) (took []time.Duration) {
	row := jobName(0)
	for active := false; ctx.Err() == nil; active = !active {
		select {
		case <-ctx.Done():
			return took
		case <-time.After(5 * time.Second):
		}
		if !up() || l.try(func(ctx context.Context) error {
			return l.patch(ctx, l.probe, fmt.Sprintf(`{"spec":{"active":%t}}`, active))
		}) != nil {
			active = !active // the same change again
			continue
		}
		began := time.Now()
		for _, s := range pages {
			for {
				found := s.find(row)
				if len(found) > 1 && strings.HasPrefix(found[1], "Stopped") == !active {
					took = append(took, time.Since(began))
					break
				}
				if ctx.Err() != nil || !up() {
					break // it shows that its data is old, which faults check
				}
				if time.Since(began) > changeBound {
					l.t.Errorf("page %s shows %q %s after the task was changed to active=%t", s.path, found, time.Since(began).Round(time.Millisecond), active)
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
	}
	return took
}

// expected is what the API server has of a team.
type expected struct {
	quota, used, borrowed int64 // accelerators
	running, waiting      int
	states                map[string]string // of tasks by name: Running, Pending, Succeeded
}

// expect computes from the Workloads and the queue of a team, without code of the
// console, what pages must show. It returns an error for what does not occur in this
// test.
func (l *load) expect(ctx context.Context, team *team) (expected, error) {
	e := expected{states: map[string]string{}}
	var queue kueue.ClusterQueue
	if err := l.c.Client.Get(ctx, client.ObjectKey{Name: desired.DefaultNaming.ClusterQueue(team.name)}, &queue); err != nil {
		return e, err
	}
	accelerator := func(name string) bool { return name == "nvidia.com/gpu" || name == "aws.amazon.com/neurondevice" }
	for _, group := range queue.Spec.ResourceGroups {
		for _, flavor := range group.Flavors {
			for _, resource := range flavor.Resources {
				if accelerator(string(resource.Name)) {
					e.quota += resource.NominalQuota.Value()
				}
			}
		}
	}
	var list kueue.WorkloadList
	if err := l.c.Client.List(ctx, &list, client.InNamespace(team.namespace())); err != nil {
		return e, err
	}
	for i := range list.Items {
		w := &list.Items[i]
		owner := metav1.GetControllerOf(w)
		if owner == nil {
			return e, fmt.Errorf("workload %s has no owner", w.Name)
		}
		is := func(condition string) bool { return meta.IsStatusConditionTrue(w.Status.Conditions, condition) }
		switch {
		case is(kueue.WorkloadFinished):
			e.states[owner.Name] = "Succeeded"
			continue
		case w.Spec.Active != nil && !*w.Spec.Active:
			e.states[owner.Name] = "Stopped"
			continue
		case !is(kueue.WorkloadQuotaReserved):
			e.states[owner.Name] = "Pending"
			e.waiting++
			continue
		case !is(kueue.WorkloadAdmitted) || is(kueue.WorkloadEvicted):
			return e, fmt.Errorf("workload %s is being admitted or evicted", w.Name)
		}
		e.states[owner.Name] = "Running"
		e.running++
		for _, set := range w.Status.Admission.PodSetAssignments {
			for name, amount := range set.ResourceUsage {
				if accelerator(string(name)) {
					e.used += amount.Value()
				}
			}
		}
	}
	e.borrowed = max(0, e.used-e.quota)
	return e, nil
}

// answers returns nil if the API server answers.
func (l *load) answers(ctx context.Context) error {
	_, err := consoles.Get(ctx, l.http, l.c.Config.Host+"/readyz")
	return err
}
