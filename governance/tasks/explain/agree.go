package explain

import "slices"

// said is what a constraint may be called by Kueue's reason for QuotaReserved, in
// the words of 0.19 with UnadmittedWorkloadsObservability and of versions and
// configurations without it. A reason that is not here says nothing exact.
var said = map[string][]Constraint{
	"WaitingForQuota":              {Quota, Reclaims, OthersStart},
	"ExceedsMaxQuota":              {ExceedsMax},
	"NoMatchingFlavor":             {NoMatchingFlavor},
	"TopologyPlacementFailed":      {Quota, Reclaims, ExceedsMax, Topology},
	"WaitingForPreemptedWorkloads": {Reclaims, Turn, Quota},
	"Misconfigured":                {NoQueue, NoClusterQueue, WrongNamespace, QueueInactive, Uncovered},
	"Suspended":                    {QueueHeld, QueueInactive, NoClusterQueue},
	"WaitingForPodsReady":          {OthersStart, Quota, Reclaims},
	"Deactivated":                  {Deactivated},

	"AdmissionGated": {Gated},
	"OnHold":         {QueueHeld},
	"Pending":        {Quota, Reclaims, Turn, ExceedsMax, NoMatchingFlavor, Uncovered, BacksOff, OthersStart},
	"Waiting":        {OthersStart, Quota, Reclaims, Turn},
	"Inadmissible":   {NoQueue, NoClusterQueue, WrongNamespace, QueueHeld, QueueInactive, NoMatchingFlavor, ExceedsMax, Uncovered},
}

// Agrees tells whether a verdict and Kueue's reason say the same. Kueue's are
// often older than what changed since, or general.
func (v Verdict) Agrees(reason string) bool {
	fits, exact := said[reason]
	return !exact || slices.Contains(fits, v.Constraint)
}
