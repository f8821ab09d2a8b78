package handlers

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/describe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What a pool matches nodes by, as the form posts it.
const (
	matchAccelerator = "accelerator"
	matchFamily      = "family"
	matchTypes       = "types"
	matchLabels      = "labels"
)

// The times that a requeued task can be ordered by.
const (
	requeueEviction = "Eviction"
	requeueCreation = "Creation"
)

// parseDuration reads a time span such as 5m, 300s or 1h30m. problem says what
// is wrong with the text; empty when it is right. Kueue counts whole seconds.
func parseDuration(text string) (d *metav1.Duration, problem string) {
	const example = "write a time such as 5m, 300s or 1h30m"
	parsed, err := time.ParseDuration(text)
	switch {
	case digits.MatchString(text) && strings.Trim(text, "0") != "":
		return nil, "has no unit; " + example
	case err != nil:
		return nil, "not a time; " + example
	case parsed < 0:
		return nil, "cannot be negative; " + example
	case parsed%time.Second != 0:
		return nil, "too fine; give whole seconds, such as 300s"
	}
	return &metav1.Duration{Duration: parsed}, ""
}

// parseCount reads a whole number that may be left empty; then it is fallback.
func parseCount(text string, fallback *int32) (*int32, string) {
	if text == "" {
		return fallback, ""
	}
	n, problem := parseWhole(text, math.MaxInt32)
	if problem != "" {
		return fallback, problem
	}
	count := int32(n)
	return &count, ""
}

func wholeText(n *int32) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(int(*n))
}

// parseMatch reads what a pool matches; value is not empty.
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

// matchText is a match as the form has it.
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
