package queries

import (
	"context"
	"slices"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/kueue/simulate"
	"kuota.dev/kuota/governance/tasks/explain"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Trial is what Kueue's scheduler does in a simulation with a task that is not
// submitted yet.
type Trial struct {
	// Failed is why it could not be simulated; nil if it was. The other fields are
	// empty then.
	Failed error
	At     time.Time
	Starts bool
	Tied   bool // it starts, or does not, in some orders of ties only
	// Never reports that it requests more than its queue can ever have.
	Never bool
	// Preempted are the tasks that are preempted because of it, Missed those that
	// would start without it.
	Preempted, Missed []explain.AdmittedWorkload
	Omitted           []simulate.Omission
}

// trialName is the name of the Workload of a task that is not submitted. No object
// can have it.
const trialName = "not submitted"

// Try simulates a task that is not submitted. Names are redacted as in Detail. The
// result is nil without a simulator.
func (s *Service) Try(ctx context.Context, user governance.User, p Proposal) (*Trial, error) {
	if s.Simulator == nil {
		return nil, nil
	}
	v, err := s.view(ctx, user)
	if err != nil {
		return nil, err
	}
	if !v.scope.Includes(p.Namespace) {
		return nil, &governance.Error{Kind: governance.NotFound, Op: "try a task", Message: "Queue not found, or you do not have access."}
	}
	now := s.Index.Now()
	w := &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: trialName, UID: trialName, CreationTimestamp: metav1.NewTime(now)},
		Spec:       kueue.WorkloadSpec{QueueName: kueue.LocalQueueName(p.Queue), Priority: &p.Priority, Active: new(true)},
	}
	for i := range p.PodSets {
		set := &p.PodSets[i]
		one := kueue.PodSet{Name: kueue.PodSetReference(set.Name), Count: set.Count, Template: corev1.PodTemplateSpec{Spec: *set.Spec}}
		if set.MinCount < set.Count {
			one.MinCount = &set.MinCount
		}
		w.Spec.PodSets = append(w.Spec.PodSets, one)
	}
	q := &simulate.Question{Change: simulate.Change{Workloads: []*kueue.Workload{w}}, Target: simulate.WorkloadKey(w), Ties: trialTies}
	report, snapshot, err := s.Simulator.Ask(ctx, user.Name, q)
	if err != nil {
		return &Trial{Failed: err, At: now}, nil
	}
	names := newWorkloadNames(snapshot, v)
	t := &Trial{
		At: snapshot.Time, Starts: report.Target != nil, Tied: report.TargetTied, Never: slices.Contains(report.Exceeding, q.Target), Omitted: snapshot.Omitted,
		Preempted: v.visibleWorkloads(names.of(report.Preempted, func(e simulate.Effect) bool { return !e.Anyway })),
		Missed:    v.visibleWorkloads(names.of(report.Missed, nil)),
	}
	return t, nil
}

// trialTies is in how many orders of ties a task that is not submitted is tried.
const trialTies = 3
