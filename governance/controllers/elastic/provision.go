package elastic

import (
	"slices"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AdmissionBlocked is why growth cannot ask for nodes where Kueue waits for the pods of one
// task before it admits the next.
const AdmissionBlocked = "while one pod of it waits for a node, Kueue would admit no task of any team, because its configuration has waitForPodsReady.blockAdmission. Choose ExistingNodes, or ask a cluster admin to switch off \"One at a time\" in the cluster policy"

// awaitsNodes reports whether nodes were asked for an increment, and never came for all of
// its pods.
func (d *decider) awaitsNodes(p Part) bool {
	return p.Provision && !slices.Contains(d.provisioning().Scheduled, int32(p.Increment))
}

// provisioning returns the status of growth that waits for nodes, to be changed.
func (d *decider) provisioning() *v1alpha1.Provisioning {
	if d.Status.Provisioning == nil {
		d.Status.Provisioning = &v1alpha1.Provisioning{}
	}
	return d.Status.Provisioning
}

// recordScheduled records the increments for which nodes came. The next ones can ask for
// nodes at once.
func (d *decider) recordScheduled() {
	s := d.provisioning()
	s.Scheduled = slices.DeleteFunc(s.Scheduled, func(n int32) bool {
		return !slices.ContainsFunc(d.Increments, func(p Part) bool { return int32(p.Increment) == n && p.Provision && !p.Deleting })
	})
	for _, p := range d.Increments {
		if d.awaitsNodes(p) && p.Phase == Admitted && p.Unscheduled == 0 && !p.Deleting {
			s.Scheduled = append(s.Scheduled, int32(p.Increment))
			s.After, s.Timeouts = nil, 0
			d.nodesCame = true
		}
	}
	slices.Sort(s.Scheduled)
}

// recordProvisioning sets what waits for nodes, from when and until when.
func (d *decider) recordProvisioning() {
	s := d.provisioning()
	s.UnscheduledReplicas, s.Since, s.Until = d.unscheduled(), nil, nil
	for _, p := range d.kept {
		if p.Phase != Admitted || !d.awaitsNodes(p) {
			continue
		}
		if since := (metav1.Time{Time: p.Reserved}); s.Since == nil || since.Before(s.Since) {
			s.Since, s.Until = &since, &metav1.Time{Time: d.until(p)}
		}
	}
	s.Scheduled = slices.DeleteFunc(s.Scheduled, func(n int32) bool {
		return !slices.ContainsFunc(d.kept, func(p Part) bool { return int32(p.Increment) == n })
	})
	if s.UnscheduledReplicas == 0 && s.Timeouts == 0 && len(s.Scheduled) == 0 {
		d.Status.Provisioning = nil
	}
}

// unscheduled returns how many pods of growth that waits for nodes have none.
func (d *decider) unscheduled() (pods int32) {
	for _, p := range d.kept {
		if d.awaitsNodes(p) {
			pods += p.Unscheduled
		}
	}
	return pods
}

// limitUnscheduled deletes the newest growth that waits for nodes while more pods do than
// the policy allows.
func (d *decider) limitUnscheduled() {
	most := d.Job.Spec.ElasticPolicy.MaxUnscheduledReplicas
	for most != nil && d.unscheduled() > *most {
		i := slices.IndexFunc(d.kept, d.awaitsNodes)
		d.delete(d.kept[i], NotAskedFor)
		d.kept = slices.Delete(d.kept, i, i+1)
	}
}

// readyMargin is how long before Kueue would evict growth without ready pods Kuota withdraws
// it, at most.
const readyMargin = 10 * time.Second

// until returns when an increment that waits for nodes is withdrawn.
func (d *decider) until(p Part) time.Time {
	wait := seconds(d.Job.Spec.ElasticPolicy.ProvisionTimeoutInSeconds)
	if ready := d.PodsReadyTimeout; ready > 0 {
		wait = min(wait, ready-min(readyMargin, ready/2))
	}
	return p.Reserved.Add(wait)
}

// countTimeout records that no nodes came in time, and until when the job does not ask for
// nodes. It grows into nodes that exist meanwhile. Timeouts while it does not ask are one.
func (d *decider) countTimeout(cause v1alpha1.ScaleCause) {
	s := d.provisioning()
	if cause != v1alpha1.ScaleNoNodes || s.After != nil && s.After.After(d.now) {
		return
	}
	policy := d.Job.Spec.ElasticPolicy
	s.Timeouts = min(s.Timeouts+1, maxRetractions)
	s.After = &metav1.Time{Time: d.now.Truncate(time.Second).Add(backoff(seconds(policy.MinStablePeriodSeconds), seconds(policy.BackoffMaxSeconds), s.Timeouts))}
}

// mayProvision reports whether the job can ask for nodes for the pods of an increment, which
// makes it grow to a size. Where the size fits on nodes that exist, it waits until it has
// fitted for long enough; and its other pods get their nodes first.
func (d *decider) mayProvision(to, pods int32) bool {
	if _, fits := d.FitsSince[to]; !d.MayProvision || fits || to > d.fitting(d.QuotaFitsSince) {
		return false
	}
	if after := d.provisioning().After; after != nil && !d.due(after.Time) {
		return false
	}
	if slices.ContainsFunc(append(slices.Clone(d.kept), *d.Base), func(p Part) bool { return p.Unscheduled > 0 && !d.awaitsNodes(p) }) {
		return false
	}
	most, waits := d.Job.Spec.ElasticPolicy.MaxUnscheduledReplicas, d.unscheduled()
	if most == nil {
		return waits == 0
	}
	return waits+pods <= *most
}
