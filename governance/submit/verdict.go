package submit

import (
	"context"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/queries"
)

// Outcome is what would become of a task that was submitted now.
type Outcome string

// The outcomes.
const (
	Starts   Outcome = "Starts"    // it would be admitted at once
	Preempts Outcome = "MakesRoom" // Kueue would stop tasks that stand behind it
	Waits    Outcome = "Waits"
	Never    Outcome = "Never"   // it would wait forever, as things are
	Unknown  Outcome = "Unknown" // in cohorts within cohorts
)

// Verdict is how a task would fare, and why.
type Verdict struct {
	Outcome Outcome
	queries.Hypothesis
	// Fewer says that it would start with so many Pods, and not with all.
	Partial bool
	Pods    int32
	// Most is how many such pods the team could ever have at once, where all of
	// them are more than that.
	MaxPods int64
}

// Check says how a plan would fare, by the same numbers as a task that waits.
func (s *Service) Check(ctx context.Context, user governance.User, p Plan) (Verdict, error) {
	var v Verdict
	if err := s.ask(ctx, user, p, p.Pods, &v); err != nil {
		return Verdict{}, err
	}
	if err := s.fewer(ctx, user, p, &v); err != nil {
		return Verdict{}, err
	}
	if v.Verdict.Constraint == explain.ExceedsMax {
		v.MaxPods = most(p, v.Verdict)
	}
	return v, nil
}

func (s *Service) ask(ctx context.Context, user governance.User, p Plan, pods int32, v *Verdict) (err error) {
	v.Pods = pods
	v.Hypothesis, err = s.Tasks.WouldStart(ctx, user, p.proposal(pods))
	v.Outcome = outcome(v.Hypothesis)
	return err
}

// fewer looks for the most pods with which a plan would start that does not with
// all of them. Kueue first makes room for all, where it can (0.19).
func (s *Service) fewer(ctx context.Context, user governance.User, p Plan, v *Verdict) error {
	if p.MinPods <= 0 || p.MinPods >= p.Pods || v.Outcome != Waits && v.Outcome != Never {
		return nil
	}
	for low, high := p.MinPods, p.Pods; low < high; { // high does not start
		pods := low + (high-low)/2
		if !v.Partial { // first whether any does
			pods = p.MinPods
		}
		few := Verdict{Partial: true}
		if err := s.ask(ctx, user, p, pods, &few); err != nil {
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

// proposal is a plan as it is explained, when so many of its pods would do.
func (p Plan) proposal(least int32) queries.Proposal {
	class, _ := p.Team.class(p.Class)
	template := p.Job().Spec.Template
	return queries.Proposal{
		Namespace: p.Team.Namespace, Queue: p.Team.Queue, Priority: class.Priority,
		PodSets: []explain.PodSet{{Name: "main", Count: p.Pods, MinCount: least, Requests: tasks.PodRequests(&template.Spec), Spec: &template.Spec}},
	}
}

func outcome(h queries.Hypothesis) Outcome {
	if h.Verdict.Fit != nil { // no node is large enough, whatever quota says
		return Never
	}
	switch h.Verdict.Constraint {
	case explain.PendingEvaluation:
		if h.StrictFIFO && h.Ahead > 0 {
			return Waits
		}
		return Starts
	case explain.Preempting:
		return Preempts
	case explain.ExceedsMax, explain.UncoveredResource, explain.NoMatchingFlavor, explain.WrongNamespace:
		return Never
	case explain.Unknown:
		return Unknown
	}
	return Waits
}

// most is how many pods of a plan the team could ever have in the flavor that
// comes nearest.
func most(p Plan, v explain.Verdict) int64 {
	pods := int64(p.Pods)
	for _, f := range v.Flavors {
		if v.Shortage == nil || f.Flavor != v.Shortage.Flavor {
			continue
		}
		for _, s := range f.Shortages {
			if each := p.PodResources[s.Resource]; each > 0 {
				pods = min(pods, s.PotentialAvailable/each)
			}
		}
	}
	return max(0, pods)
}
