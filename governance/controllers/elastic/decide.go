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
	Increment  int  // its number, from 1; 0 for the base
	Guaranteed bool // it is part of the minimum, in the job's own priority class
	Provision  bool // nodes were asked for: its pods have v1alpha1.ProvisionClass
	Pods       int32
	// Unscheduled is how many of Pods have no node.
	Unscheduled int32
	Phase       Phase
	Created     time.Time
	Reserved    time.Time // when it got its quota; zero while it has none
	EvictedAt   time.Time // zero unless it is Evicted
	Preempted   bool      // Kueue evicted it for another task
	For         types.UID // the Workload that it was preempted for; empty if unknown
	// Fault is why some of its pods do not run; the zero value while all do.
	Fault Fault
	// ClaimedBy is the Workload of a task that waits and is entitled to its quota, and for
	// which Kueue preempts nothing; empty for none.
	ClaimedBy types.UID
	Deleting  bool
	// Outdated reports that the base has another size or other variables than it would be
	// created with now.
	Outdated bool

	workload types.UID
}

// Fault is why pods do not run.
type Fault struct {
	Since time.Time
	Cause v1alpha1.ScaleCause // ScalePodsFailed or ScaleNodeLost
	Node  string              // that is lost
	// NoNode reports that a pod finds no node.
	NoNode bool
}

// Observed is the state of an ElasticJob.
type Observed struct {
	Job *v1alpha1.ElasticJob
	// ChangedBy is the user who changed Job last; empty if unknown.
	ChangedBy string
	Base      *Part // nil if it does not exist
	// Increments are in any order.
	Increments []Part
	// FitsSince is since when Kueue would have admitted growth to a size without a
	// preemption, by size; it has no larger sizes than those that would be admitted now.
	FitsSince map[int32]time.Time
	// MayProvision reports whether the job can ask for nodes, and QuotaFitsSince is FitsSince
	// without regard to nodes.
	MayProvision   bool
	QuotaFitsSince map[int32]time.Time
	// PodsReadyTimeout is after how long Kueue evicts a task whose pods are not ready; 0 for
	// never.
	PodsReadyTimeout time.Duration

	provisionBlocked *blockedError // why a job whose growth is Provision cannot ask for nodes
}

// Causes for which an increment is deleted, beside those of v1alpha1.
const (
	// NotAdmitted is that Kueue did not admit it at once: the room was gone.
	NotAdmitted v1alpha1.ScaleCause = "NotAdmitted"
	// BaseWaits is that the minimum has no quota, without which growth is nothing.
	BaseWaits v1alpha1.ScaleCause = "MinimumNotAdmitted"
	// NotAskedFor is that the job cannot or does not ask for nodes any more.
	NotAskedFor v1alpha1.ScaleCause = "NotAskedFor"
	// Ended is that the ElasticJob ended or is suspended.
	Ended v1alpha1.ScaleCause = "Ended"
)

// NewPart is an increment to create.
type NewPart struct {
	Increment  int
	Pods       int32
	Guaranteed bool
	Provision  bool
	// NodeSelector are labels of its nodes beside those that the template names.
	NodeSelector map[string]string
}

// Deletion is an increment to delete.
type Deletion struct {
	Increment int
	Cause     v1alpha1.ScaleCause
}

// Decision is what to do about an ElasticJob.
type Decision struct {
	CreateBase bool
	DeleteBase bool // it is outdated, and has no quota
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

// settleTime is how long room must last at least: quota is often released in steps, and
// Kueue admits a task that waits for the last of them before it comes to an increment.
const settleTime = lookAgain

// Decide returns what to do about an ElasticJob at a time.
func Decide(o Observed, now time.Time) Decision {
	d := decider{Observed: o, now: now, sizes: Sizes(o.Job.Spec.ElasticPolicy)}
	d.Status = *o.Job.Status.DeepCopy()
	d.Status.ObservedGeneration = o.Job.Generation
	d.base()
	if running := d.Status.State == v1alpha1.ElasticRunning; running {
		d.recordScheduled()
		d.shrink()
		d.guarantee()
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
	d.recordProvisioning()
	d.measure()
	return d.Decision
}

type decider struct {
	Observed
	Decision
	now   time.Time
	sizes []int32
	kept  []Part // increments that stay, and have quota or wait for it
	// nodesCame reports that nodes came for growth that had asked for them.
	nodesCame bool
}

// base decides about the base, and sets the state.
func (d *decider) base() {
	switch b := d.Base; {
	case d.Job.Status.State.Finished():
	case b == nil && d.Job.Spec.Suspend:
		d.Status.State = v1alpha1.ElasticSuspended
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
		if b.Reserved.IsZero() && b.Outdated && !b.Deleting {
			d.DeleteBase = true
		}
	}
}

// shrink deletes increments that cannot stay.
func (d *decider) shrink() {
	lost := false
	for _, p := range d.Increments {
		if cause, at := d.lostCause(p); cause == v1alpha1.ScaleNoNodes || cause == NotAskedFor {
			d.delete(p, cause)
			d.countTimeout(cause)
		} else if cause != "" {
			d.delete(p, cause)
			d.retract(p, at, cause)
			lost = true
		} else if !p.Deleting && p.Phase != Complete { // no growth, but its number is in use
			d.kept = append(d.kept, p)
		}
	}
	slices.SortFunc(d.kept, newestFirst)
	d.limitUnscheduled()
	for i := d.growth(); lost && i >= 0 && d.kept[i].Phase == Waiting; i = d.growth() { // it would take what was taken back
		d.dropNewest(NotAdmitted)
	}
	if d.lacksNode() && slices.ContainsFunc(d.kept, func(p Part) bool { return !p.Guaranteed && !d.awaitsNodes(p) }) {
		d.dropNewest(v1alpha1.ScaleNodeLost)
	}
	for d.growth() >= 0 && !slices.Contains(d.sizes, d.size()) && d.size() != d.minimum() {
		cause := v1alpha1.ScaleUneven
		if d.size() > d.Job.Spec.ElasticPolicy.MaxReplicas {
			cause = v1alpha1.ScaleResized
		}
		d.dropNewest(cause)
	}
}

// lostCause returns why an increment cannot stay, and since when; empty if it can. Kueue
// requeues what is guaranteed by itself.
func (d *decider) lostCause(p Part) (cause v1alpha1.ScaleCause, at time.Time) {
	switch {
	case p.Deleting, p.Phase == Complete:
	case p.Phase == Failed:
		return v1alpha1.ScalePodsFailed, d.now
	case p.Guaranteed:
	case p.Phase == Evicted && p.Preempted:
		return v1alpha1.ScalePreempted, p.EvictedAt
	case p.Phase == Evicted:
		return v1alpha1.ScaleEvicted, p.EvictedAt
	case p.ClaimedBy != "":
		return v1alpha1.ScaleWithdrawn, d.now
	case d.awaitsNodes(p) && !d.MayProvision:
		return NotAskedFor, d.now
	case d.awaitsNodes(p) && p.Phase == Admitted && d.due(d.until(p)):
		return v1alpha1.ScaleNoNodes, d.now
	case p.Phase == Waiting && d.due(p.Created.Add(admissionGrace)):
		return NotAdmitted, d.now
	case p.Fault.Cause == v1alpha1.ScalePodsFailed && d.due(p.Fault.Since.Add(d.faultyAfter())):
		return p.Fault.Cause, d.now
	}
	return "", time.Time{}
}

// lacksNode reports whether pods have been without a node for too long. One increment is
// given up for all of them: the others may find a node then.
func (d *decider) lacksNode() bool {
	lacks := false
	for _, p := range append(slices.Clone(d.kept), *d.Base) {
		guaranteed := p.Guaranteed || p.Increment == 0
		if f := p.Fault; d.nodeLost(p) && (f.NoNode || !guaranteed) && d.due(f.Since.Add(d.faultyAfter())) {
			lacks = true
		}
	}
	return lacks
}

// nodeLost reports whether pods lack a node that had one, or that did not ask for nodes.
func (d *decider) nodeLost(p Part) bool {
	return p.Fault.Cause == v1alpha1.ScaleNodeLost && !d.awaitsNodes(p)
}

func (d *decider) faultyAfter() time.Duration {
	return seconds(d.Job.Spec.ElasticPolicy.FaultyScaleDownTimeoutInSeconds)
}

// growth returns the index in kept of the newest increment that is not guaranteed; -1 for
// none.
func (d *decider) growth() int {
	return slices.IndexFunc(d.kept, func(p Part) bool { return !p.Guaranteed })
}

// dropNewest deletes the newest growth; for a lost node the newest that lacks one, else the
// newest that has nodes.
func (d *decider) dropNewest(cause v1alpha1.ScaleCause) {
	i := d.growth()
	if cause == v1alpha1.ScaleNodeLost {
		i = slices.IndexFunc(d.kept, func(p Part) bool { return !p.Guaranteed && !d.awaitsNodes(p) })
		if of := slices.IndexFunc(d.kept, func(p Part) bool { return !p.Guaranteed && d.nodeLost(p) }); of >= 0 {
			i = of
		}
		d.retract(d.kept[i], d.now, cause)
	}
	d.delete(d.kept[i], cause)
	d.kept = slices.Delete(d.kept, i, i+1)
}

// guarantee creates what a raised minimum lacks, and deletes what a lowered one no longer
// needs. The base keeps its size until it loses its quota.
func (d *decider) guarantee() {
	want, have := d.Job.Spec.ElasticPolicy.MinReplicas, d.Base.Pods
	for _, p := range d.Increments {
		if p.Guaranteed {
			have += p.Pods
		}
	}
	for _, p := range slices.Clone(d.kept) {
		if p.Guaranteed && have-p.Pods >= want {
			have -= p.Pods
			d.delete(p, v1alpha1.ScaleResized)
			d.kept = slices.DeleteFunc(d.kept, func(k Part) bool { return k.Increment == p.Increment })
		}
	}
	if have < want {
		d.create(NewPart{Increment: d.unused(), Pods: want - have, Guaranteed: true})
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

// minimum returns the pods of the base and of guaranteed increments that have quota.
func (d *decider) minimum() int32 {
	size := d.Base.Pods
	for _, p := range d.kept {
		if p.Guaranteed && p.Phase == Admitted {
			size += p.Pods
		}
	}
	return size
}

// size returns the pods of the minimum and of growth, which has quota or gets it at once.
func (d *decider) size() int32 {
	size := d.minimum()
	for _, p := range d.kept {
		if !p.Guaranteed {
			size += p.Pods
		}
	}
	return size
}

// grow creates the next increment towards the largest size that has fitted for long enough.
func (d *decider) grow() {
	if len(d.Delete) > 0 { // the room is decided again when they are deleted
		return
	}
	// What is guaranteed comes first, and another increment when Kueue has admitted the
	// last one: it admits one of a queue in each cycle, and the room is looked at again.
	if slices.ContainsFunc(d.kept, func(p Part) bool { return p.Phase != Admitted }) {
		return
	}
	if after := d.Status.GrowsAfter; after != nil && !d.due(after.Time) {
		return
	}
	size := d.size()
	to := next(d.sizes, size)
	switch pods := to - size; {
	case to == 0:
	case to <= d.fitting(d.FitsSince):
		if d.inOrder(pods) {
			d.create(NewPart{Increment: d.unused(), Pods: pods})
		}
	case d.mayProvision(to, pods) && d.inOrder(pods):
		d.create(NewPart{Increment: d.unused(), Pods: pods, Provision: true})
	}
}

// fitting returns the largest size that has fitted for long enough; 0 for none.
func (d *decider) fitting(since map[int32]time.Time) (target int32) {
	for _, s := range d.sizes {
		if at, fits := since[s]; fits && d.due(at.Add(d.idleFor())) {
			target = s
		}
	}
	return target
}

// idleFor returns how long compute must have been idle before the job grows.
func (d *decider) idleFor() time.Duration {
	return max(seconds(d.Job.Spec.ElasticPolicy.ScalingTimeoutInSeconds), settleTime)
}

func (d *decider) create(n NewPart) {
	d.Create = append(d.Create, n)
	p := Part{Increment: n.Increment, Guaranteed: n.Guaranteed, Provision: n.Provision, Pods: n.Pods, Unscheduled: n.Pods, Phase: Waiting, Created: d.now}
	d.kept, d.Increments = append(d.kept, p), append(d.Increments, p)
}

// inOrder reports whether an increment of pods can be created now. Kueue preempts those
// that got their quota last, in whole seconds. Among equal increments the order does not
// matter; others must get their quota in different seconds, and after nodes came for those
// that wait for nodes: what has nodes is then an allowed size.
func (d *decider) inOrder(pods int32) bool {
	for _, p := range d.kept {
		if p.Pods != pods && !p.Guaranteed && (d.awaitsNodes(p) || !d.due(p.Reserved.Truncate(time.Second).Add(time.Second))) {
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
// not grow. Retractions of the same second are one. Growth that Kueue did not admit at once
// was not taken back, Kueue can be slow: the job tries again soon at first.
func (d *decider) retract(p Part, at time.Time, cause v1alpha1.ScaleCause) {
	at = at.Truncate(time.Second)
	if last := d.Status.LastRetractionTime; last != nil && !at.After(last.Time) {
		return
	}
	policy := d.Job.Spec.ElasticPolicy
	stable, most := seconds(policy.MinStablePeriodSeconds), seconds(policy.BackoffMaxSeconds)
	before := backoff(stable, most, d.Status.Retractions)
	first := stable
	if cause == NotAdmitted {
		first = min(stable, max(d.idleFor(), retryGrowth))
	}
	if soon := p.Reserved.IsZero() || at.Sub(p.Reserved) < max(stable, before); d.Status.Retractions > 0 && soon {
		d.Status.Retractions = min(d.Status.Retractions+1, maxRetractions)
	} else {
		d.Status.Retractions = 1
	}
	d.Status.LastRetractionTime = &metav1.Time{Time: at}
	d.Status.GrowsAfter = &metav1.Time{Time: at.Add(backoff(first, most, d.Status.Retractions))}
}

// retryGrowth is after how long a job tries again to grow, at least.
const retryGrowth = 5 * time.Second

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
