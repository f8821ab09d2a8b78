package elastic

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"

	"k8s.io/utils/ptr"
)

// world is a job with the quota and the nodes around it, in virtual time. Of its base both
// are enough.
type world struct {
	testing.TB
	*rand.Rand
	Observed
	memory       memory
	now          time.Time
	quota, nodes int32 // pods of growth that they have room for
	decided      Decision
}

func newWorld(t testing.TB, seed uint64) *world {
	w := &world{TB: t, Rand: rand.New(rand.NewPCG(seed, 1)), memory: newMemory(), now: start}
	p := policy(nil)
	if w.IntN(2) == 0 {
		p = policy(discrete)
	}
	if w.IntN(3) > 0 {
		provision(nil)(&p)
		if p.ProvisionTimeoutInSeconds = int32(20 + w.IntN(100)); w.IntN(2) == 0 {
			p.MaxUnscheduledReplicas = new(int32(4 + w.IntN(20)))
			if p.ReplicaIncrementStep == nil {
				p.MaxUnscheduledReplicas = new(int32(16 + w.IntN(20)))
			}
		}
		if w.IntN(2) == 0 {
			w.PodsReadyTimeout = time.Duration(10+w.IntN(100)) * time.Second
		}
	}
	w.Observed = Observed{Job: running(p).Job, Base: running(p).Base, PodsReadyTimeout: w.PodsReadyTimeout, MayProvision: p.Provisions()}
	return w
}

func (w *world) policy() *v1alpha1.ElasticPolicy { return &w.Job.Spec.ElasticPolicy }

// used returns the pods of growth that have quota, or wait for it, and those that have nodes.
func (w *world) used() (quota, nodes int32) {
	for _, p := range w.Increments {
		if p.Phase == Admitted || p.Phase == Waiting {
			quota += p.Pods
			nodes += p.Pods - p.Unscheduled
		}
	}
	return quota, nodes
}

// schedule gives nodes to pods that wait for them.
func (w *world) schedule() {
	_, used := w.used()
	for i := range w.Increments {
		if p := &w.Increments[i]; p.Phase == Admitted {
			got := max(0, min(p.Unscheduled, w.nodes-used))
			p.Unscheduled -= got
			used += got
		}
	}
}

// event makes something happen to the job or around it.
func (w *world) event() {
	for i := range w.Increments {
		p := &w.Increments[i]
		switch w.IntN(24) {
		case 0:
			p.Phase, p.Preempted, p.EvictedAt = Evicted, true, w.now
		case 1:
			p.Phase = Failed
		case 2:
			if p.Phase == Admitted {
				p.ClaimedBy = "waiting"
			}
		case 3:
			p.Fault = Fault{Since: w.now, Cause: v1alpha1.ScalePodsFailed}
		}
	}
	switch w.IntN(6) {
	case 0:
		w.quota = int32(w.IntN(32))
	case 1:
		_, placed := w.used()
		w.nodes = max(placed, int32(w.IntN(32)))
	case 2:
		w.nodes++
	case 3:
		w.MayProvision = w.policy().Provisions() && w.IntN(4) > 0
	}
}

// admit is what Kueue does: it admits increments in quota, and preempts the newest beyond.
func (w *world) admit() {
	for i := range w.Increments {
		if p := &w.Increments[i]; p.Phase == Waiting {
			if used, _ := w.used(); used <= w.quota {
				p.Phase, p.Reserved = Admitted, w.now.Truncate(time.Second)
			}
		}
	}
	slices.SortFunc(w.Increments, newestFirst)
	for i := range w.Increments {
		if used, _ := w.used(); used > w.quota && w.Increments[i].Phase == Admitted {
			w.Increments[i].Phase, w.Increments[i].Preempted, w.Increments[i].EvictedAt = Evicted, true, w.now
		}
	}
}

// decide makes a decision, checks and applies it.
func (w *world) decide() {
	used, placed := w.used()
	size, p := w.Base.Pods+used, *w.policy()
	quota := max(0, w.quota-used)
	nodes := min(quota, w.nodes-placed)
	for _, part := range w.Increments {
		if part.Phase == Admitted {
			nodes -= part.Unscheduled
		}
	}
	w.FitsSince = w.memory.fitsSince(fitKey{job: "a"}, p, size, nodes, false, w.now)
	w.QuotaFitsSince = w.memory.fitsSince(fitKey{"a", true}, p, size, quota, false, w.now)
	d := Decide(w.Observed, w.now)
	w.decided, w.Job.Status = d, d.Status
	for _, gone := range d.Delete {
		w.Increments = slices.DeleteFunc(w.Increments, func(p Part) bool { return p.Increment == gone.Increment })
	}
	for _, n := range d.Create {
		if slices.ContainsFunc(w.Increments, func(p Part) bool { return p.Increment == n.Increment }) {
			w.Fatalf("increment %d exists", n.Increment)
		}
		if n.Provision && (n.Pods > quota || !w.MayProvision) || !n.Provision && n.Pods > nodes {
			w.Fatalf("asks for %+v, which needs a preemption or nodes that do not exist: room for %d in quota and %d on nodes", n, quota, nodes)
		}
		part := Part{Increment: n.Increment, Pods: n.Pods, Provision: n.Provision, Phase: Waiting, Created: w.now.Truncate(time.Second)}
		if n.Provision {
			part.Unscheduled = n.Pods
		}
		w.Increments = append(w.Increments, part)
	}
	w.check()
}

// check checks what holds after each decision.
func (w *world) check() {
	p, asked, waits, most := w.policy(), w.Base.Pods, int32(0), ptr.Deref(w.policy().MaxUnscheduledReplicas, 0)
	timeout := time.Duration(p.ProvisionTimeoutInSeconds) * time.Second
	if w.PodsReadyTimeout > 0 {
		timeout = min(timeout, w.PodsReadyTimeout)
	}
	scheduled := []int32{}
	if s := w.Job.Status.Provisioning; s != nil {
		scheduled = s.Scheduled
	}
	count := 0
	for _, part := range w.Increments {
		asked += part.Pods
		if !part.Provision || slices.Contains(scheduled, int32(part.Increment)) {
			continue
		}
		waits += part.Unscheduled
		count++
		left := part.Reserved.Add(timeout).Sub(w.now)
		if part.Phase == Admitted && (left <= 0 || w.decided.After == 0 || w.decided.After > left) {
			w.Fatalf("increment %d waits for nodes since %s, at %s, and is looked at after %s; the timeout is %s", part.Increment, part.Reserved, w.now, w.decided.After, timeout)
		}
	}
	if p.MaxUnscheduledReplicas == nil && count > 1 || p.MaxUnscheduledReplicas != nil && waits > most {
		w.Fatalf("%d pods of %d increments wait for nodes, and at most %d may (0: of one)", waits, count, most)
	}
	if sizes := Sizes(*p); !slices.Contains(sizes, asked) || !slices.Contains(sizes, w.Job.Status.Replicas) {
		w.Fatalf("asks for size %d and has %d, of %v", asked, w.Job.Status.Replicas, sizes)
	}
}

// settle leaves quota and nodes as they are, or lets nodes come where pods wait for them, and
// returns the size that the job reaches.
func (w *world) settle(nodesCome bool) int32 {
	for i := range w.Increments {
		w.Increments[i].Fault, w.Increments[i].ClaimedBy = Fault{}, ""
	}
	for until := w.now.Add(time.Hour); w.now.Before(until); {
		w.admit()
		if used, _ := w.used(); nodesCome {
			w.nodes = max(w.nodes, used)
		}
		w.schedule()
		w.decide()
		step := w.decided.After
		switch {
		case len(w.decided.Create)+len(w.decided.Delete) > 0 || slices.ContainsFunc(w.Increments, func(p Part) bool { return p.Phase != Admitted || nodesCome && p.Unscheduled > 0 }):
			step = lookAgain
		case step == 0: // nothing changes any more
			return w.Job.Status.Replicas
		}
		w.now = w.now.Add(step)
	}
	return w.Job.Status.Replicas
}

// Whatever happens, a job asks only for allowed sizes that fit without a preemption, for no
// more nodes than its limit, and no longer than its timeout. And once quota and nodes stay as
// they are, it grows as far as it may.
func TestRandomSequences(t *testing.T) {
	t.Parallel()
	provisioned := 0
	for seed := range uint64(10_000) {
		w := newWorld(t, seed)
		for range 20 {
			w.now = w.now.Add(time.Duration(w.IntN(10_000)) * time.Millisecond)
			w.event()
			w.admit()
			w.schedule()
			w.decide()
		}
		w.MayProvision = w.policy().Provisions()
		most, nodesCome := min(w.quota, w.nodes), w.IntN(2) == 0
		if w.policy().Provisions() && nodesCome {
			most = w.quota
		}
		want := w.Base.Pods
		for _, size := range Sizes(*w.policy()) {
			if size <= w.Base.Pods+most {
				want = size
			}
		}
		if got := w.settle(nodesCome); got != want {
			t.Fatalf("seed %d: the job has size %d after an hour, want %d of %v, with quota for %d and nodes for %d more (nodes come: %v): %+v", seed, got, want, Sizes(*w.policy()), w.quota, w.nodes, nodesCome, w.Job.Status)
		}
		for _, e := range w.Job.Status.ScaleEvents {
			if e.Cause == v1alpha1.ScaleProvisioned {
				provisioned++
			}
		}
	}
	if provisioned < 1000 {
		t.Errorf("nodes came for growth %d times: the sequences do not show what they are for", provisioned)
	}
}
