package format

import (
	"strings"

	"kuota.dev/kuota/governance/kueue/simulate"
)

// omissions are parts of Kueue that are not simulated.
var omissions = map[simulate.Omission]string{
	simulate.OmittedTopology:      "placement by topology",
	simulate.OmittedChecks:        "admission checks",
	simulate.OmittedElasticSlices: "slices of elastic jobs that replace each other",
	simulate.OmittedUsageHistory:  "the past usage of queues",
	simulate.OmittedDevices:       "devices that pods claim",
	simulate.OmittedOverhead:      "the overhead of runtime classes",
}

// NotSimulated returns a sentence about what a simulation leaves out; empty for
// nothing.
func NotSimulated(list []simulate.Omission) string {
	var parts []string
	for _, o := range list {
		parts = append(parts, omissions[o])
	}
	if len(parts) == 0 {
		return ""
	}
	return "Not simulated: " + strings.Join(parts, ", ") + "."
}
