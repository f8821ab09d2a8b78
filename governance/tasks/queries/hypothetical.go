package queries

import (
	"context"
	"maps"
	"math/big"
	"slices"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/kueue/simulate"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/index"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Proposal is a task that is not submitted yet.
type Proposal struct {
	Namespace, Queue string // its LocalQueue
	Priority         int32  // of its class
	PodSets          []explain.PodSet
	// Workload is what Kueue knows the proposal by once it is submitted; empty before.
	Workload types.UID
}

// Hypothesis is what would happen to a task that was submitted now.
type Hypothesis struct {
	// Verdict is PendingEvaluation for a task that fits, Behind for one that a task before
	// it can block, and Preempting for one that Kueue would preempt others for.
	Verdict explain.Verdict
	Ahead   int // tasks before it in its queue
}

// WouldStart explains a task that is not submitted, by the same numbers as one that
// waits. The queue exists only for users who see its namespace. Names are redacted
// as in Detail.
func (s *Service) WouldStart(ctx context.Context, user governance.User, p Proposal) (Hypothesis, error) {
	v, err := s.view(ctx, user)
	if err != nil {
		return Hypothesis{}, err
	}
	if !v.scope.Includes(p.Namespace) {
		return Hypothesis{}, &governance.Error{Kind: governance.NotFound, Op: "try a task", Message: "Queue not found, or you do not have access."}
	}
	w := &kueue.Workload{}
	w.CreationTimestamp.Time = v.index.Now()
	c, err := v.surroundings(ctx, &tasks.Task{Namespace: p.Namespace, Queue: p.Queue, Priority: p.Priority, Main: w})
	if err != nil {
		return Hypothesis{}, err
	}
	return Hypothesis{
		Verdict: *v.explain(explain.Task{Namespace: p.Namespace, Priority: p.Priority, PodSets: p.PodSets}, c),
		Ahead:   v.index.CountAhead(p.Namespace, p.Queue, p.Priority),
	}, nil
}

// Rooms is the room for growth as of one moment, beside others that are submitted and that
// Kueue has not come to. It is not safe for concurrent use.
type Rooms struct {
	*survey
	// Arriving reports whether there are jobs that Kueue has not created a Workload for
	// yet, so that they are not counted.
	Arriving bool
	// Waiting reports whether some of the others have no quota yet.
	Waiting  bool
	others   []Proposal
	clusters map[client.ObjectKey]*explain.Cluster // by LocalQueue, with others in the usage
}

// Rooms returns the room for growth beside others, of which those with quota are in the
// usage already. It is for controllers, and names no task.
func (s *Service) Rooms(ctx context.Context, others []Proposal) (*Rooms, error) {
	v, err := s.within(ctx, access.Scope{All: true})
	if err != nil {
		return nil, err
	}
	// The usage is read later: what gets its quota meanwhile counts twice.
	counted := map[types.UID]bool{}
	for _, t := range v.index.SetUsage(nil) {
		for _, w := range t.Parts {
			counted[w.UID] = w.Status.Admission != nil
		}
	}
	others = slices.DeleteFunc(slices.Clone(others), func(p Proposal) bool { return counted[p.Workload] })
	r := &Rooms{survey: newSurvey(v), Arriving: v.index.Arriving(), Waiting: len(others) > 0, others: others, clusters: map[client.ObjectKey]*explain.Cluster{}}
	return r, r.leaveToPending(ctx)
}

// leaveToPending counts pending tasks that fit as usage: Kueue tries them again up to a
// second after quota became free.
func (r *Rooms) leaveToPending(ctx context.Context) error {
	heads, _ := r.index.Heads(func(index.QueueKey) bool { return true }, claimants)
	for _, head := range heads {
		t := head.Task
		if t.PriorityClass == desired.GrowthClass || !t.Queued() {
			continue
		}
		c, err := r.beside(ctx, t)
		if err != nil {
			return err
		}
		if q := explainInput(t); explain.Fits(q, c) {
			r.others = append(r.others, Proposal{Namespace: t.Namespace, Queue: t.Queue, PodSets: q.PodSets})
		}
	}
	return nil
}

// beside reads what decides over a task beside the others.
func (r *Rooms) beside(ctx context.Context, t *tasks.Task) (*explain.Cluster, error) {
	c, err := r.cluster(ctx, t)
	for _, other := range r.others {
		if err == nil {
			err = r.reserve(ctx, c, other)
		}
	}
	return c, err
}

// Pods returns how many pods of a proposal's only pod set Kueue would admit as a task of
// their own, without a preemption, below the ceilings of the namespace and with nodes for
// all of them.
func (r *Rooms) Pods(ctx context.Context, p Proposal) (int32, error) {
	return r.pods(ctx, p, explain.Room)
}

// QuotaPods is Pods without regard to nodes.
func (r *Rooms) QuotaPods(ctx context.Context, p Proposal) (int32, error) {
	return r.pods(ctx, p, explain.QuotaRoom)
}

// Cheapest returns the labels of the nodes on which the pods of a proposal's only pod set cost
// the least, among the flavors with room for all of them: with nodes, or without regard to them.
// It is nil where the costs leave no choice. cost returns that of a pod on a flavor; nil if it
// is unknown.
func (r *Rooms) Cheapest(ctx context.Context, p Proposal, placed bool, cost func(flavor string) *big.Rat) (map[string]string, error) {
	c, err := r.clusterOf(ctx, p)
	if err != nil || c.Queue == nil {
		return nil, err
	}
	type option struct {
		nodes map[string]string
		cost  *big.Rat
	}
	var options []option
	for _, name := range c.Queue.Flavors {
		on, costs := c.Flavors[name].NodeLabels, cost(name)
		if len(on) > 0 && costs != nil && !labels.Conflicts(p.PodSets[0].Spec.NodeSelector, on) {
			options = append(options, option{on, costs})
		}
	}
	slices.SortStableFunc(options, func(a, b option) int { return a.cost.Cmp(b.cost) })
	if len(options) < 2 {
		return nil, nil
	}
	of := explain.QuotaRoom
	if placed {
		of = explain.Room
	}
	for _, o := range options {
		set := p.PodSets[0]
		spec := *set.Spec
		spec.NodeSelector = labels.Merge(spec.NodeSelector, o.nodes)
		set.Spec = &spec
		at := p
		at.PodSets = []explain.PodSet{set}
		if room, err := r.pods(ctx, at, of); err != nil || room >= set.Count {
			return o.nodes, err
		}
	}
	return nil, nil
}

// clusterOf reads what decides over a proposal, once for its queue.
func (r *Rooms) clusterOf(ctx context.Context, p Proposal) (c *explain.Cluster, err error) {
	queue := client.ObjectKey{Namespace: p.Namespace, Name: p.Queue}
	if c = r.clusters[queue]; c == nil {
		w := &kueue.Workload{} // it would be the last of its queue
		w.CreationTimestamp.Time = r.index.Now()
		c, err = r.beside(ctx, &tasks.Task{Namespace: p.Namespace, Queue: p.Queue, Priority: p.Priority, Main: w})
		if err == nil {
			r.clusters[queue] = c
		}
	}
	return c, err
}

func (r *Rooms) pods(ctx context.Context, p Proposal, of func(explain.Task, *explain.Cluster, int32) int32) (int32, error) {
	c, err := r.clusterOf(ctx, p)
	if err != nil || c.Behind { // a task before it starts first
		return 0, err
	}
	room := of(explain.Task{Namespace: p.Namespace, Priority: p.Priority, PodSets: p.PodSets}, c, p.PodSets[0].Count)
	below, err := r.belowCeilings(ctx, p, r.others)
	return min(room, below), err
}

// belowCeilings returns how many pods of a proposal's only pod set the ResourceQuotas of
// its namespace allow, beside others, whose pods are not created.
func (v viewer) belowCeilings(ctx context.Context, p Proposal, others []Proposal) (int32, error) {
	ceilings, err := v.ceilings(ctx, p.Namespace, p.PodSets)
	n := p.PodSets[0].Count
	for _, c := range ceilings {
		left := c.Hard.Minus(c.Used)
		for _, other := range others {
			for _, set := range other.PodSets {
				switch {
				case other.Namespace != p.Namespace:
				case c.Resource == string(corev1.ResourcePods):
					left = left.Minus(resources.Amount(set.Count))
				default:
					left = left.Minus(set.Requests[c.Resource].Times(int64(set.Count)))
				}
			}
		}
		n = int32(max(0, min(int64(n), left.Per(c.Requests))))
	}
	return n, err
}

// reserve counts a proposal as usage of its queue. Which flavor Kueue will assign is not
// known, so that it counts in each.
func (s *survey) reserve(ctx context.Context, c *explain.Cluster, p Proposal) error {
	var local kueue.LocalQueue
	if err := s.reader.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: p.Queue}, &local); err != nil {
		return client.IgnoreNotFound(err)
	}
	shared := c.Queues[string(local.Spec.ClusterQueue)]
	if shared == nil {
		return nil // of another tree
	}
	q := *shared // the survey has it for other tasks too
	if q.Usage = maps.Clone(q.Usage); q.Usage == nil {
		q.Usage = quota.FlavorResourceQuantities{}
	}
	for _, set := range p.PodSets {
		for fr := range q.Limits {
			q.Usage[fr] = q.Usage[fr].Plus(set.Requests[fr.Resource].Times(int64(set.Count)))
		}
	}
	if c.Queues[q.Name] = &q; c.Queue == shared {
		c.Queue = &q
	}
	return nil
}

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
