package live

import (
	"fmt"
	"math/rand/v2"
	"time"

	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/kueue/simulate"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/estimate"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// maxSubmissions is how many later submissions a draw has at most, the first ones: each
// takes about a millisecond to simulate.
const maxSubmissions = 500

// pending is a Workload that waits or runs.
type pending struct {
	*kueue.Workload
	kind    estimate.Kind
	task    string // UID
	runs    bool
	elapsed time.Duration // since it runs
}

// pending returns the Workloads that wait and those that run.
func (e *Estimator) pending(s *simulate.Snapshot, teams clusterstate.Teams) (all []pending) {
	for _, w := range s.Workloads {
		one := pending{Workload: w, kind: estimate.Kind{Team: teams.Of(tasks.PlaceOf(w)), Pattern: estimate.Pattern(w.Name)}}
		if t := e.Task(w.UID); t != nil {
			one.kind.Class, one.kind.Pattern, one.task = t.PriorityClass, estimate.Pattern(t.Name), t.UID
		}
		if c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved); c != nil && c.Status == metav1.ConditionTrue {
			one.runs, one.elapsed = true, max(0, s.Time.Sub(c.LastTransitionTime.Time))
		} else if w.Spec.Active != nil && !*w.Spec.Active {
			continue
		}
		all = append(all, one)
	}
	return all
}

// question asks when Workloads start, with several draws of how long they run and of
// what is submitted later.
func (e *Estimator) question(s *simulate.Snapshot, all []pending) *simulate.Question {
	q := &simulate.Question{Horizon: Horizon}
	like := newTemplates(s)
	random := rand.New(rand.NewPCG(uint64(s.Time.UnixNano()), 0)) //nolint:gosec // not a secret
	for range Draws {
		d := simulate.Draw{RunTimes: simulate.RunTimes{Whole: map[string]time.Duration{}, Remaining: map[string]time.Duration{}}}
		for _, w := range all {
			length, ok := e.runs.Draw(w.kind, w.elapsed, random)
			if !ok {
				continue
			}
			key := simulate.WorkloadKey(w.Workload)
			if d.Whole[key] = length; w.runs {
				d.Remaining[key] = length - w.elapsed
			}
		}
		for _, one := range e.submissions.Draw(s.Time, Horizon, random) {
			if len(d.Submissions) == maxSubmissions {
				break
			}
			length, ok := e.runs.Draw(one.Kind, 0, random)
			if workload, exists := like.index(&e.submitted[one.Workload]); ok && exists {
				d.Submissions = append(d.Submissions, simulate.Submission{Workload: workload, After: one.At.Sub(s.Time), RunTime: length})
			}
		}
		q.Draws = append(q.Draws, d)
	}
	q.Submitted = like.workloads
	return q
}

// templates are Workloads like those of recorded tasks, each once.
type templates struct {
	workloads []*kueue.Workload
	indexes   map[string]int
	queues    map[string]bool // LocalQueues, by namespace/name
	flavors   map[string]*kueue.ResourceFlavor
}

func newTemplates(s *simulate.Snapshot) *templates {
	t := &templates{indexes: map[string]int{}, queues: map[string]bool{}, flavors: map[string]*kueue.ResourceFlavor{}}
	for _, q := range s.LocalQueues {
		t.queues[q.Namespace+"/"+q.Name] = true
	}
	for _, f := range s.Flavors {
		t.flavors[f.Name] = f
	}
	return t
}

// index returns the index of the Workload like that of a task; false if its queue does
// not exist any more.
func (t *templates) index(of *history.Task) (int, bool) {
	if !t.queues[of.Namespace+"/"+of.Queue] {
		return 0, false
	}
	key := fmt.Sprint(of.Namespace, of.Queue, of.Priority, of.Pools, of.Requests)
	i, known := t.indexes[key]
	if !known {
		i = len(t.workloads)
		t.indexes[key], t.workloads = i, append(t.workloads, t.workload(of))
	}
	return i, true
}

// workload returns a Workload like that of a task: one pod that requests what all of
// its pods did, in the pool that it used.
func (t *templates) workload(of *history.Task) *kueue.Workload {
	requests := corev1.ResourceList{}
	for name, amount := range of.Requests {
		requests[corev1.ResourceName(name)] = resources.Amount(amount).Quantity(name)
	}
	pod := corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: requests}}}, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}}
	if len(of.Pools) == 1 && t.flavors[of.Pools[0]] != nil {
		pod.NodeSelector = t.flavors[of.Pools[0]].Spec.NodeLabels
	}
	return &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace}, Spec: kueue.WorkloadSpec{
		QueueName: kueue.LocalQueueName(of.Queue), Priority: new(of.Priority), Active: new(true),
		PodSets: []kueue.PodSet{{Name: kueue.DefaultPodSetName, Count: 1, Template: corev1.PodTemplateSpec{Spec: pod}}},
	}}
}
