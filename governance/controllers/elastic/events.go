package elastic

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// recordPolicy records an event if a user changed the policy.
func (d *decider) recordPolicy() {
	before, now := d.Status.ObservedPolicy, d.Job.Spec.ElasticPolicy
	d.Status.ObservedPolicy = now.DeepCopy()
	if before == nil || d.Status.State.Finished() {
		return
	}
	if changes := policyChanges(*before, now); len(changes) > 0 {
		size := d.Status.Replicas
		d.append(v1alpha1.ScaleEvent{Cause: v1alpha1.ScalePolicy, From: size, To: size, Minimum: d.Status.Minimum, By: d.ChangedBy, Changes: changes})
	}
}

// policyChanges returns the fields that differ, by their names.
func policyChanges(before, after v1alpha1.ElasticPolicy) (changes []v1alpha1.PolicyChange) {
	from, to := reflect.ValueOf(before), reflect.ValueOf(after)
	for i := range from.NumField() {
		name, _, _ := strings.Cut(from.Type().Field(i).Tag.Get("json"), ",")
		if c := (v1alpha1.PolicyChange{Field: name, From: valueText(from.Field(i)), To: valueText(to.Field(i))}); c.From != c.To {
			changes = append(changes, c)
		}
	}
	return changes
}

// valueText returns the value of a field of a policy; empty for none.
func valueText(v reflect.Value) string {
	switch {
	case v.Kind() == reflect.Slice:
		words := make([]string, v.Len())
		for i := range words {
			words[i] = valueText(v.Index(i))
		}
		return strings.Join(words, ", ")
	case v.Kind() == reflect.Pointer && v.IsNil():
		return ""
	}
	return fmt.Sprint(reflect.Indirect(v))
}

// measure sets the size, and records an event if it or the minimum changed.
func (d *decider) measure() {
	d.recordPolicy()
	size, minimum := int32(0), int32(0)
	if d.Status.State == v1alpha1.ElasticRunning {
		minimum = d.minimum()
		size = minimum
		for _, p := range d.kept {
			if p.Phase == Admitted && !p.Guaranteed && !d.awaitsNodes(p) {
				size += p.Pods
			}
		}
	}
	before, hadMinimum := d.Status.Replicas, d.Status.Minimum
	d.Status.Replicas, d.Status.Minimum = size, minimum
	if slices.ContainsFunc(d.Delete, func(x Deletion) bool { return x.Cause == v1alpha1.ScaleNoNodes }) {
		d.append(v1alpha1.ScaleEvent{Cause: v1alpha1.ScaleNoNodes, From: before, To: before, Minimum: min(minimum, before)})
	}
	if size == before && minimum == hadMinimum {
		return
	}
	e := d.shrunk()
	if size > before || size == before && minimum > hadMinimum {
		e = d.grown(before)
	}
	e.From, e.To, e.Minimum = before, size, minimum
	d.append(e)
	d.Status.LastScaleTime = &d.Status.ScaleEvents[len(d.Status.ScaleEvents)-1].Time
}

// append adds an event to the status, with its number, and with its time if it has none.
func (d *decider) append(e v1alpha1.ScaleEvent) {
	if e.Time.IsZero() || e.Time.After(d.now) {
		e.Time = metav1.Time{Time: d.now}
	}
	e.Number, e.Time = 1, metav1.Time{Time: e.Time.Truncate(time.Second)}
	all := d.Status.ScaleEvents
	if n := len(all); n > 0 {
		e.Number = all[n-1].Number + 1
		if last := all[n-1].Time; e.Time.Before(&last) { // Kueue's clock and ours differ
			e.Time = last
		}
	}
	if all = append(all, e); len(all) > v1alpha1.MaxScaleEvents {
		all = all[len(all)-v1alpha1.MaxScaleEvents:]
	}
	d.Status.ScaleEvents = all
}

// grown returns the cause of a larger size: what got its quota last.
func (d *decider) grown(before int32) v1alpha1.ScaleEvent {
	if d.nodesCame && before > 0 {
		return v1alpha1.ScaleEvent{Cause: v1alpha1.ScaleProvisioned}
	}
	newest := *d.Base
	newest.Guaranteed = true
	for _, p := range d.kept {
		if before > 0 && p.Phase == Admitted && !d.awaitsNodes(p) && (newest.Increment == 0 || p.Reserved.After(newest.Reserved)) {
			newest = p
		}
	}
	cause := v1alpha1.ScaleIdleCompute
	if newest.Guaranteed {
		cause = v1alpha1.ScaleAdmitted
	}
	return v1alpha1.ScaleEvent{Cause: cause, Time: metav1.Time{Time: newest.Reserved}}
}

// shrunk returns the cause of a smaller size.
func (d *decider) shrunk() v1alpha1.ScaleEvent {
	switch d.Status.State {
	case v1alpha1.ElasticSucceeded:
		return v1alpha1.ScaleEvent{Cause: v1alpha1.ScaleSucceeded}
	case v1alpha1.ElasticFailed:
		return v1alpha1.ScaleEvent{Cause: v1alpha1.ScaleFailed}
	case v1alpha1.ElasticSuspended:
		return v1alpha1.ScaleEvent{Cause: v1alpha1.ScaleSuspended, By: d.ChangedBy}
	case v1alpha1.ElasticPending:
		switch b := d.Base; {
		case b == nil || b.Deleting:
			return v1alpha1.ScaleEvent{Cause: v1alpha1.ScaleDeleted}
		case b.Preempted:
			return d.lost(*b, v1alpha1.ScalePreempted)
		default:
			return d.lost(*b, v1alpha1.ScaleEvicted)
		}
	}
	uneven := v1alpha1.ScaleDeleted // of a Job that the controller did not delete
	for _, deletion := range d.Delete {
		switch deletion.Cause {
		case NotAdmitted, NotAskedFor, v1alpha1.ScaleNoNodes:
		case v1alpha1.ScaleUneven: // what is lost beside it says more
			uneven = deletion.Cause
		case v1alpha1.ScaleResized:
			return v1alpha1.ScaleEvent{Cause: deletion.Cause, By: d.ChangedBy}
		default:
			return d.lost(d.increment(deletion.Increment), deletion.Cause)
		}
	}
	for _, p := range d.Increments {
		if p.Phase == Complete {
			return v1alpha1.ScaleEvent{Cause: v1alpha1.ScaleSucceeded}
		}
	}
	return v1alpha1.ScaleEvent{Cause: uneven}
}

// lost returns the event of a part that lost its quota, or will.
func (d *decider) lost(p Part, cause v1alpha1.ScaleCause) v1alpha1.ScaleEvent {
	e := v1alpha1.ScaleEvent{Cause: cause, Time: metav1.Time{Time: p.EvictedAt}}
	switch cause {
	case v1alpha1.ScalePreempted:
		e.ForWorkload = p.For
	case v1alpha1.ScaleWithdrawn:
		e.ForWorkload = p.ClaimedBy
	case v1alpha1.ScaleNodeLost:
		e.Node = cmp.Or(p.Fault.Node, d.Base.Fault.Node)
	}
	return e
}

// increment returns the increment of a number; the zero value if there is none.
func (d *decider) increment(n int) Part {
	for _, p := range d.Increments {
		if p.Increment == n {
			return p
		}
	}
	return Part{}
}
