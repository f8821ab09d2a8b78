package truth_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/e2e/podless"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/desired"

	"github.com/PuerkitoBio/goquery"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// The priority classes of TestMoves.
const (
	lowest  = 0
	middle  = 1
	highest = 3
)

// TestMoves moves teams of two departments into a third by one action on the list, while tasks
// are submitted. Each of them uses its quota, and borrows as much from its department for a task
// of the lowest priority. In each department that they leave a team waits for more of its
// reserve, and reclaims it as soon as the teams that moved count elsewhere; the third
// department has nothing left beyond their quota.
func TestMoves(t *testing.T) {
	teams := 6
	if clustertest.Verify {
		teams = 50
	}
	c := clustertest.Get(t)
	l := newLab(t, c)
	configure(t, c, false)
	l.start(t, c, "moves", "KUOTA_HISTORY="+filepath.Join(t.TempDir(), "history.db"))
	m := &moves{lab: l, t: t, prefix: clustertest.Name("move"), each: int64(teams) / 2}
	t.Cleanup(m.remove)
	a, b, to := m.department("a", 2*m.each), m.department("b", 2*m.each), m.department("to", int64(teams)+1)
	for i := range teams {
		of := a
		if i%2 == 1 {
			of = b
		}
		m.movers = append(m.movers, m.team(fmt.Sprint("m", i), of, v1alpha1.LendAndBorrow))
	}
	stays := []string{m.team("a", a, v1alpha1.LendAndBorrow), m.team("b", b, v1alpha1.LendAndBorrow)}
	there, load := m.team("to", to, v1alpha1.LendAndBorrow), m.team("load", "", v1alpha1.DontLend)
	m.await("all allocations are applied", m.applied)

	var own, borrowed []string
	for _, team := range m.movers {
		own, borrowed = append(own, m.submit(team, "own", highest, 0)), append(borrowed, m.submit(team, "borrowed", lowest, 0))
	}
	own = append(own, m.submit(there, "own", highest, 0))
	m.await("the teams use what they have and borrow", m.running(slices.Concat(own, borrowed)))
	var waiting []string
	for _, team := range stays { // all of the reserve of the third department
		var first []string
		for i := range int(m.each) {
			first = append(first, m.submit(team, fmt.Sprint("first-", i), middle, 0))
		}
		m.await("the other teams borrow", m.running(first))
		own = append(own, first...)
	}
	for _, team := range stays { // as much again, which their department has as its quota once the others left
		for i := range int(m.each) {
			waiting = append(waiting, m.submit(team, fmt.Sprint("second-", i), middle, 0))
		}
	}
	m.await("the rest waits", m.known(slices.Concat(own, borrowed, waiting)))
	if early, _ := m.evicted(); len(early) > 0 {
		t.Fatalf("evicted before the move: %v", early)
	}

	named, review := m.review(to)
	stop := clustertest.WatchTree(t, c, movePool, map[string]int64{"kuota-department-" + a: 2 * m.each, "kuota-department-" + b: 2 * m.each, "kuota-department-" + to: int64(teams) + 1})
	loaded := m.load(load)
	began := time.Now()
	progress, err := l.submitForm(t.Context(), review, "form#action-form", formValues(review.Find("form#action-form")), "")
	must(t, err)
	m.await("all teams are changed", func(ctx context.Context) error {
		page, err := l.open(ctx, http.MethodGet, progress.Url.String(), nil)
		if err == nil && !strings.Contains(text(page.Find("#bulk-status")), fmt.Sprintf("All %d.", teams)) {
			err = fmt.Errorf("progress: %s", text(page.Find("#bulk")))
		}
		return err
	})
	m.await("all teams have moved", func(ctx context.Context) error {
		for _, team := range m.movers {
			var queue kueue.ClusterQueue
			if err := l.client.Get(ctx, client.ObjectKey{Name: desired.DefaultNaming.ClusterQueue(team)}, &queue); err != nil || queue.Spec.CohortName != kueue.CohortReference("kuota-department-"+to) {
				return fmt.Errorf("the queue of %s is in %s (%v)", team, queue.Spec.CohortName, err)
			}
		}
		return nil
	})
	took := time.Since(began)
	added := loaded()
	m.await("the departments use their quota", m.running(slices.Concat(own, waiting)))
	stop()

	evicted, times := m.evicted()
	var unnamed []string
	for _, name := range evicted {
		if !slices.Contains(named, name) && !slices.Contains(added, name) {
			unnamed = append(unnamed, name)
		}
	}
	if len(unnamed) > 0 {
		t.Errorf("evicted, and not named by the review: %v", unnamed)
	}
	if slices.Sort(borrowed); !slices.Equal(named, borrowed) {
		t.Errorf("the review names %v, want what the teams borrow: %v", named, borrowed)
	}
	for _, name := range named {
		if !slices.Contains(evicted, name) {
			t.Errorf("%s is named by the review, and not evicted", name)
		}
	}
	m.recordedOnce()
	fmt.Printf("figure moves %d teams in %.1f s while %d tasks are submitted; %d tasks named, %d evicted, %d times together, %d not named\n",
		teams, took.Seconds(), len(added), len(named), len(evicted), times, len(unnamed))
}

const movePool = "truth.a" // one of pools

// moves is what TestMoves works on. All its names have the prefix.
type moves struct {
	*lab
	t      *testing.T
	prefix string
	each   int64    // how many teams leave each department
	movers []string // the teams that move
	teams  []string // all
	under  []string // departments
}

// await waits until check returns nil.
func (m *moves) await(what string, check func(context.Context) error) {
	m.t.Helper()
	began := time.Now()
	defer func() { m.t.Logf("waited %.1f s until %s", time.Since(began).Seconds(), what) }()
	clustertest.Eventually(m.t, 3*clustertest.Patience, func(ctx context.Context) error {
		if err := check(ctx); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	})
}

// department creates a department with GPUs and returns its name.
func (m *moves) department(name string, gpus int64) string {
	m.t.Helper()
	d := &v1alpha1.Department{ObjectMeta: metav1.ObjectMeta{Name: m.prefix + "-" + name}}
	d.Spec.Quota, d.Spec.Sharing = rowOf(gpus), v1alpha1.Sharing{Strategy: v1alpha1.LendAndBorrow, Unlimited: true}
	must(m.t, m.client.Create(m.t.Context(), d))
	m.under = append(m.under, d.Name)
	return d.Name
}

// team creates a team with one GPU and returns its name. Its tasks preempt those of other teams
// only for quota of its own and of its department.
func (m *moves) team(name, department string, strategy v1alpha1.SharingStrategy) string {
	m.t.Helper()
	a := &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: m.prefix + "-" + name}}
	a.Spec.Department, a.Spec.Quota = department, rowOf(1)
	a.Spec.Sharing = v1alpha1.Sharing{Strategy: strategy, Unlimited: strategy == v1alpha1.LendAndBorrow}
	a.Spec.Preemption.BorrowWithinCohort = "Never"
	must(m.t, m.client.Create(m.t.Context(), a))
	m.teams = append(m.teams, a.Name)
	return a.Name
}

func rowOf(gpus int64) []v1alpha1.QuotaRow {
	return []v1alpha1.QuotaRow{{InstanceType: movePool, Quantities: v1alpha1.Quantities{Accelerators: &gpus}}}
}

// applied returns nil once all allocations are ready.
func (m *moves) applied(ctx context.Context) error {
	for _, team := range m.teams {
		var a v1alpha1.ComputeAllocation
		if err := m.client.Get(ctx, client.ObjectKey{Name: team}, &a); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(a.Status.Conditions, v1alpha1.ConditionReady) || !meta.IsStatusConditionTrue(a.Status.Conditions, v1alpha1.ConditionQueueActive) {
			return fmt.Errorf("team %s: %+v", team, a.Status.Conditions)
		}
	}
	return nil
}

// submit creates a task of one GPU, which ends after runs, or never, and returns its name.
func (m *moves) submit(team, name string, class int, runs time.Duration) string {
	m.t.Helper()
	requests := corev1.ResourceList{catalog.GPU: resource.MustParse("1"), corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: team + "-" + name, Namespace: desired.DefaultNaming.Namespace(team),
			Labels: map[string]string{"kueue.x-k8s.io/queue-name": desired.DefaultNaming.LocalQueue(team), desired.PriorityClassLabel: classes[class]},
		},
		Spec: batchv1.JobSpec{
			Suspend: ptr.To(true), BackoffLimit: ptr.To[int32](0),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers:    []corev1.Container{{Name: "train", Image: "example.com/train:1", Resources: corev1.ResourceRequirements{Requests: requests, Limits: requests}}},
			}},
		},
	}
	podless.SetUp(job, runs, 0)
	if err := m.client.Create(m.t.Context(), job); err != nil {
		m.t.Errorf("submit %s: %v", job.Name, err)
	}
	return job.Name
}

// load submits four tasks for each team that moves, fewer if stop is called before, which
// returns their names: short ones of a team that neither lends nor borrows, and ones of the
// teams that move, which have no quota left for them. They preempt at most tasks that the review
// names: others have a higher priority.
func (m *moves) load(team string) (stop func() []string) {
	ctx, cancel := context.WithCancel(m.t.Context())
	names := make(chan []string)
	go func() {
		var submitted []string
		defer func() { names <- submitted }()
		ticks := time.NewTicker(100 * time.Millisecond)
		defer ticks.Stop()
		for i := 0; ctx.Err() == nil && i < 4*len(m.movers); i++ {
			if i%2 == 0 {
				submitted = append(submitted, m.submit(team, fmt.Sprint("load-", i), lowest, time.Second))
			} else {
				submitted = append(submitted, m.submit(m.movers[i%len(m.movers)], fmt.Sprint("load-", i), lowest, 0))
			}
			<-ticks.C
		}
	}()
	return func() []string {
		cancel()
		return <-names
	}
}

// states returns the states of all tasks, by name.
func (m *moves) states() map[string]workload {
	m.watcher.mu.Lock()
	defer m.watcher.mu.Unlock()
	all := map[string]workload{}
	for _, team := range m.teams {
		maps.Copy(all, m.watcher.states[desired.DefaultNaming.Namespace(team)])
	}
	return all
}

// known returns nil once Kueue has Workloads of these tasks.
func (m *moves) known(names []string) func(context.Context) error {
	return m.all(names, func(w workload) bool { return w.uid != "" })
}

// running returns nil once these tasks use quota.
func (m *moves) running(names []string) func(context.Context) error {
	return m.all(names, func(w workload) bool { return w.reserved && !w.evicting })
}

// all returns nil once the state of each of these tasks is so.
func (m *moves) all(names []string, is func(workload) bool) func(context.Context) error {
	return func(context.Context) error {
		all := m.states()
		left := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return is(all[name]) })
		if len(left) > 0 {
			return fmt.Errorf("not %d of %d: %s", len(left), len(names), left[0])
		}
		return nil
	}
}

// evicted returns the tasks that Kueue has ever evicted, for any reason, and how many times it
// has evicted one.
func (m *moves) evicted() (names []string, times int32) {
	m.t.Helper()
	for _, team := range m.teams {
		var list kueue.WorkloadList
		must(m.t, m.client.List(m.t.Context(), &list, client.InNamespace(desired.DefaultNaming.Namespace(team))))
		for i := range list.Items {
			if w := &list.Items[i]; w.Status.SchedulingStats != nil && len(w.Status.SchedulingStats.Evictions) > 0 {
				names = append(names, w.OwnerReferences[0].Name)
				for _, e := range w.Status.SchedulingStats.Evictions {
					times += e.Count
				}
			}
		}
	}
	slices.Sort(names)
	return names, times
}

// review selects the teams that move in the list, and a department. It returns the tasks that the
// review names as preempted or evicted.
func (m *moves) review(department string) (named []string, page *goquery.Document) {
	m.t.Helper()
	m.await("the review is simulated", func(ctx context.Context) (err error) {
		page, err = m.open(ctx, http.MethodPost, "/policies/many", url.Values{"do": {"move"}, "team": m.movers, "department": {department}})
		if err != nil {
			return err
		}
		said, ready := parsePreview(page.Find("#preview"))
		if !ready || said.failure != "" {
			return fmt.Errorf("preview: %s; %s", said.failure, text(page.Find("main")))
		}
		named = slices.Concat(said.effects["preempted"], said.effects["evicted"])
		return nil
	})
	slices.Sort(named)
	return named, page
}

// recordedOnce waits until the activity has one change of the department of each team that moved.
func (m *moves) recordedOnce() {
	m.t.Helper()
	m.await("each move is in the activity once", func(ctx context.Context) error {
		times := map[string]int{}
		for before := ""; ; {
			query := url.Values{"text": {m.prefix}, "action": {"update"}}
			if before != "" {
				query.Set("before", before)
			}
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.console+"/activity.json?"+query.Encode(), nil)
			if err != nil {
				return err
			}
			response, err := m.browser.Do(request)
			if err != nil {
				return err
			}
			var list struct {
				Entries []struct {
					Name    string
					Changes []string
				}
				Next string
			}
			err = json.NewDecoder(response.Body).Decode(&list)
			_ = response.Body.Close()
			if err != nil {
				return err
			}
			for _, e := range list.Entries {
				if slices.Contains(m.movers, e.Name) && strings.HasPrefix(strings.Join(e.Changes, ""), "spec.department: ") {
					times[e.Name]++
				}
			}
			if before = list.Next; before == "" {
				break
			}
		}
		for _, team := range m.movers {
			if times[team] != 1 {
				return fmt.Errorf("the activity has %d changes of %s, want 1", times[team], team)
			}
		}
		return nil
	})
}

// remove deletes all tasks, teams and departments.
func (m *moves) remove() {
	ctx, cancel := context.WithTimeout(context.Background(), 3*clustertest.Patience)
	defer cancel()
	for _, team := range m.teams {
		_ = m.client.DeleteAllOf(ctx, &batchv1.Job{}, client.InNamespace(desired.DefaultNaming.Namespace(team)), client.PropagationPolicy(metav1.DeletePropagationBackground))
		_ = m.client.Delete(ctx, &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: team}})
	}
	for _, name := range m.under {
		_ = m.client.Delete(ctx, &v1alpha1.Department{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	if err := until(ctx, func() error {
		for _, name := range m.under {
			if err := m.client.Get(ctx, client.ObjectKey{Name: name}, &v1alpha1.Department{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("department %s still exists: %v", name, err)
			}
		}
		return nil
	}); err != nil {
		m.t.Error(err)
	}
}
