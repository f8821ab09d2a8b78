package preemptionloops_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/controllers/loopguard"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// holdEnds are the ways in which a hold ends.
var holdEnds = map[string]func(s *scene){
	"the preemptor is admitted": func(s *scene) {
		admitted := s.preemptor.DeepCopy()
		admitted.Status.Conditions = []metav1.Condition{{Type: kueue.WorkloadQuotaReserved, Status: metav1.ConditionTrue}}
		s.drive(s.guard.Observe(s.preemptor, admitted, false))
	},
	"the limit": func(s *scene) {
		s.now = s.now.Add(2 * time.Minute)
		s.drive([]types.NamespacedName{client.ObjectKeyFromObject(s.victim)})
	},
	"a person resumes the victim": func(s *scene) {
		s.patch(`{"spec": {"active": true}}`)
		s.notice()
	},
	"a person removes the mark and resumes": func(s *scene) {
		s.patch(fmt.Sprintf(`{"metadata": {"annotations": {%q: null}}, "spec": {"active": true}}`, loopguard.MarkAnnotation))
		s.notice()
	},
	"the policy changes to Warn": func(s *scene) {
		setLoops(s.t, s.c, v1alpha1.WarnOfLoops)
		s.drive([]types.NamespacedName{client.ObjectKeyFromObject(s.victim)})
	},
}

// TestInterrupted kills the guard at each of its calls, before the call is sent and
// after it was carried out, and starts another. No Workload stays out of admission.
// Unless KUOTA_VERIFY is set, it kills the guard either before or after a call.
func TestInterrupted(t *testing.T) {
	c := clustertest.Get(t)
	furnish(t, c)
	s := recipe(clustertest.Name("killed"))
	s.pods, s.tasks = false, s.tasks[2:]
	begin(t, c, s)
	for name, end := range holdEnds {
		t.Run(name, func(t *testing.T) {
			calls, held := play(t, c, s, end, 0, false)
			if !held {
				t.Fatal("the victim was not held, so that nothing is interrupted")
			}
			if calls < 10 {
				t.Fatalf("the guard makes only %d calls", calls)
			}
			t.Logf("%d calls", calls)
			for n := int64(1); n <= calls; n++ {
				for _, after := range []bool{false, true} {
					if !clustertest.Verify && after == (n%2 == 0) {
						continue
					}
					play(t, c, s, end, n, after)
				}
			}
		})
	}
}

// play runs a loop until its hold has ended, with a guard that is killed at a call,
// and then another guard. The Workloads are real; what Kueue does to them is not.
// It returns how many calls the first guard made, and whether it held the victim.
func play(t *testing.T, c *clustertest.Cluster, s setting, end func(*scene), breakAt int64, after bool) (calls int64, held bool) {
	t.Helper()
	setLoops(t, c, v1alpha1.BreakLoops)
	p := &scene{t: t, c: c, now: time.Now(), line: &clustertest.Line{BreakAt: breakAt, After: after}}
	p.find(s)
	p.start()
	p.drive(p.guard.Observe(nil, p.victim, true))
	p.drive(p.guard.Observe(nil, p.preemptor, true))
	for range 3 {
		before := p.victim
		p.victim = p.preempted()
		p.drive(p.guard.Observe(before, p.victim, false))
		p.now = p.now.Add(time.Second)
	}
	if !p.line.Broken() {
		w := p.read()
		_, held = loopguard.HoldOf(w)
		p.drive(p.guard.Observe(p.victim, w, false)) // the watch shows the mark
		p.victim = w
		end(p)
	}
	calls = p.line.Calls()
	if p.line.Broken() {
		p.line = &clustertest.Line{}
		p.start()
		w := p.read()
		p.drive(p.guard.Observe(nil, w, true))
	}
	w := p.read()
	_, marked := loopguard.MarkOf(w)
	if marked || w.Spec.Active != nil && !*w.Spec.Active {
		t.Fatalf("killed at call %d (carried out: %t), the victim is left marked %t, active %v", breakAt, after, marked, *w.Spec.Active)
	}
	return calls, held
}

// scene is one guard, and the two Workloads of a loop.
type scene struct {
	t                 *testing.T
	c                 *clustertest.Cluster
	guard             *loopguard.Guard
	line              *clustertest.Line
	now               time.Time
	victim, preemptor *kueue.Workload
}

// find waits for the Workloads of a setting's tasks a-mid and b-mid.
func (p *scene) find(s setting) {
	p.t.Helper()
	clustertest.Eventually(p.t, time.Minute, func(ctx context.Context) error {
		var list kueue.WorkloadList
		if err := p.c.Client.List(ctx, &list); err != nil {
			return err
		}
		for i := range list.Items {
			switch w := &list.Items[i]; {
			case w.Namespace == s.namespace(0) && strings.HasPrefix(w.Name, "job-a-mid"):
				p.victim = w
			case w.Namespace == s.namespace(1) && strings.HasPrefix(w.Name, "job-b-mid"):
				p.preemptor = w
			}
		}
		if p.victim == nil || p.preemptor == nil {
			return errors.New("the Workloads do not exist yet")
		}
		return nil
	})
}

// start starts a guard whose calls go over the line.
func (p *scene) start() {
	p.t.Helper()
	direct, err := client.New(p.line.Over(p.c.Console), client.Options{Scheme: cluster.Scheme, Mapper: p.c.Client.RESTMapper()})
	if err != nil {
		p.t.Fatal(err)
	}
	p.guard = &loopguard.Guard{
		Client: direct, Live: direct, Events: events.NewFakeRecorder(100), Audit: unrecorded{}, Watcher: unwatched{},
		Log: slog.New(slog.DiscardHandler), Identity: clustertest.Name("guard"), Now: func() time.Time { return p.now },
		Find: func(uid types.UID) *kueue.Workload {
			for _, w := range []*kueue.Workload{p.victim, p.preemptor} {
				if w.UID == uid {
					return w
				}
			}
			return nil
		},
	}
	p.guard.Start()
}

// drive has the guard reconcile Workloads until it waits for something.
func (p *scene) drive(due []types.NamespacedName) {
	p.t.Helper()
	for _, key := range due {
		clustertest.Eventually(p.t, 20*time.Second, func(ctx context.Context) error {
			result, err := p.guard.Reconcile(ctx, ctrl.Request{NamespacedName: key})
			switch {
			case p.line.Broken():
				return nil
			case err != nil:
				return err
			case result.RequeueAfter > 0 && result.RequeueAfter < time.Second:
				return errors.New("the guard tries again at once")
			}
			return nil
		})
	}
}

// preempted returns the victim as it is after one more preemption.
func (p *scene) preempted() *kueue.Workload {
	w := p.victim.DeepCopy()
	w.Status.Conditions = []metav1.Condition{{
		Type: kueue.WorkloadEvicted, Status: metav1.ConditionTrue, Reason: kueue.WorkloadEvictedByPreemption, LastTransitionTime: metav1.NewTime(p.now.Truncate(time.Second)),
		Message: fmt.Sprintf("Preempted to accommodate a workload (UID: %s, JobUID: x) due to Fair Sharing within the cohort; preemptor path: /pool/b; preemptee path: /pool/a", p.preemptor.UID),
	}}
	w.Status.SchedulingStats = &kueue.SchedulingStats{Evictions: []kueue.WorkloadSchedulingStatsEviction{{Reason: kueue.WorkloadEvictedByPreemption, Count: preempted(p.victim) + 1}}}
	return w
}

func (p *scene) read() *kueue.Workload {
	p.t.Helper()
	var w kueue.Workload
	if err := p.c.Client.Get(p.t.Context(), client.ObjectKeyFromObject(p.victim), &w); err != nil {
		p.t.Fatal(err)
	}
	return &w
}

// patch changes the victim as a person who runs the cluster.
func (p *scene) patch(text string) {
	p.t.Helper()
	if err := p.c.Client.Patch(p.t.Context(), p.victim.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(text))); err != nil {
		p.t.Fatal(err)
	}
}

// notice has the guard observe the current victim.
func (p *scene) notice() {
	p.t.Helper()
	w := p.read()
	before := p.victim
	p.victim = w
	p.drive(p.guard.Observe(before, w, false))
}

func setLoops(t *testing.T, c *clustertest.Cluster, loops v1alpha1.PreemptionLoops) {
	t.Helper()
	policy := &v1alpha1.ClusterPolicy{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ClusterPolicyName}}
	if _, err := controllerutil.CreateOrUpdate(t.Context(), c.Client, policy, func() error {
		policy.Spec.PreemptionLoops, policy.Spec.Enforcement = loops, v1alpha1.EnforcementNone
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
