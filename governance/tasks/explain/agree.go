package explain

import "slices"

// said is what a constraint may be called by Kueue's reason for QuotaReserved, in
// the words of 0.19 with UnadmittedWorkloadsObservability and of versions and
// configurations without it. A reason that is not here says nothing exact.
var constraintsByReason = map[string][]Constraint{
	"WaitingForQuota":              {Quota, Preempting, WaitingForPodsReady},
	"ExceedsMaxQuota":              {ExceedsMax},
	"NoMatchingFlavor":             {NoMatchingFlavor},
	"TopologyPlacementFailed":      {Quota, Preempting, ExceedsMax, Topology},
	"WaitingForPreemptedWorkloads": {Preempting, PendingEvaluation, Quota},
	"Misconfigured":                {NoQueue, NoClusterQueue, WrongNamespace, QueueInactive, UncoveredResource},
	"Suspended":                    {QueueStopped, QueueInactive, NoClusterQueue},
	"WaitingForPodsReady":          {WaitingForPodsReady, Quota, Preempting},
	"Deactivated":                  {Deactivated},

	"AdmissionGated": {Gated},
	"OnHold":         {QueueStopped},
	"Pending":        {Quota, Preempting, PendingEvaluation, ExceedsMax, NoMatchingFlavor, UncoveredResource, BackingOff, WaitingForPodsReady},
	"Waiting":        {WaitingForPodsReady, Quota, Preempting, PendingEvaluation},
	"Inadmissible":   {NoQueue, NoClusterQueue, WrongNamespace, QueueStopped, QueueInactive, NoMatchingFlavor, ExceedsMax, UncoveredResource},
}

// Agrees tells whether a verdict and Kueue's reason say the same. Kueue's are
// often older than what changed since, or general.
func (v Verdict) Agrees(reason string) bool {
	fits, exact := constraintsByReason[reason]
	return !exact || slices.Contains(fits, v.Constraint)
}
