package tasks_test

import "kuota.dev/kuota/governance/tasks"

// otherWords are Kueue's reasons without the gate UnadmittedWorkloadsObservability
// for those with it.
var otherWords = map[string]string{
	"WaitingForQuota":  "Pending",
	"ExceedsMaxQuota":  "Pending",
	"NoMatchingFlavor": "Pending",
	"Misconfigured":    "Inadmissible",
	"Suspended":        "Inadmissible",
	"AdmissionGated":   "AdmissionGated",
	tasks.NoWorkload:   tasks.NoWorkload,
}
