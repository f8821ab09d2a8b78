package explain

import "slices"

// constraintsByReason maps Kueue's reasons for QuotaReserved, of 0.19 with
// UnadmittedWorkloadsObservability and of versions and configurations without it,
// to the constraints that they may mean. nil is a reason that fits all of them.
var constraintsByReason = map[string][]Constraint{
	"WaitingForQuota":              {Quota, Preempting, WaitingForPodsReady},
	"ExceedsMaxQuota":              {ExceedsMax, UncoveredResource},
	"NoMatchingFlavor":             {NoMatchingFlavor, UncoveredResource},
	"TopologyPlacementFailed":      {Quota, Preempting, ExceedsMax, Topology},
	"WaitingForPreemptedWorkloads": {Preempting, PendingEvaluation, Quota},
	"Misconfigured":                {NoQueue, NoClusterQueue, WrongNamespace, QueueInactive, CohortCycle, UncoveredResource},
	"Suspended":                    {QueueStopped, QueueInactive, CohortCycle, NoClusterQueue},
	"WaitingForPodsReady":          {WaitingForPodsReady, Quota, Preempting},
	"Deactivated":                  {Deactivated, TimedOut},
	"PendingEvaluation":            nil, // Kueue has not evaluated the task

	"AdmissionGated": {Gated, StartsAfter},
	"OnHold":         {QueueStopped, Deactivated},
	"Pending":        {Quota, Preempting, PendingEvaluation, Behind, ExceedsMax, NoMatchingFlavor, UncoveredResource, BackingOff, WaitingForPodsReady},
	"Waiting":        {WaitingForPodsReady, Quota, Preempting, PendingEvaluation, Behind},
	"Inadmissible":   {NoQueue, NoClusterQueue, WrongNamespace, QueueStopped, QueueInactive, CohortCycle, NoMatchingFlavor, ExceedsMax, UncoveredResource},

	"":           nil, // Kueue gave none
	"NoWorkload": nil, // Kuota's own, of a job that Kueue created no Workload for
}

// Agreement is whether a verdict matches Kueue's reason.
type Agreement string

// The agreements.
const (
	Agrees    Agreement = "Agrees"
	Disagrees Agreement = "Disagrees"
	// UnknownReason is neither: the reason is of a version of Kueue that Kuota does
	// not know.
	UnknownReason Agreement = "UnknownReason"
)

// Compare returns whether a verdict matches Kueue's reason for QuotaReserved.
// Kueue's may be older than the last change, or general. Unknown says nothing that a
// reason could contradict.
func (v Verdict) Compare(reason string) Agreement {
	switch fits, known := constraintsByReason[reason]; {
	case !known && v.Constraint != Unknown:
		return UnknownReason
	case fits == nil || v.Constraint == Unknown || slices.Contains(fits, v.Constraint):
		return Agrees
	}
	return Disagrees
}

// contradicts reports whether Kueue's reason rules out a constraint. An unknown
// reason rules out none.
func contradicts(reason string, constraint Constraint) bool {
	return Verdict{Constraint: constraint}.Compare(reason) == Disagrees
}
