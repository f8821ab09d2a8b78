package policy

import (
	"slices"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/describe"
)

// Values of the input for what a pool matches nodes by.
const (
	matchAccelerator = "accelerator"
	matchFamily      = "family"
	matchTypes       = "types"
	matchLabels      = "labels"
)

// Timestamps that requeued tasks are ordered by.
const (
	requeueEviction = "Eviction"
	requeueCreation = "Creation"
)

func wholeText(n *int32) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(int(*n))
}

// parseMatch parses the match of a pool; value is not empty.
func parseMatch(kind, value string) (match v1alpha1.PoolMatch, problem string) {
	switch kind {
	case matchAccelerator:
		match.Accelerator = value
	case matchFamily:
		match.InstanceFamily = value
	case matchTypes:
		for instanceType := range strings.SplitSeq(value, ",") {
			if instanceType = strings.TrimSpace(instanceType); instanceType != "" && !slices.Contains(match.InstanceTypes, instanceType) {
				match.InstanceTypes = append(match.InstanceTypes, instanceType)
			}
		}
		if len(match.InstanceTypes) == 0 {
			return match, "names no instance type; write them with commas between, such as ml.g5.2xlarge, ml.g5.4xlarge"
		}
	case matchLabels:
		match.NodeLabels = map[string]string{}
		for pair := range strings.SplitSeq(value, ",") {
			if pair = strings.TrimSpace(pair); pair == "" {
				continue
			}
			key, text, ok := strings.Cut(pair, "=")
			key, text = strings.TrimSpace(key), strings.TrimSpace(text)
			if !ok || key == "" {
				return v1alpha1.PoolMatch{}, "not a list of labels; write key=value with commas between, such as zone=a, rack=4"
			}
			if _, twice := match.NodeLabels[key]; twice {
				return v1alpha1.PoolMatch{}, "gives the label " + key + " twice"
			}
			match.NodeLabels[key] = text
		}
		if len(match.NodeLabels) == 0 {
			return v1alpha1.PoolMatch{}, "names no label; write key=value with commas between, such as zone=a, rack=4"
		}
	default:
		return match, "choose what the pool's nodes have in common"
	}
	return match, ""
}

// matchText returns the inputs of a match.
func matchText(match v1alpha1.PoolMatch) (kind, value string) {
	switch {
	case len(match.NodeLabels) > 0:
		return matchLabels, describe.Labels(match.NodeLabels)
	case len(match.InstanceTypes) > 0:
		return matchTypes, strings.Join(match.InstanceTypes, ", ")
	case match.InstanceFamily != "":
		return matchFamily, match.InstanceFamily
	}
	return matchAccelerator, match.Accelerator
}
