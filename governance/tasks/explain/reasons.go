package explain

import "slices"

// constraintsByReason maps Kueue's reasons for QuotaReserved, of 0.19 with
// UnadmittedWorkloadsObservability and of versions and configurations without it,
// to the constraints that they may mean. Other reasons mean nothing exact.
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

// Agrees reports whether a verdict matches Kueue's reason. Kueue's may be older
// than the last change, or general.
func (v Verdict) Agrees(reason string) bool {
	fits, exact := constraintsByReason[reason]
	return !exact || slices.Contains(fits, v.Constraint)
}
