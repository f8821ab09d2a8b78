package tasks

import (
	"fmt"
	"strings"
	"time"

	"kuota.dev/kuota/governance/tasks/estimate"
	"kuota.dev/kuota/governance/tasks/estimate/live"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/format"
	taskviews "kuota.dev/kuota/views/tasks"

	"k8s.io/apimachinery/pkg/types"
)

// Starts estimates when Workloads start. Latest does not wait; nil before the first
// estimates.
type Starts interface {
	Latest(workload types.UID) *live.Estimates
}

// rounding is the multiple to which the ends of a range are rounded outward.
const rounding = 5 * time.Minute

// EstimateOf returns when a waiting task probably starts; nil for other tasks. starts
// is nil without history.
func EstimateOf(d queries.Detail, starts Starts, now time.Time) *taskviews.StartEstimate {
	if !d.State.Waiting() || d.Growing() {
		return nil
	}
	if never, text := cannotStart(d); text != "" {
		if never {
			return &taskviews.StartEstimate{State: "never", Text: "Never: " + text}
		}
		return unknownStart(text)
	}
	switch {
	case d.NoWorkload:
		return unknownStart("Kueue has not created its Workload.")
	case starts == nil:
		return unknownStart("the run times of past tasks are not recorded, because history is disabled.")
	}
	return startWords(starts.Latest(d.Main.UID), d.Main.UID, now)
}

func unknownStart(why string) *taskviews.StartEstimate {
	return &taskviews.StartEstimate{State: "unknown", Text: "Unknown: " + why}
}

// cannotStart returns why a task cannot start before something is changed, and
// whether its limits or its specification must be; empty if nothing must.
func cannotStart(d queries.Detail) (never bool, text string) {
	v := d.Verdict
	if v == nil {
		return false, ""
	}
	switch v.Constraint {
	case explain.ExceedsMax, explain.UncoveredResource, explain.NoMatchingFlavor, explain.NoQueueName, explain.NoPriorityClass, explain.NotIntegrated,
		explain.NoQueue, explain.NoClusterQueue, explain.WrongNamespace:
		never = true
	case explain.Deactivated, explain.TimedOut, explain.QueueStopped, explain.QueueInactive, explain.CohortCycle, explain.Gated, explain.LoopHeld:
	default:
		return false, ""
	}
	_, text = headline(v, teamWords(d.Team))
	return never, strings.ToLower(text[:1]) + text[1:]
}

// startWords describes the estimate of a Workload.
func startWords(all *live.Estimates, workload types.UID, now time.Time) *taskviews.StartEstimate {
	if all == nil {
		return &taskviews.StartEstimate{State: "computing", Text: "Estimating …"}
	}
	start, known := all.Starts[workload]
	switch {
	case all.Failed != nil:
		return unknownStart(strings.TrimPrefix(FailedWords(all.Failed), "This could not be verified with Kueue's scheduler: "))
	case all.TooFew():
		return unknownStart(fmt.Sprintf("%s recorded, and %d are needed.", runsAre(all.Runs), estimate.MinRuns))
	case !known:
		return &taskviews.StartEstimate{State: "computing", Text: "Estimating …"}
	case start.Exceeds:
		return &taskviews.StartEstimate{State: "never", Text: "Never: it requests more than its queue can ever have."}
	case start.Unknown:
		return unknownStart("so many tasks wait before it that simulating them takes too long.")
	case start.Late:
		return unknownStart(fmt.Sprintf("probably not within %d days.", int(live.Horizon.Hours()/24)))
	}
	from, to := all.At.Add(start.Low).Truncate(rounding), all.At.Add(start.High+rounding-1).Truncate(rounding)
	e := &taskviews.StartEstimate{State: "range", To: format.Time(to), In: "within " + format.Age(to.Sub(now)), Record: recordWords(all.Record)}
	if start.Low >= rounding && from.After(now) {
		e.From, e.In = format.Time(from), fmt.Sprintf("in %s to %s", format.Age(from.Sub(now)), format.Age(to.Sub(now)))
	}
	return e
}

func runsAre(n int) string {
	switch n {
	case 0:
		return "no runs are"
	case 1:
		return "only 1 run is"
	}
	return fmt.Sprintf("only %d runs are", n)
}

// fewEstimates are too few to say which share of them held.
const fewEstimates = 10

// recordWords says how many past estimates held.
func recordWords(r estimate.Record) string {
	const simulated = "Simulated with Kueue's scheduler, past run times and past submissions. "
	if r.Of < fewEstimates {
		return strings.TrimSpace(simulated)
	}
	return simulated + fmt.Sprintf("Of %s, %d %% held.", format.Count(r.Of, "past estimate"), (100*r.Held+r.Of/2)/r.Of)
}
