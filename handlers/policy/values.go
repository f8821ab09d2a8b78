package policy

import (
	"slices"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/spec/describe"
	"kuota.dev/kuota/handlers/forms"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// parsePrices parses a currency and one price a line, and reports invalid lines; nil without both.
func parsePrices(wrong *governance.FieldErrors, currency, text string) *v1alpha1.Prices {
	prices := &v1alpha1.Prices{Currency: currency}
	parseLines(wrong, "spec.prices.hourly", text, func(fields []string) string {
		if len(fields) < 4 || len(fields) > 5 {
			return "write pool, resource, beginning, own price and borrowed price, such as h100 nvidia.com/gpu 2026-10-01 2.50 1.20"
		}
		price := v1alpha1.HourlyPrice{Pool: fields[0], Resource: fields[1], From: fields[2], Own: fields[3]}
		if len(fields) == 5 {
			price.Borrowed = fields[4]
		}
		prices.Hourly = append(prices.Hourly, price)
		return ""
	})
	if currency == "" && len(prices.Hourly) == 0 {
		return nil
	}
	return prices
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

// parseAlerts parses one rule and one receiver a line; nil without both.
func parseAlerts(wrong *governance.FieldErrors, rules, receivers string) *v1alpha1.Alerts {
	var a v1alpha1.Alerts
	parseLines(wrong, "spec.alerts.rules", rules, func(fields []string) string {
		rule, problem := parseAlertRule(fields)
		if problem == "" {
			a.Rules = append(a.Rules, rule)
		}
		return problem
	})
	parseLines(wrong, "spec.alerts.receivers", receivers, func(fields []string) string {
		receiver, problem := parseReceiver(fields)
		if problem == "" {
			a.Receivers = append(a.Receivers, receiver)
		}
		return problem
	})
	if len(a.Rules)+len(a.Receivers) == 0 {
		return nil
	}
	return &a
}

// parseLines reports the problems of all lines.
func parseLines(wrong *governance.FieldErrors, path, text string, parse func(fields []string) (problem string)) {
	wrong.Add(path, forms.ParseLines(text, parse))
}

// parseAlertRule parses a rule, an optional priority class, and a time, a number or off.
func parseAlertRule(fields []string) (rule v1alpha1.AlertRule, problem string) {
	if len(fields) < 2 || len(fields) > 3 {
		return rule, "write a rule, and a time, a number or off, such as task-waits 2h, task-waits inference 10m, or quota-idle off"
	}
	rule.Rule = fields[0]
	if len(fields) == 3 {
		rule.PriorityClass = fields[1]
	}
	value := fields[len(fields)-1]
	if value == "off" {
		rule.Off = true
		return rule, ""
	}
	if n, err := strconv.ParseInt(value, 10, 32); err == nil {
		count := int32(n)
		rule.Count = &count
		return rule, ""
	}
	after, err := forms.ReadDuration(value)
	if err != nil {
		return rule, strconv.Quote(value) + " is neither a time such as 30m or 4h, nor a number, nor off"
	}
	rule.After = &metav1.Duration{Duration: after}
	return rule, ""
}

// parseReceiver parses a name, a type, a Secret and options.
func parseReceiver(fields []string) (r v1alpha1.AlertReceiver, problem string) {
	if len(fields) < 3 {
		return r, "write a name, a type and a Secret, such as ops Slack alerts-ops"
	}
	r.Name, r.Type, r.SecretName = fields[0], v1alpha1.AlertReceiverType(fields[1]), fields[2]
	for _, known := range v1alpha1.AlertReceiverTypes {
		if strings.EqualFold(fields[1], string(known)) {
			r.Type = known
		}
	}
	for _, option := range fields[3:] {
		switch key, value, _ := strings.Cut(option, "="); {
		case value == "":
			return r, option + " has no value; write to=, team= or severity= with a value"
		case key == "to":
			r.To = append(r.To, strings.Split(value, ",")...)
		case key == "team":
			r.Team = value
		case key == "severity":
			r.Severity = value
		default:
			return r, "there is no option " + key + "; write to=, team= or severity="
		}
	}
	return r, ""
}
