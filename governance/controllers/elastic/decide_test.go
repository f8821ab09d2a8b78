package elastic

import (
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

var start = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

func policy(change func(*v1alpha1.ElasticPolicy)) v1alpha1.ElasticPolicy {
	p := v1alpha1.ElasticPolicy{MinReplicas: 4, MaxReplicas: 16, ReplicaIncrementStep: ptr.To[int32](4), ScalingTimeoutInSeconds: 10, FaultyScaleDownTimeoutInSeconds: 30, MinStablePeriodSeconds: 60, BackoffMaxSeconds: 600}
	if change != nil {
		change(&p)
	}
	return p
}

func discrete(p *v1alpha1.ElasticPolicy) {
	p.ReplicaIncrementStep, p.MaxReplicas, p.ReplicaDiscreteValues = nil, 32, []int32{32, 4, 8, 16}
}

// provision asks for nodes, with a limit of pods that wait for them.
func provision(most *int32) func(*v1alpha1.ElasticPolicy) {
	return func(p *v1alpha1.ElasticPolicy) {
		p.Growth, p.ProvisionTimeoutInSeconds, p.MaxUnscheduledReplicas = v1alpha1.GrowthProvision, 600, most
	}
}

func TestSizes(t *testing.T) {
	for name, c := range map[string]struct {
		policy v1alpha1.ElasticPolicy
		want   []int32
	}{
		"equal steps":               {policy(nil), []int32{4, 8, 12, 16}},
		"discrete in any order":     {policy(discrete), []int32{4, 8, 16, 32}},
		"a single size":             {policy(func(p *v1alpha1.ElasticPolicy) { p.MaxReplicas = 4 }), []int32{4}},
		"a step beyond the maximum": {policy(func(p *v1alpha1.ElasticPolicy) { p.MaxReplicas = 7 }), []int32{4}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Sizes(c.policy)); diff != "" {
				t.Errorf("Sizes (-want +got):\n%s", diff)
			}
		})
	}
}

// running returns a job whose base has quota, with increments that got theirs one second
// after another.
func running(p v1alpha1.ElasticPolicy, increments ...Part) Observed {
	o := Observed{Job: &v1alpha1.ElasticJob{Spec: v1alpha1.ElasticJobSpec{ElasticPolicy: p}}, Base: &Part{Pods: p.MinReplicas, Phase: Admitted, Reserved: start}}
	for i, part := range increments {
		if part.Increment == 0 {
			part.Increment = i + 1
		}
		if part.Phase == "" {
			part.Phase = Admitted
		}
		if part.Phase != Waiting {
			part.Reserved = start.Add(time.Duration(i+1) * time.Second)
		}
		o.Increments = append(o.Increments, part)
	}
	return o
}

func fitting(since time.Time, sizes ...int32) map[int32]time.Time {
	m := map[int32]time.Time{}
	for _, s := range sizes {
		m[s] = since
	}
	return m
}

func TestDecide(t *testing.T) {
	now := start.Add(time.Hour)
	long := now.Add(-time.Minute)
	with := func(o Observed, change func(*Observed)) Observed { change(&o); return o }
	for name, c := range map[string]struct {
		observed   Observed
		create     []NewPart
		delete     []Deletion
		deleteBase bool
		size       int32
		state      v1alpha1.ElasticState
		after      time.Duration
	}{
		"nothing exists": {
			observed: with(running(policy(nil)), func(o *Observed) { o.Base = nil }), state: v1alpha1.ElasticPending,
		},
		"grows by one increment towards the largest size that fitted long enough": {
			observed: with(running(policy(nil)), func(o *Observed) {
				o.FitsSince = fitting(long, 8, 12)
				o.FitsSince[16] = now.Add(-time.Second)
			}),
			create: []NewPart{{Increment: 1, Pods: 4}}, size: 4, state: v1alpha1.ElasticRunning, after: 9 * time.Second,
		},
		"room that was just released must last": {
			observed: with(running(policy(func(p *v1alpha1.ElasticPolicy) { p.ScalingTimeoutInSeconds = 0 })), func(o *Observed) { o.FitsSince = fitting(now, 8) }),
			size:     4, state: v1alpha1.ElasticRunning, after: settleTime,
		},
		"unequal steps are created one after another": {
			observed: with(running(policy(discrete)), func(o *Observed) { o.FitsSince = fitting(long, 8, 16, 32) }),
			create:   []NewPart{{Increment: 1, Pods: 4}}, size: 4, state: v1alpha1.ElasticRunning,
		},
		"an unequal step waits for the next second": {
			observed: with(running(policy(discrete), Part{Pods: 4}), func(o *Observed) {
				o.FitsSince = fitting(long, 16)
				o.Increments[0].Reserved = now
			}),
			size: 8, state: v1alpha1.ElasticRunning, after: time.Second,
		},
		"with a preempted increment goes one that waits": {
			observed: running(policy(nil), Part{Pods: 4, Phase: Evicted, EvictedAt: now, Preempted: true}, Part{Pods: 4, Phase: Waiting, Created: now}),
			delete:   []Deletion{{1, v1alpha1.ScalePreempted}, {2, NotAdmitted}}, size: 4, state: v1alpha1.ElasticRunning, after: 2 * time.Second,
		},
		"a preempted increment is deleted": {
			observed: with(running(policy(nil), Part{Pods: 4}, Part{Pods: 4}), func(o *Observed) {
				o.Increments[1].Phase, o.Increments[1].Preempted, o.Increments[1].EvictedAt = Evicted, true, now
			}),
			delete: []Deletion{{2, v1alpha1.ScalePreempted}}, size: 8, state: v1alpha1.ElasticRunning,
		},
		"without one in the middle, equal steps stay": {
			observed: with(running(policy(nil), Part{Pods: 4}, Part{Pods: 4}), func(o *Observed) { o.Increments[0].Phase = Failed }),
			delete:   []Deletion{{1, v1alpha1.ScalePodsFailed}}, size: 8, state: v1alpha1.ElasticRunning,
		},
		"without one in the middle, unequal steps fall to an allowed size": {
			observed: with(running(policy(discrete), Part{Pods: 4}, Part{Pods: 8}, Part{Pods: 16}), func(o *Observed) { o.Increments[1].Phase = Failed }),
			delete:   []Deletion{{2, v1alpha1.ScalePodsFailed}, {3, v1alpha1.ScaleUneven}}, size: 8, state: v1alpha1.ElasticRunning,
		},
		"growth that a task is entitled to is withdrawn": {
			observed: with(running(policy(nil), Part{Pods: 4}), func(o *Observed) { o.Increments[0].ClaimedBy = "waiting" }),
			delete:   []Deletion{{1, v1alpha1.ScaleWithdrawn}}, size: 4, state: v1alpha1.ElasticRunning,
		},
		"an increment that Kueue does not admit is deleted": {
			observed: running(policy(nil), Part{Pods: 4, Phase: Waiting, Created: now.Add(-2 * time.Second)}),
			delete:   []Deletion{{1, NotAdmitted}}, size: 4, state: v1alpha1.ElasticRunning,
		},
		"an increment that was just created stays": {
			observed: running(policy(nil), Part{Pods: 4, Phase: Waiting, Created: now}), size: 4, state: v1alpha1.ElasticRunning, after: 2 * time.Second,
		},
		"a smaller maximum": {
			observed: with(running(policy(nil), Part{Pods: 4}, Part{Pods: 4}), func(o *Observed) { o.Job.Spec.ElasticPolicy.MaxReplicas = 8 }),
			delete:   []Deletion{{2, v1alpha1.ScaleResized}}, size: 8, state: v1alpha1.ElasticRunning,
		},
		"without its minimum, growth goes": {
			observed: with(running(policy(nil), Part{Pods: 4}), func(o *Observed) { o.Base.Phase = Evicted }),
			delete:   []Deletion{{1, BaseWaits}}, state: v1alpha1.ElasticPending,
		},
		"it does not grow during the backoff": {
			observed: with(running(policy(nil)), func(o *Observed) {
				o.FitsSince = fitting(long, 8)
				o.Job.Status.GrowsAfter = &metav1.Time{Time: now.Add(5 * time.Second)}
			}),
			size: 4, state: v1alpha1.ElasticRunning, after: 5 * time.Second,
		},
		"faulty pods are given up after a while": {
			observed: with(running(policy(nil), Part{Pods: 4}, Part{Pods: 4}), func(o *Observed) {
				for i, since := range []time.Duration{30 * time.Second, 10 * time.Second} {
					o.Increments[i].Fault = Fault{Since: now.Add(-since), Cause: v1alpha1.ScalePodsFailed}
				}
			}),
			delete: []Deletion{{1, v1alpha1.ScalePodsFailed}}, size: 8, state: v1alpha1.ElasticRunning, after: 20 * time.Second,
		},
		"a pod of the minimum without a node gets that of growth after a while": {
			observed: with(running(policy(nil), Part{Pods: 4}, Part{Pods: 4}), func(o *Observed) {
				o.Base.Fault = Fault{Since: now.Add(-30 * time.Second), Cause: v1alpha1.ScaleNodeLost, NoNode: true}
			}),
			delete: []Deletion{{2, v1alpha1.ScaleNodeLost}}, size: 8, state: v1alpha1.ElasticRunning,
		},
		"a raised minimum is guaranteed beside growth": {
			observed: with(running(policy(nil), Part{Pods: 4}), func(o *Observed) { o.Job.Spec.ElasticPolicy.MinReplicas = 8; o.FitsSince = fitting(long, 12) }),
			create:   []NewPart{{Increment: 2, Pods: 4, Guaranteed: true}}, size: 8, state: v1alpha1.ElasticRunning,
		},
		"growth above the maximum goes once the minimum is larger": {
			observed: with(running(policy(nil), Part{Pods: 4}, Part{Pods: 4}, Part{Pods: 4}, Part{Pods: 4, Guaranteed: true}), func(o *Observed) { o.Job.Spec.ElasticPolicy.MinReplicas = 8 }),
			delete:   []Deletion{{3, v1alpha1.ScaleResized}}, size: 16, state: v1alpha1.ElasticRunning,
		},
		"guaranteed pods that were preempted wait": {
			observed: with(running(policy(nil), Part{Pods: 4, Guaranteed: true, Phase: Evicted, Preempted: true}), func(o *Observed) {
				o.Job.Spec.ElasticPolicy.MinReplicas = 8
				o.FitsSince = fitting(long, 8)
			}),
			size: 4, state: v1alpha1.ElasticRunning,
		},
		"a lowered minimum releases what was guaranteed beside the base": {
			observed: running(policy(nil), Part{Pods: 4, Guaranteed: true}, Part{Pods: 4}),
			delete:   []Deletion{{1, v1alpha1.ScaleResized}}, size: 8, state: v1alpha1.ElasticRunning,
		},
		"an evicted base gets the new minimum": {
			observed: with(running(policy(nil)), func(o *Observed) {
				o.Base.Phase, o.Base.Reserved, o.Base.Outdated = Evicted, time.Time{}, true
			}),
			deleteBase: true, state: v1alpha1.ElasticPending,
		},
		"asks for nodes where quota fits and nodes do not": {
			observed: with(running(policy(provision(nil))), func(o *Observed) { o.MayProvision, o.QuotaFitsSince = true, fitting(long, 8, 12) }),
			create:   []NewPart{{Increment: 1, Pods: 4, Provision: true}}, size: 4, state: v1alpha1.ElasticRunning,
		},
		"nodes that exist come first, also while they must be idle for longer": {
			observed: with(running(policy(provision(nil))), func(o *Observed) {
				o.MayProvision, o.QuotaFitsSince, o.FitsSince = true, fitting(long, 8), fitting(now, 8)
			}),
			size: 4, state: v1alpha1.ElasticRunning, after: 10 * time.Second,
		},
		"one step waits for nodes at a time": {
			observed: with(running(policy(provision(nil)), Part{Pods: 4, Provision: true, Unscheduled: 1}), func(o *Observed) {
				o.MayProvision, o.QuotaFitsSince, o.Increments[0].Reserved = true, fitting(long, 12), now
			}),
			size: 4, state: v1alpha1.ElasticRunning, after: 10 * time.Minute,
		},
		"more wait for nodes within the limit": {
			observed: with(running(policy(provision(new(int32(5)))), Part{Pods: 4, Provision: true, Unscheduled: 1}), func(o *Observed) {
				o.MayProvision, o.QuotaFitsSince, o.Increments[0].Reserved = true, fitting(long, 12), now
			}),
			create: []NewPart{{Increment: 2, Pods: 4, Provision: true}}, size: 4, state: v1alpha1.ElasticRunning, after: 10 * time.Minute,
		},
		"growth for which no node came is withdrawn": {
			observed: with(running(policy(provision(nil)), Part{Pods: 4, Provision: true, Unscheduled: 1}), func(o *Observed) { o.MayProvision = true }),
			delete:   []Deletion{{1, v1alpha1.ScaleNoNodes}}, size: 4, state: v1alpha1.ElasticRunning,
		},
		"it is withdrawn before Kueue evicts it": {
			observed: with(running(policy(provision(nil)), Part{Pods: 4, Provision: true, Unscheduled: 1}), func(o *Observed) {
				o.MayProvision, o.PodsReadyTimeout, o.Increments[0].Reserved = true, time.Minute, now.Add(-50*time.Second)
			}),
			delete: []Deletion{{1, v1alpha1.ScaleNoNodes}}, size: 4, state: v1alpha1.ElasticRunning,
		},
		"what got nodes stays": {
			observed: with(running(policy(provision(nil)), Part{Pods: 4, Provision: true}), func(o *Observed) { o.MayProvision = true }),
			size:     8, state: v1alpha1.ElasticRunning,
		},
		"growth that waits for nodes is withdrawn where it may not": {
			observed: running(policy(nil), Part{Pods: 4, Provision: true}, Part{Pods: 4, Provision: true, Unscheduled: 1}),
			delete:   []Deletion{{2, NotAskedFor}}, size: 8, state: v1alpha1.ElasticRunning,
		},
		"a pod of the minimum without a node gets that of growth that has one": {
			observed: with(running(policy(provision(nil)), Part{Pods: 4}, Part{Pods: 4, Provision: true, Unscheduled: 4}), func(o *Observed) {
				o.MayProvision, o.Increments[1].Reserved = true, now
				o.Base.Fault = Fault{Since: now.Add(-30 * time.Second), Cause: v1alpha1.ScaleNodeLost, NoNode: true}
			}),
			delete: []Deletion{{1, v1alpha1.ScaleNodeLost}}, size: 4, state: v1alpha1.ElasticRunning, after: 10 * time.Minute,
		},
		"the base succeeds": {
			observed: with(running(policy(nil), Part{Pods: 4}), func(o *Observed) { o.Base.Phase = Complete }),
			delete:   []Deletion{{1, Ended}}, state: v1alpha1.ElasticSucceeded,
		},
		"suspended": {
			observed: with(running(policy(nil), Part{Pods: 4}), func(o *Observed) { o.Job.Spec.Suspend = true }),
			delete:   []Deletion{{1, Ended}}, state: v1alpha1.ElasticSuspended,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Decide(c.observed, now)
			if diff := cmp.Diff(c.create, got.Create); diff != "" {
				t.Errorf("created (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.delete, got.Delete); diff != "" {
				t.Errorf("deleted (-want +got):\n%s", diff)
			}
			if got.DeleteBase != c.deleteBase {
				t.Errorf("deletes the base: %v, want %v", got.DeleteBase, c.deleteBase)
			}
			if got.Status.Replicas != c.size || got.Status.State != c.state || got.After != c.after {
				t.Errorf("got size %d, %s, again after %s; want %d, %s, %s", got.Status.Replicas, got.Status.State, got.After, c.size, c.state, c.after)
			}
		})
	}
}

// Growth that is taken back soon makes the job wait twice as long each time, up to the
// maximum. A retraction is counted once, however often it is decided about.
func TestBackoff(t *testing.T) {
	p := policy(nil)
	at := start
	var status v1alpha1.ElasticJobStatus
	for i, want := range []time.Duration{60, 120, 240, 480, 600, 600} {
		o := running(p, Part{Pods: 4})
		o.Job.Status = status
		o.Increments[0].Reserved = at
		at = at.Add(10 * time.Second)
		o.Increments[0].Phase, o.Increments[0].Preempted, o.Increments[0].EvictedAt = Evicted, true, at
		status = Decide(o, at).Status
		o.Job.Status = status
		again := Decide(o, at.Add(time.Second)).Status
		if got := status.GrowsAfter.Sub(at); got != want*time.Second || !again.GrowsAfter.Equal(status.GrowsAfter) || again.Retractions != status.Retractions {
			t.Errorf("retraction %d: grows after %s and %d retractions, then %d; want %s", i+1, got, status.Retractions, again.Retractions, want*time.Second)
		}
		at = status.GrowsAfter.Time
	}
	o := running(p, Part{Pods: 4})
	o.Job.Status = status
	o.Increments[0].Reserved = at
	at = at.Add(time.Hour)
	o.Increments[0].Phase, o.Increments[0].Preempted, o.Increments[0].EvictedAt = Evicted, true, at
	if got := Decide(o, at).Status.GrowsAfter.Sub(at); got != time.Minute {
		t.Errorf("after a stable hour it grows after %s, want 1m", got)
	}
}

// Growth that Kueue does not admit at once was not taken back: the job tries again soon, and
// later each time.
func TestBackoffOfNotAdmitted(t *testing.T) {
	p := policy(nil)
	p.ScalingTimeoutInSeconds = 1
	at := start
	var status v1alpha1.ElasticJobStatus
	for i, want := range []time.Duration{5, 10, 20, 40} {
		o := running(p, Part{Pods: 4})
		o.Job.Status = status
		o.Increments[0].Phase, o.Increments[0].Reserved, o.Increments[0].Created = Waiting, time.Time{}, at
		at = at.Add(admissionGrace)
		status = Decide(o, at).Status
		if status.GrowsAfter == nil || status.GrowsAfter.Sub(at) != want*time.Second {
			t.Fatalf("attempt %d: grows after %v, want %s later than %s", i+1, status.GrowsAfter, want*time.Second, at)
		}
		at = status.GrowsAfter.Time
	}
}

// Each change of the size is one event with its cause and counterpart.
func TestScaleEvents(t *testing.T) {
	now := start.Add(time.Hour)
	evicted := func(by string) Part {
		return Part{Pods: 4, Phase: Evicted, Preempted: true, For: types.UID(by), EvictedAt: now.Add(-2 * time.Second)}
	}
	for name, c := range map[string]struct {
		before   int32
		observed Observed
		change   func(*Observed)
		want     v1alpha1.ScaleEvent
	}{
		"admitted":         {0, running(policy(nil)), nil, v1alpha1.ScaleEvent{To: 4, Cause: v1alpha1.ScaleAdmitted, Time: metav1.Time{Time: start}}},
		"idle compute":     {4, running(policy(nil), Part{Pods: 4}, Part{Pods: 4}), nil, v1alpha1.ScaleEvent{From: 4, To: 12, Cause: v1alpha1.ScaleIdleCompute, Time: metav1.Time{Time: start.Add(2 * time.Second)}}},
		"preempted":        {12, running(policy(nil), Part{Pods: 4}, evicted("w")), nil, v1alpha1.ScaleEvent{From: 12, To: 8, Cause: v1alpha1.ScalePreempted, ForWorkload: "w", Time: metav1.Time{Time: now.Add(-2 * time.Second)}}},
		"withdrawn":        {8, running(policy(nil), Part{Pods: 4, ClaimedBy: "w"}), nil, v1alpha1.ScaleEvent{From: 8, To: 4, Cause: v1alpha1.ScaleWithdrawn, ForWorkload: "w"}},
		"uneven":           {16, running(policy(discrete), Part{Pods: 4, Phase: Evicted, Preempted: true, For: "w", EvictedAt: now}, Part{Pods: 8}), nil, v1alpha1.ScaleEvent{From: 16, To: 4, Cause: v1alpha1.ScalePreempted, ForWorkload: "w"}},
		"deleted":          {12, running(policy(nil), Part{Pods: 4}), nil, v1alpha1.ScaleEvent{From: 12, To: 8, Cause: v1alpha1.ScaleDeleted}},
		"resized by ada":   {16, running(policy(func(p *v1alpha1.ElasticPolicy) { p.MaxReplicas = 12 }), Part{Pods: 4}, Part{Pods: 4}, Part{Pods: 4}), nil, v1alpha1.ScaleEvent{From: 16, To: 12, Cause: v1alpha1.ScaleResized, By: "ada"}},
		"suspended by ada": {8, running(policy(nil), Part{Pods: 4}), func(o *Observed) { o.Job.Spec.Suspend = true }, v1alpha1.ScaleEvent{From: 8, Cause: v1alpha1.ScaleSuspended, By: "ada"}},
		"minimum preempted": {8, running(policy(nil), Part{Pods: 4}), func(o *Observed) { o.Base.Phase, o.Base.Preempted, o.Base.For = Evicted, true, "w" },
			v1alpha1.ScaleEvent{From: 8, Cause: v1alpha1.ScalePreempted, ForWorkload: "w"}},
		"ended": {8, running(policy(nil), Part{Pods: 4}), func(o *Observed) { o.Base.Phase = Complete }, v1alpha1.ScaleEvent{From: 8, Cause: v1alpha1.ScaleSucceeded}},
	} {
		t.Run(name, func(t *testing.T) {
			o := c.observed
			o.ChangedBy = "ada"
			o.Job.Status.Replicas = c.before
			o.Job.Status.ScaleEvents = []v1alpha1.ScaleEvent{{Number: 6, Time: metav1.Time{Time: start}}}
			if c.change != nil {
				c.change(&o)
			}
			if c.want.Time.IsZero() {
				c.want.Time = metav1.Time{Time: now}
			}
			if c.want.Number = 7; c.want.To > 0 {
				c.want.Minimum = 4
			}
			status := Decide(o, now).Status
			if diff := cmp.Diff([]v1alpha1.ScaleEvent{o.Job.Status.ScaleEvents[0], c.want}, status.ScaleEvents); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			o.Job.Status = status
			if again := Decide(o, now).Status.ScaleEvents; len(again) != 2 {
				t.Errorf("the same state again added %v", again[2:])
			}
		})
	}
}

// A change of the policy is one event with what changed, and so is a change of the minimum that
// leaves the size as it is.
func TestPolicyEvents(t *testing.T) {
	now := start.Add(time.Hour)
	o := running(policy(nil), Part{Pods: 4}, Part{Pods: 4})
	o.ChangedBy = "ada"
	decide := func() []v1alpha1.ScaleEvent {
		had := len(o.Job.Status.ScaleEvents)
		o.Job.Status = Decide(o, now).Status
		return o.Job.Status.ScaleEvents[had:]
	}
	if events := decide(); len(events) != 1 || events[0].Changes != nil {
		t.Fatalf("events %+v, want that it started", events)
	}
	o.Job.Spec.ElasticPolicy = policy(func(p *v1alpha1.ElasticPolicy) {
		p.MaxReplicas, p.ReplicaIncrementStep, p.ReplicaDiscreteValues, p.Growth, p.GracefulShutdownTimeoutInSeconds = 12, nil, []int32{4, 8, 12}, v1alpha1.GrowthProvision, 90
	})
	want := v1alpha1.ScaleEvent{Number: 2, Time: metav1.Time{Time: now}, From: 12, To: 12, Minimum: 4, Cause: v1alpha1.ScalePolicy, By: "ada", Changes: []v1alpha1.PolicyChange{
		{Field: "maxReplicas", From: "16", To: "12"}, {Field: "replicaIncrementStep", From: "4"}, {Field: "replicaDiscreteValues", To: "4, 8, 12"},
		{Field: "gracefulShutdownTimeoutInSeconds", From: "0", To: "90"}, {Field: "growth", To: "Provision"},
	}}
	if diff := cmp.Diff([]v1alpha1.ScaleEvent{want}, decide()); diff != "" {
		t.Errorf("events of the policy (-want +got):\n%s", diff)
	}
	if events := decide(); len(events) > 0 {
		t.Errorf("the same policy again added %+v", events)
	}

	// Pods that a larger minimum added get quota as growth loses as much.
	o.Increments[1] = Part{Increment: 3, Pods: 4, Phase: Admitted, Guaranteed: true, Reserved: now.Add(-time.Second)}
	o.Job.Spec.ElasticPolicy.MinReplicas, o.Job.Spec.ElasticPolicy.ReplicaDiscreteValues = 8, []int32{8, 12}
	events := decide()
	if len(events) != 2 || events[0].Cause != v1alpha1.ScalePolicy || events[1].Cause != v1alpha1.ScaleAdmitted || events[1].From != 12 || events[1].To != 12 || events[1].Minimum != 8 {
		t.Errorf("events of the minimum %+v", events)
	}
}
