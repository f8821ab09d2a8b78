package loopguard

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// fakeCluster feeds a detector with Workloads that change as Kueue changes them.
type fakeCluster struct {
	*detector
	now       time.Time
	workloads map[types.UID]*kueue.Workload
}

func newCluster() *fakeCluster {
	return &fakeCluster{detector: newDetector(), now: noon, workloads: map[types.UID]*kueue.Workload{}}
}

func (c *fakeCluster) write(uid types.UID, change func(w *kueue.Workload)) *preemptions {
	before := c.workloads[uid]
	w := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{UID: uid, Name: string(uid)}}
	if before != nil {
		w = before.DeepCopy()
	}
	change(w)
	c.workloads[uid] = w
	victim := uid // a UID with a slash is that of a replica, behind its service's
	if service, _, ok := strings.Cut(string(uid), "/"); ok {
		victim = types.UID(service)
	}
	return c.update(victim, before, w, c.now)
}

func (c *fakeCluster) condition(w *kueue.Workload, name string, status bool, reason, message string) {
	set := metav1.Condition{Type: name, Status: "False", Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(c.now.Truncate(time.Second))}
	if status {
		set.Status = "True"
	}
	for i := range w.Status.Conditions {
		if w.Status.Conditions[i].Type == name {
			w.Status.Conditions[i] = set
			return
		}
	}
	w.Status.Conditions = append(w.Status.Conditions, set)
}

func (c *fakeCluster) admit(uid types.UID) {
	c.write(uid, func(w *kueue.Workload) { c.condition(w, kueue.WorkloadQuotaReserved, true, "QuotaReserved", "") })
}

// preempt has Kueue preempt a Workload times times for one of queue, and release its
// quota, as Kueue does when the pods of the victim have ended.
func (c *fakeCluster) preempt(victim, by types.UID, queue string, times int32) *preemptions {
	defer c.lose(victim)
	return c.preempted(victim, by, queue, times)
}

// preempted has Kueue preempt a Workload that still has quota.
func (c *fakeCluster) preempted(victim, by types.UID, queue string, times int32) *preemptions {
	return c.write(victim, func(w *kueue.Workload) {
		c.condition(w, kueue.WorkloadEvicted, true, "Preempted", fmt.Sprintf("Preempted to accommodate a workload (UID: %s, JobUID: x) due to Fair Sharing within the cohort; preemptor path: /pool/%s; preemptee path: /pool/a", by, queue))
		c.condition(w, kueue.WorkloadPreempted, true, "InCohortFairSharing", "")
		if w.Status.SchedulingStats == nil {
			w.Status.SchedulingStats = &kueue.SchedulingStats{Evictions: []kueue.WorkloadSchedulingStatsEviction{{Reason: "Preempted"}}}
		}
		w.Status.SchedulingStats.Evictions[0].Count += times
	})
}

func (c *fakeCluster) lose(uid types.UID) {
	c.write(uid, func(w *kueue.Workload) { c.condition(w, kueue.WorkloadQuotaReserved, false, "Pending", "") })
}

func (c *fakeCluster) finish(uid types.UID) {
	c.write(uid, func(w *kueue.Workload) { c.condition(w, kueue.WorkloadFinished, true, "Succeeded", "") })
}

func (c *fakeCluster) wait(d time.Duration) { c.now = c.now.Add(d) }

// The UIDs are hexadecimal, as in Kueue's messages.
const (
	v  = types.UID("aaaa")
	p  = types.UID("b1")
	p2 = types.UID("b2")
	p3 = types.UID("b3")
)

// Workloads with conditions and counts that Kueue never writes change nothing for those behind.
func TestDetector(t *testing.T) {
	for name, tc := range map[string]struct {
		run      func(c *fakeCluster) *preemptions
		wantLoop bool
	}{
		"three preemptions, the preemptor is never admitted": {func(c *fakeCluster) (last *preemptions) {
			for range 3 {
				c.admit(v)
				last = c.preempt(v, p, "b", 1)
				c.wait(time.Second)
			}
			return last
		}, true},
		"two preemptions": {func(c *fakeCluster) (last *preemptions) {
			for range 2 {
				c.admit(v)
				last = c.preempt(v, p, "b", 1)
				c.wait(time.Second)
			}
			return last
		}, false},
		"three preemptions in one change of the Workload": {func(c *fakeCluster) *preemptions {
			c.admit(v)
			return c.preempt(v, p, "b", 3)
		}, true},
		"three preemptions over two minutes": {func(c *fakeCluster) (last *preemptions) {
			for range 3 {
				c.admit(v)
				last = c.preempt(v, p, "b", 1)
				c.wait(45 * time.Second)
			}
			return last
		}, false},
		"three preemptors of one queue, none of which is admitted": {func(c *fakeCluster) (last *preemptions) {
			for _, by := range []types.UID{p, p2, p3} {
				c.admit(v)
				last = c.preempt(v, by, "b", 1)
				c.wait(time.Second)
			}
			return last
		}, true},
		"three preemptors that run": {func(c *fakeCluster) (last *preemptions) {
			for _, by := range []types.UID{p, p2, p3} {
				c.admit(v)
				last = c.preempt(v, by, "b", 1)
				c.wait(time.Second)
				c.admit(by)
				c.wait(time.Second)
			}
			return last
		}, false},
		"three preemptors that run and finish within a second": {func(c *fakeCluster) (last *preemptions) {
			for _, by := range []types.UID{p, p2, p3} {
				c.admit(v)
				last = c.preempt(v, by, "b", 1)
				c.admit(by)
				c.wait(time.Second)
				c.finish(by)
				c.lose(by)
			}
			return last
		}, false},
		"a preemptor that is deleted before it is admitted": {func(c *fakeCluster) (last *preemptions) {
			for _, by := range []types.UID{p, p2, p3} {
				c.admit(v)
				last = c.preempt(v, by, "b", 1)
				c.wait(time.Second)
				c.remove(by)
			}
			return last
		}, false},
		"a preemptor that loses its quota at once, as in a loop of three": {func(c *fakeCluster) (last *preemptions) {
			for range 3 {
				c.admit(v)
				last = c.preempt(v, p, "b", 1)
				c.admit(p)
				c.wait(time.Second)
				c.lose(p)
				c.wait(time.Second)
			}
			return last
		}, true},
		"a preemptor that runs for a while and is preempted itself": {func(c *fakeCluster) (last *preemptions) {
			for range 3 {
				c.admit(v)
				last = c.preempt(v, p, "b", 1)
				c.admit(p)
				c.wait(15 * time.Second)
				c.lose(p)
			}
			return last
		}, false},
		"preemptors of three queues, none of which is admitted": {func(c *fakeCluster) (last *preemptions) {
			for i, by := range []types.UID{p, p2, p3} {
				c.admit(v)
				last = c.preempt(v, by, fmt.Sprint("b", i), 1)
				c.wait(time.Second)
			}
			return last
		}, false},
		"three replicas of a service, each admitted after the one before was preempted": {func(c *fakeCluster) (last *preemptions) {
			for i := range 3 {
				c.wait(time.Second)
				replica := types.UID(fmt.Sprint("aaaa/", i))
				c.admit(replica)
				c.wait(time.Second)
				last = c.preempt(replica, p, "b", 1)
				c.remove(replica)
			}
			return last
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			c.write(p, func(*kueue.Workload) {})
			c.write(p2, func(*kueue.Workload) {})
			c.write(p3, func(*kueue.Workload) {})
			for _, message := range []string{"", "(UID: ", "(UID: aaaa", "preemptor path: ; (UID: 0)"} {
				c.write("odd", func(w *kueue.Workload) {
					w.Status.Conditions = []metav1.Condition{{}, {Type: kueue.WorkloadEvicted, Message: message}}
					times := int32(len(message)) * 1e8
					w.Status.SchedulingStats = &kueue.SchedulingStats{Evictions: []kueue.WorkloadSchedulingStatsEviction{{}, {Reason: "Preempted", Count: times}}}
				})
			}
			got := tc.run(c)
			if got == nil {
				t.Fatal("the detector did not see the last preemption")
			}
			if got.loop != tc.wantLoop {
				t.Errorf("loop is %v after %d fruitless preemptions, want %v", got.loop, got.fruitless, tc.wantLoop)
			}
		})
	}
}

// Kueue preempts as many replicas of a service at once as a preemptor needs.
func TestReplicasPreemptedAtOnce(t *testing.T) {
	c := newCluster()
	c.write(p, func(*kueue.Workload) {})
	for i := range 4 {
		c.admit(types.UID(fmt.Sprint("aaaa/", i)))
	}
	c.wait(time.Minute)
	for i := range 4 {
		if got := c.preempt(types.UID(fmt.Sprint("aaaa/", i)), p, "b", 1); got != nil && got.loop {
			t.Errorf("replica %d: a loop after %d fruitless preemptions, want none", i, got.fruitless)
		}
	}
}

// The detector drops victims older than a window, and preemptors of long ago.
func TestDetectorDropsOldEntries(t *testing.T) {
	c := newCluster()
	for i := range 100 {
		victim := types.UID(fmt.Sprintf("a%d", i))
		c.admit(victim)
		c.preempt(victim, types.UID(fmt.Sprintf("b%d", i)), "b", 1)
	}
	c.wait(remembered + 2*window)
	c.write(v, func(*kueue.Workload) {})
	if len(c.victims) != 0 || len(c.preemptors) != 0 {
		t.Errorf("got %d victims and %d preemptors, want none", len(c.victims), len(c.preemptors))
	}
}

func TestMark(t *testing.T) {
	mark := Mark{Identity: "console-1", Preemptor: p, Since: noon, Until: noon.Add(time.Minute)}
	inactive := false
	for name, tc := range map[string]struct {
		annotations          map[string]string
		active               *bool
		want                 Mark
		wantMarked, wantHeld bool
	}{
		"held":                    {map[string]string{MarkAnnotation: mark.String()}, &inactive, mark, true, true},
		"resumed":                 {map[string]string{MarkAnnotation: mark.String()}, nil, mark, true, false},
		"deactivated by a person": {nil, &inactive, Mark{}, false, false},
		"unreadable":              {map[string]string{MarkAnnotation: "{"}, &inactive, Mark{}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}}
			w.Spec.Active = tc.active
			got, marked := MarkOf(w)
			_, held := HoldOf(w)
			if got != tc.want || marked != tc.wantMarked || held != tc.wantHeld {
				t.Errorf("got the mark %+v, %v and hold %v, want %+v, %v, %v", got, marked, held, tc.want, tc.wantMarked, tc.wantHeld)
			}
		})
	}
}
