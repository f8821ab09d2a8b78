package submit

import (
	"cmp"
	"context"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/controllers/elastic"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/queries"
)

// Outcome is what would happen to a task that is submitted now.
type Outcome string

// The outcomes.
const (
	Starts   Outcome = "Starts"   // it would be admitted at once
	Preempts Outcome = "Preempts" // Kueue would preempt other tasks for it
	Waits    Outcome = "Waits"
	Never    Outcome = "Never" // it cannot be admitted without a change of quota or nodes
)

// Verdict is the outcome of a task and its reason.
type Verdict struct {
	Outcome Outcome
	queries.Hypothesis
	// Partial reports that it would start with Pods pods only, by partial admission.
	Partial bool
	Pods    int32
	// Trial is the result of a simulation with Kueue's scheduler; nil if none was
	// requested.
	Trial *queries.Trial
	// Reach is the largest allowed size of an elastic task that there is quota and nodes for
	// now, without a preemption; 0 if its minimum would not start so.
	Reach int32
	// Asks is what it would ask nodes for beyond Reach; nil for nothing.
	Asks *NodeRequest
	// Replicas is how many replicas of a service would be admitted now without a preemption;
	// 0 for none. The rest of the verdict is that of the first replica. MaxReplicas is how
	// many the team could ever run at once, if the service has more.
	Replicas, MaxReplicas int32
	// MaxPods is how many such pods the team could ever run at once, if the task has
	// more.
	MaxPods int64
}

// Check returns the verdict for a plan, computed like the explanation of a pending task.
func (s *Service) Check(ctx context.Context, user governance.User, p Plan) (Verdict, error) {
	var v Verdict
	err := s.simulate(ctx, user, p, p.Pods, &v)
	if err != nil {
		return Verdict{}, err
	}
	if err := s.checkPartial(ctx, user, p, &v); err != nil {
		return Verdict{}, err
	}
	if v.Verdict.Constraint == explain.ExceedsMax {
		v.MaxPods = maxPodsOf(p, v.Verdict)
	}
	switch {
	case p.Serving != nil:
		err = s.checkReplicas(ctx, user, p, &v)
	case p.Elastic != nil && v.Outcome == Starts:
		err = s.reach(ctx, p, &v)
	}
	return v, err
}

// Verify is Check with a simulation by Kueue's scheduler, which can take seconds.
func (s *Service) Verify(ctx context.Context, user governance.User, p Plan) (Verdict, error) {
	v, err := s.Check(ctx, user, p)
	if err != nil {
		return v, err
	}
	v.Trial, err = s.Tasks.Try(ctx, user, p.proposal(cmp.Or(p.MinPods, p.Pods)))
	return v, err
}

func (s *Service) simulate(ctx context.Context, user governance.User, p Plan, pods int32, v *Verdict) (err error) {
	v.Pods = pods
	v.Hypothesis, err = s.Tasks.WouldStart(ctx, user, p.proposal(pods))
	v.Outcome = outcome(v.Hypothesis)
	return err
}

// checkPartial finds the largest number of pods with which a plan would start, if it does
// not with all. Kueue prefers to preempt for all pods (0.19).
func (s *Service) checkPartial(ctx context.Context, user governance.User, p Plan, v *Verdict) error {
	if p.MinPods <= 0 || p.MinPods >= p.Pods || v.Outcome != Waits && v.Outcome != Never {
		return nil
	}
	for low, high := p.MinPods, p.Pods; low < high; { // high does not start
		pods := low + (high-low)/2
		if !v.Partial { // check first whether MinPods starts
			pods = p.MinPods
		}
		few := Verdict{Partial: true}
		if err := s.simulate(ctx, user, p, pods, &few); err != nil {
			return err
		}
		switch starts := few.Outcome == Starts || few.Outcome == Preempts; {
		case starts:
			*v, low = few, pods+1
		case !v.Partial:
			return nil
		default:
			high = pods
		}
	}
	return nil
}

// reach sets the largest size of an elastic plan that Kueue would admit now as one task,
// without a preemption: its minimum uses quota and nodes before its growth does. And what it
// would ask nodes for beyond that.
func (s *Service) reach(ctx context.Context, p Plan, v *Verdict) error {
	rooms, err := s.Tasks.Rooms(ctx, nil)
	if err != nil {
		return err
	}
	placed, onQuota := int32(0), int32(0)
	for _, proposal := range p.growth() {
		room, err := rooms.Pods(ctx, proposal)
		if err != nil {
			return err
		}
		placed += room
		if room, err = rooms.QuotaPods(ctx, proposal); err != nil {
			return err
		}
		onQuota += room
	}
	for _, size := range elastic.Sizes(*p.Elastic) {
		if size <= max(placed, p.Pods) {
			v.Reach = size
		}
	}
	if p.Elastic.Provisions() {
		v.Asks, err = s.nodeRequest(ctx, p, onQuota, v.Reach)
	}
	return err
}

// growth returns an elastic plan with all of its pods as one task, for each of its pools.
func (p Plan) growth() (each []queries.Proposal) {
	pools := p.AnyOf
	if len(pools) == 0 {
		pools = []QueuePool{p.QueuePool}
	}
	p.Pods = p.Elastic.MaxReplicas
	for _, p.QueuePool = range pools {
		proposal := p.proposal(p.Pods)
		proposal.Priority = desired.GrowthPriority
		each = append(each, proposal)
	}
	return each
}

// proposal converts a plan to the input of package tasks. minPods is the number of pods
// that is enough.
func (p Plan) proposal(minPods int32) queries.Proposal {
	class, _ := p.Team.Class(p.Class)
	if p.source != nil {
		return queries.Proposal{Namespace: p.Team.Namespace, Queue: p.Team.Queue, Priority: class.Priority, PodSets: p.podSets()}
	}
	if p.Elastic != nil { // its minimum
		p.AnyOf = nil
	}
	template := p.template("main", "")
	if p.read != nil {
		template = elastic.Base(p.read).Spec.Template
	}
	return queries.Proposal{
		Namespace: p.Team.Namespace, Queue: p.Team.Queue, Priority: class.Priority,
		PodSets: []explain.PodSet{{Name: "main", Count: p.Pods, MinCount: minPods, Requests: tasks.PodRequests(&template.Spec), Spec: &template.Spec}},
	}
}

func outcome(h queries.Hypothesis) Outcome {
	if h.Verdict.Fit != nil { // no node is large enough
		return Never
	}
	switch h.Verdict.Constraint {
	case explain.PendingEvaluation:
		return Starts
	case explain.Preempting:
		return Preempts
	case explain.ExceedsMax, explain.UncoveredResource, explain.NoMatchingFlavor, explain.WrongNamespace:
		return Never
	}
	return Waits
}

// maxPodsOf returns how many pods of a plan the team could ever run in the flavor that
// decides.
func maxPodsOf(p Plan, v explain.Verdict) int64 {
	pods := int64(p.Pods)
	for _, f := range v.Flavors {
		if v.Shortage == nil || f.Flavor != v.Shortage.Flavor {
			continue
		}
		for _, s := range f.Shortages {
			if each := p.PodResources[s.Resource]; each > 0 {
				pods = min(pods, s.PotentialAvailable.Per(each))
			}
		}
	}
	return max(0, pods)
}
