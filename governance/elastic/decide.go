package elastic

import (
	"cmp"
	"slices"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Phase is how far one Job of an ElasticJob is.
type Phase string

// The phases.
const (
	Waiting  Phase = "Waiting"  // Kueue has not reserved quota for it
	Admitted Phase = "Admitted" // it has quota
	Evicted  Phase = "Evicted"  // Kueue evicted it: its pods are ending, or have ended
	Complete Phase = "Complete" // all its pods succeeded
	Failed   Phase = "Failed"
)

// Part is the observed state of one Job of an ElasticJob.
type Part struct {
	Increment int // its number, from 1; 0 for the base
	Pods      int32
	Phase     Phase
	Created   time.Time
	Reserved  time.Time // when it got its quota; zero while it has none
	EvictedAt time.Time // zero unless it is Evicted
	Preempted bool      // Kueue evicted it for another task
	For       types.UID // the Workload that it was preempted for; empty if unknown
	// FaultySince is since when some of its pods have failed or find no node; zero while
	// all are well.
	FaultySince time.Time
	// ClaimedBy is the Workload of a task that waits and is entitled to its quota, and for
	// which Kueue preempts nothing; empty for none.
	ClaimedBy types.UID
	Deleting  bool

	workload types.UID
}

// Observed is the state of an ElasticJob.
type Observed struct {
	Job  *v1alpha1.ElasticJob
	Base *Part // nil if it does not exist
	// Increments are in any order.
	Increments []Part
	// FitsSince is since when Kueue would have admitted growth to a size without a
	// preemption, by size; it has no larger sizes than those that would be admitted now.
	FitsSince map[int32]time.Time
}

// Causes for which an increment is deleted, beside those of v1alpha1.
const (
	// NotAdmitted is that Kueue did not admit it at once: the room was gone.
	NotAdmitted v1alpha1.ScaleCause = "NotAdmitted"
	// BaseWaits is that the minimum has no quota, without which growth is nothing.
	BaseWaits v1alpha1.ScaleCause = "MinimumNotAdmitted"
	// Ended is that the ElasticJob ended or is suspended.
	Ended v1alpha1.ScaleCause = "Ended"
)

// NewPart is an increment to create.
type NewPart struct {
	Increment int
	Pods      int32
}

// Deletion is an increment to delete.
type Deletion struct {
	Increment int
	Cause     v1alpha1.ScaleCause
}

// Decision is what to do about an ElasticJob.
type Decision struct {
	CreateBase bool
	DeleteBase bool // it has another size than the minimum, and no quota
	Create     []NewPart
	Delete     []Deletion
	Status     v1alpha1.ElasticJobStatus // without conditions
	// After is after how long a decision can differ although nothing changed; 0 for
	// never.
	After time.Duration
}

// admissionGrace is how long an increment can wait for Kueue before it is deleted.
// Creation times are in whole seconds, so that it is deleted after one to two seconds.
const admissionGrace = 2 * time.Second

// Decide returns what to do about an ElasticJob at a time.
func Decide(o Observed, now time.Time) Decision {
	d := decider{Observed: o, now: now, sizes: Sizes(o.Job.Spec.ElasticPolicy)}
	d.Status = *o.Job.Status.DeepCopy()
	d.Status.ObservedGeneration = o.Job.Generation
	d.base()
	if running := d.Status.State == v1alpha1.ElasticRunning; running {
		d.shrink()
		d.grow()
	} else {
		cause := BaseWaits
		if d.Status.State != v1alpha1.ElasticPending {
			cause = Ended
		}
		for _, p := range d.Increments {
			d.delete(p, cause)
		}
	}
	d.measure()
	return d.Decision
}

type decider struct {
	Observed
	Decision
	now   time.Time
	sizes []int32
	kept  []Part // increments that stay, and have quota or wait for it
}

// base decides about the base, and sets the state.
func (d *decider) base() {
	switch b := d.Base; {
	case d.Job.Status.State.Finished():
	case b == nil:
		d.Status.State, d.CreateBase = v1alpha1.ElasticPending, true
	case b.Phase == Complete:
		d.Status.State = v1alpha1.ElasticSucceeded
	case b.Phase == Failed:
		d.Status.State = v1alpha1.ElasticFailed
	case d.Job.Spec.Suspend:
		d.Status.State = v1alpha1.ElasticSuspended
	case b.Phase == Admitted:
		d.Status.State = v1alpha1.ElasticRunning
	default:
		d.Status.State = v1alpha1.ElasticPending
		if b.Phase == Waiting && b.Pods != d.Job.Spec.ElasticPolicy.MinReplicas && !b.Deleting {
			d.DeleteBase = true
		}
	}
}

// shrink deletes increments that cannot stay.
func (d *decider) shrink() {
	faultyAfter := seconds(d.Job.Spec.ElasticPolicy.FaultyScaleDownTimeoutInSeconds)
	for _, p := range d.Increments {
		switch {
		case p.Deleting, p.Phase == Complete: // no growth, but its number is in use
		case p.Phase == Evicted && p.Preempted:
			d.delete(p, v1alpha1.ScalePreempted)
			d.retract(p, p.EvictedAt)
		case p.Phase == Evicted:
			d.delete(p, v1alpha1.ScaleEvicted)
		case p.Phase == Failed:
			d.delete(p, v1alpha1.ScalePodsFailed)
		case p.ClaimedBy != "":
			d.delete(p, v1alpha1.ScaleWithdrawn)
			d.retract(p, d.now)
		case p.Phase == Waiting && d.due(p.Created.Add(admissionGrace)):
			d.delete(p, NotAdmitted)
		case !p.FaultySince.IsZero() && d.due(p.FaultySince.Add(faultyAfter)):
			d.delete(p, v1alpha1.ScalePodsFailed)
			d.retract(p, d.now)
		default:
			d.kept = append(d.kept, p)
		}
	}
	slices.SortFunc(d.kept, newestFirst)
	for len(d.kept) > 0 && !slices.Contains(d.sizes, d.size()) && d.size() != d.Base.Pods {
		cause := v1alpha1.ScaleUneven
		if d.size() > d.Job.Spec.ElasticPolicy.MaxReplicas {
			cause = v1alpha1.ScaleResized
		}
		d.delete(d.kept[0], cause)
		d.kept = d.kept[1:]
	}
}

// newestFirst orders increments as Kueue preempts them: those that got their quota last
// come first. Those without quota come before all others.
func newestFirst(a, b Part) int {
	if waits := a.Reserved.IsZero(); waits != b.Reserved.IsZero() {
		if waits {
			return -1
		}
		return 1
	}
	return cmp.Or(b.Reserved.Compare(a.Reserved), cmp.Compare(b.Increment, a.Increment))
}

// size returns the pods of the base and the kept increments.
func (d *decider) size() int32 {
	size := d.Base.Pods
	for _, p := range d.kept {
		size += p.Pods
	}
	return size
}

// grow creates increments up to the largest size that has fitted for long enough.
func (d *decider) grow() {
	if len(d.Delete) > 0 { // the room is decided again when they are deleted
		return
	}
	if after := d.Status.GrowsAfter; after != nil && !d.due(after.Time) {
		return
	}
	wait := seconds(d.Job.Spec.ElasticPolicy.ScalingTimeoutInSeconds)
	size, target := d.size(), int32(0)
	for _, s := range d.sizes {
		if since, fits := d.FitsSince[s]; s > size && fits && d.due(since.Add(wait)) {
			target = s
		}
	}
	for size < target {
		to := next(d.sizes, size)
		if to == 0 || !d.inOrder(to-size) {
			return
		}
		p := Part{Increment: d.unused(), Pods: to - size, Phase: Waiting, Created: d.now}
		d.Create = append(d.Create, NewPart{p.Increment, p.Pods})
		d.kept = append(d.kept, p)
		d.Increments = append(d.Increments, p)
		size = to
	}
}

// inOrder reports whether an increment of pods can be created now. Kueue preempts those
// that got their quota last, in whole seconds. Among equal increments the order does not
// matter; others must get their quota in different seconds.
func (d *decider) inOrder(pods int32) bool {
	for _, p := range d.kept {
		switch {
		case p.Pods == pods:
		case p.Phase == Waiting:
			return false
		case !d.due(p.Reserved.Truncate(time.Second).Add(time.Second)):
			return false
		}
	}
	return true
}

// unused returns the smallest number that no increment has.
func (d *decider) unused() int {
	for n := 1; ; n++ {
		if !slices.ContainsFunc(d.Increments, func(p Part) bool { return p.Increment == n }) {
			return n
		}
	}
}

func (d *decider) delete(p Part, cause v1alpha1.ScaleCause) {
	if !p.Deleting {
		d.Delete = append(d.Delete, Deletion{p.Increment, cause})
	}
}

// retract records that growth was taken back at a time, and for how long the job does
// not grow. Retractions of the same second are one.
func (d *decider) retract(p Part, at time.Time) {
	at = at.Truncate(time.Second)
	if last := d.Status.LastRetractionTime; last != nil && !at.After(last.Time) {
		return
	}
	policy := d.Job.Spec.ElasticPolicy
	stable, most := seconds(policy.MinStablePeriodSeconds), seconds(policy.BackoffMaxSeconds)
	before := backoff(stable, most, d.Status.Retractions)
	if d.Status.Retractions > 0 && !p.Reserved.IsZero() && at.Sub(p.Reserved) < max(stable, before) {
		d.Status.Retractions = min(d.Status.Retractions+1, maxRetractions)
	} else {
		d.Status.Retractions = 1
	}
	d.Status.LastRetractionTime = &metav1.Time{Time: at}
	d.Status.GrowsAfter = &metav1.Time{Time: at.Add(backoff(stable, most, d.Status.Retractions))}
}

// maxRetractions bounds the count: the backoff has long reached its maximum.
const maxRetractions = 32

// backoff returns how long a job does not grow after n retractions in a row.
func backoff(stable, most time.Duration, n int32) time.Duration {
	d := stable
	for ; n > 1 && d < most; n-- {
		d *= 2
	}
	return min(d, max(most, stable))
}

// due reports whether a time has come, and otherwise decides again then.
func (d *decider) due(at time.Time) bool {
	wait := at.Sub(d.now)
	if wait <= 0 {
		return true
	}
	if d.After == 0 || wait < d.After {
		d.After = wait
	}
	return false
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }
