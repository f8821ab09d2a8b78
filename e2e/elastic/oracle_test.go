package elastic_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/controllers/elastic"
	"kuota.dev/kuota/governance/quota/desired"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// The times within which the invariants hold again after an event.
const (
	sizeLimit  = 10 * time.Second // the size is an allowed one
	claimLimit = 5 * time.Second  // growth is given to a task that is entitled to it
)

// oracle watches the Kueue objects of one lab, and checks them without code of the
// controller: what is in the status of an ElasticJob does not count.
type oracle struct {
	*lab
	watch    *watch
	teams    []string
	since    map[string]time.Time // since when something lasts that must not last
	worst    map[string]time.Duration
	failures []string
	growth   map[types.UID]string // Workloads of increments that ever existed
	seen     map[string]bool      // oscillations that were reported
	asked    map[types.UID]bool   // Jobs of increments that asked for nodes; true once all their pods had one
	// provisioned is how many of them that are.
	provisioned int
}

func newOracle(l *lab, w *watch, teams []string) *oracle {
	return &oracle{lab: l, watch: w, teams: teams, since: map[string]time.Time{}, worst: map[string]time.Duration{}, growth: map[types.UID]string{}, seen: map[string]bool{}, asked: map[types.UID]bool{}}
}

// demand is one Workload of the lab.
type demand struct {
	w      *kueue.Workload
	team   string
	gpus   int64
	growth bool
	quota  bool
}

// look checks all invariants once.
func (o *oracle) look() {
	now := time.Now()
	var all []demand
	for _, team := range o.teams {
		var list kueue.WorkloadList
		if err := o.watch.List(o.Context(), &list, client.InNamespace(namespace(team))); err != nil {
			return // the test ends
		}
		for i := range list.Items {
			w := &list.Items[i]
			d := demand{w: w, team: team, quota: meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadQuotaReserved)}
			for _, set := range w.Spec.PodSets {
				requests := set.Template.Spec.Containers[0].Resources.Requests
				each := requests[gpu]
				d.gpus += int64(set.Count) * each.Value()
			}
			if ref := w.Spec.PriorityClassRef; ref != nil && ref.Name == desired.GrowthClass {
				d.growth, o.growth[w.UID] = true, w.Name
			}
			if !meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished) && w.DeletionTimestamp == nil {
				all = append(all, d)
			}
		}
	}
	lasting := map[string]time.Duration{} // what lasts now, with its limit
	o.checkPreemptors()
	if o.watch.policy.TryRLock() { // otherwise times begin when the policy has changed
		o.checkEntitled(all, lasting)
		o.checkSizes(all, lasting)
		o.watch.policy.RUnlock()
	}
	for what := range o.since {
		if _, still := lasting[what]; !still {
			delete(o.since, what)
		}
	}
	for what, limit := range lasting {
		if _, known := o.since[what]; !known {
			o.since[what] = now
		}
		kind, _, _ := strings.Cut(what, ":")
		lasts := now.Sub(o.since[what])
		o.worst[kind] = max(o.worst[kind], lasts)
		if lasts > limit {
			o.fail(fmt.Sprintf("%s for %s: %s", what, lasts.Round(100*time.Millisecond), summary(all)))
			o.since[what] = now
		}
	}
}

func (o *oracle) fail(failure string) {
	o.failures = append(o.failures, time.Now().Format("15:04:05.0 ")+failure)
}

// summary lists Workloads with their GPUs, in parentheses those that wait.
func summary(all []demand) string {
	var text []string
	for _, d := range all {
		one := fmt.Sprintf("%s %d", d.w.Name, d.gpus)
		if !d.quota {
			one = "(" + one + ")"
		}
		text = append(text, one)
	}
	return strings.Join(text, ", ")
}

// checkPreemptors checks that no Workload was preempted for growth.
func (o *oracle) checkPreemptors() {
	for _, p := range o.watch.preemptionsOf(o.teams) {
		for uid, name := range o.growth {
			if strings.Contains(p.message, string(uid)) {
				o.fail(fmt.Sprintf("preempted for growth: %s for %s", p.victim, name))
			}
		}
	}
}

// checkEntitled finds tasks that wait although they fit once growth is gone that is theirs:
// of their own queue, and within their nominal quota also what other queues borrow for it.
func (o *oracle) checkEntitled(all []demand, lasting map[string]time.Duration) {
	all = slices.Clone(all)
	nominal, limit, capacity := map[string]int64{}, map[string]int64{}, int64(0)
	for _, team := range o.teams {
		var q kueue.ClusterQueue
		if err := o.watch.Get(o.Context(), client.ObjectKey{Name: desired.DefaultNaming.ClusterQueue(team)}, &q); err != nil {
			return
		}
		limit[team] = 1 << 40
		for _, group := range q.Spec.ResourceGroups {
			for _, flavor := range group.Flavors {
				for _, r := range flavor.Resources {
					if r.Name != gpu || string(flavor.Name) != o.pool {
						continue
					}
					nominal[team] = r.NominalQuota.Value()
					if r.BorrowingLimit != nil {
						limit[team] = r.BorrowingLimit.Value()
					}
				}
			}
		}
		capacity += nominal[team]
	}
	usage, total := map[string]int64{}, int64(0)
	for _, d := range all {
		if d.quota {
			usage[d.team] += d.gpus
			total += d.gpus
		}
	}
	for _, d := range all {
		if d.quota || d.growth || d.w.Spec.Active != nil && !*d.w.Spec.Active {
			continue
		}
		fits := func(own, all int64) bool {
			return own+d.gpus <= nominal[d.team]+limit[d.team] && all+d.gpus <= capacity
		}
		if fits(usage[d.team], total) {
			continue // it waits for Kueue
		}
		own, without := usage[d.team], total
		for _, g := range all {
			if g.growth && g.quota && g.team == d.team {
				own, without = own-g.gpus, without-g.gpus
			}
		}
		if own+d.gpus <= nominal[d.team] {
			for _, team := range o.teams {
				for left := usage[team]; team != d.team && left > nominal[team]; {
					i := slices.IndexFunc(all, func(g demand) bool { return g.growth && g.quota && g.team == team })
					if i < 0 {
						break
					}
					left, without = left-all[i].gpus, without-all[i].gpus
					all[i].growth = false // counted
				}
			}
		}
		if fits(own, without) {
			lasting[fmt.Sprintf("entitled: %s/%s waits for growth", d.team, d.w.Name)] = claimLimit
		}
		return // only the first is looked at: later ones depend on it
	}
}

// checkSizes checks that each ElasticJob has an allowed size, and none without its minimum.
func (o *oracle) checkSizes(all []demand, lasting map[string]time.Duration) {
	var list v1alpha1.ElasticJobList
	var jobs batchv1.JobList
	for _, team := range o.teams {
		if o.watch.List(o.Context(), &list, client.InNamespace(namespace(team))) != nil || o.watch.List(o.Context(), &jobs, client.InNamespace(namespace(team))) != nil {
			return
		}
		for _, e := range list.Items {
			o.checkAsking(&e, all, jobs.Items, lasting)
			base, minimum, size, asks := int64(0), int64(0), int64(0), int64(0)
			for _, d := range all {
				job := owner(d.w, jobs.Items)
				if job == nil || job.Labels[v1alpha1.LabelElasticJobUID] != string(e.UID) || !d.quota {
					continue
				}
				size += d.gpus
				if placed, asked := o.asked[job.UID]; asked && !placed {
					asks += d.gpus
				}
				if !d.growth {
					minimum += d.gpus
				}
				if job.Labels[v1alpha1.LabelElasticIncrement] == "0" {
					base = d.gpus
				}
			}
			what := fmt.Sprintf("size: %s has %d of %v", e.Name, size, elastic.Sizes(e.Spec.ElasticPolicy))
			switch allowed := slices.Contains(elastic.Sizes(e.Spec.ElasticPolicy), int32(size)); {
			case base == 0 && size > 0:
				lasting[what+" without its base"] = sizeLimit
			case size > 0 && !allowed && size != minimum:
				lasting[what] = sizeLimit
			case e.Status.Replicas != int32(size) && e.Status.Replicas != int32(size-asks):
				lasting[fmt.Sprintf("status: %s has %d, and says %d", e.Name, size, e.Status.Replicas)] = sizeLimit
			}
			o.checkBackoff(&e)
		}
	}
}

// checkBackoff checks that the job did not grow within the stable period after it yielded.
func (o *oracle) checkBackoff(e *v1alpha1.ElasticJob) {
	stable := time.Duration(e.Spec.ElasticPolicy.MinStablePeriodSeconds) * time.Second
	for i, yielded := range e.Status.ScaleEvents {
		if yielded.Cause != v1alpha1.ScalePreempted && yielded.Cause != v1alpha1.ScaleWithdrawn || yielded.To == 0 {
			continue
		}
		for _, grown := range e.Status.ScaleEvents[i+1:] {
			key := fmt.Sprintf("%s/%d", e.UID, grown.Number)
			// An increment that was already admitted may be seen afterwards.
			if between := grown.Time.Sub(yielded.Time.Time); grown.Cause == v1alpha1.ScaleIdleCompute && between > 0 && between < stable-time.Second && !o.seen[key] {
				o.seen[key] = true
				o.fail(fmt.Sprintf("oscillates: %s grew %s after event %d (%s), stable for %s: %+v", e.Name, between, yielded.Number, yielded.Cause, stable, e.Status.ScaleEvents))
			}
		}
	}
}

// checkAsking checks that no more pods of growth than one step wait for nodes, and none for
// longer than the timeout.
func (o *oracle) checkAsking(e *v1alpha1.ElasticJob, all []demand, jobs []batchv1.Job, lasting map[string]time.Duration) {
	var pods corev1.PodList
	if o.watch.List(o.Context(), &pods, client.InNamespace(e.Namespace)) != nil {
		return
	}
	var waits []string
	for _, d := range all {
		job := owner(d.w, jobs)
		if job == nil || job.Labels[v1alpha1.LabelElasticJobUID] != string(e.UID) || job.Spec.Template.Spec.PriorityClassName != v1alpha1.ProvisionClass {
			continue
		}
		placed := int32(0)
		for i := range pods.Items {
			if p := &pods.Items[i]; p.Labels["batch.kubernetes.io/controller-uid"] == string(job.UID) && p.Spec.NodeName != "" {
				placed++
			}
		}
		if placed >= *job.Spec.Parallelism && !o.asked[job.UID] {
			o.asked[job.UID] = true
			o.provisioned++
		}
		if o.asked[job.UID] {
			continue
		}
		o.asked[job.UID] = false
		waits = append(waits, job.Name)
		if d.quota {
			lasting[fmt.Sprintf("asks: %s of %s has no nodes", job.Name, e.UID)] = time.Duration(e.Spec.ElasticPolicy.ProvisionTimeoutInSeconds)*time.Second + sizeLimit
		}
	}
	if len(waits) > 1 {
		lasting[fmt.Sprintf("asks at once: %v of %s", waits, e.UID)] = 2 * time.Second
	}
}

// owner returns the Job of a Workload.
func owner(w *kueue.Workload, jobs []batchv1.Job) *batchv1.Job {
	for _, o := range w.OwnerReferences {
		for i := range jobs {
			if jobs[i].UID == o.UID {
				return &jobs[i]
			}
		}
	}
	return nil
}
