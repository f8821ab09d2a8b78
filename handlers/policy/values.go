package policy

import (
	"slices"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/spec/describe"
	"kuota.dev/kuota/handlers/forms"

	"k8s.io/apimachinery/pkg/util/validation"
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

// parseWeights parses resource weights such as "nvidia.com/gpu=7, cpu=0".
func parseWeights(text string) (weights map[string]v1alpha1.ResourceWeight, problem string) {
	const example = "write resource=weight with commas between, such as nvidia.com/gpu=7, nvidia.com/mig-1g.10gb=1"
	for pair := range strings.SplitSeq(text, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		name, number, ok := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		if !ok || len(validation.IsQualifiedName(name)) > 0 {
			return nil, "not a list of resources; " + example
		}
		if _, twice := weights[name]; twice {
			return nil, "names " + name + " twice"
		}
		weight, problem := forms.ParseWhole(strings.TrimSpace(number), 0, v1alpha1.MaxResourceWeight)
		if problem != "" {
			return nil, "the weight of " + name + ": " + problem
		}
		if weights == nil {
			weights = map[string]v1alpha1.ResourceWeight{}
		}
		weights[name] = v1alpha1.ResourceWeight(weight)
	}
	return weights, ""
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
