package kueueconfig

import (
	"cmp"
	"strconv"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/catalog"

	yaml "go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// The sections of Kueue's configuration that Kuota sets.
const (
	fairSharing          = "fairSharing"
	admissionFairSharing = "admissionFairSharing"
	waitForPodsReady     = "waitForPodsReady"
	featureGates         = "featureGates"
)

// gang is gang scheduling with all defaults filled in.
type gang struct {
	timeout, recovery metav1.Duration
	block             bool
	timestamp         string
	limit             *int32
	base, max         int32
}

// gangOf returns nil if gang scheduling is off. Kueue does not start with a
// negative timeout. It takes a timeout of zero as 30 minutes or as an error,
// depending on the version of its configuration.
func gangOf(g v1alpha1.GangScheduling) (*gang, error) {
	if !g.Enabled {
		return nil, nil
	}
	r := g.Requeuing
	fiveMinutes, _ := duration("5m")
	out := &gang{
		timeout: ptr.Deref(g.Timeout, fiveMinutes), recovery: ptr.Deref(g.RecoveryTimeout, fiveMinutes),
		block: g.BlockAdmission, timestamp: cmp.Or(r.Timestamp, "Eviction"),
		limit: r.BackoffLimitCount, base: ptr.Deref(r.BackoffBaseSeconds, 60), max: ptr.Deref(r.BackoffMaxSeconds, 3600),
	}
	var fields []governance.FieldError
	if out.timeout.Duration <= 0 {
		fields = append(fields, governance.FieldError{Path: "spec.gangScheduling.timeout", Message: "The timeout for pods to start must be above 0s, such as 5m."})
	}
	if out.recovery.Duration < 0 {
		fields = append(fields, governance.FieldError{Path: "spec.gangScheduling.recoveryTimeout", Message: "The recovery timeout must be 0s, which means no limit, or above, such as 5m."})
	}
	if len(fields) > 0 {
		return nil, &governance.Error{Kind: governance.Invalid, Op: "configure Kueue", Message: "Kueue would not start with these timeouts. Correct the marked fields.", Fields: fields}
	}
	return out, nil
}

func duration(text string) (d metav1.Duration, err error) {
	err = d.UnmarshalJSON([]byte(strconv.Quote(text)))
	return d, err
}

// setFairSharing switches fair sharing. In v1beta2 the presence of the section
// is the switch, in v1beta1 its key enable. The policy does not determine the
// preemption strategies, so an existing list is kept.
func (d *document) setFairSharing(on bool) {
	section := d.section(fairSharing)
	if !on {
		d.disable(section, fairSharing, "Fair sharing is switched off: idle compute is first come, first served.")
		return
	}
	entry := map[string]any{}
	if d.hasEnable {
		entry["enable"] = true
	}
	if list := child(section, "preemptionStrategies"); list == nil || len(list.Content) == 0 {
		entry["preemptionStrategies"] = []string{"LessThanOrEqualToFinalShare", "LessThanInitialShare"}
	}
	d.set(fairSharing, entry, "Fair sharing is switched on: idle compute is shared by fair-share weights.")
}

// usage is admission fair sharing with all defaults filled in.
type usage struct {
	halfLife, interval metav1.Duration
	weights            map[string]int
}

// usageOf returns nil if the policy leaves admission fair sharing as it is. Kueue does
// not start with a negative half-life or without an interval, and a half-life of zero
// disables the order by usage.
func usageOf(a *v1alpha1.AdmissionFairSharing) (*usage, error) {
	if a == nil {
		return nil, nil
	}
	out := &usage{
		halfLife: ptr.Deref(a.UsageHalfLifeTime, metav1.Duration{Duration: v1alpha1.DefaultUsageHalfLifeTime}),
		interval: ptr.Deref(a.UsageSamplingInterval, metav1.Duration{Duration: v1alpha1.DefaultUsageSamplingInterval}),
		weights:  ResourceWeights(a),
	}
	var fields []governance.FieldError
	if out.halfLife.Duration <= 0 {
		fields = append(fields, governance.FieldError{Path: "spec.admissionFairSharing.usageHalfLifeTime", Message: "The half-life of usage must be above 0s, such as 24h."})
	}
	if out.interval.Duration <= 0 {
		fields = append(fields, governance.FieldError{Path: "spec.admissionFairSharing.usageSamplingInterval", Message: "The sampling interval must be above 0s, such as 5m."})
	}
	if len(fields) > 0 {
		return nil, &governance.Error{Kind: governance.Invalid, Op: "configure Kueue", Message: "Kueue cannot count usage with these times. Correct the marked fields.", Fields: fields}
	}
	return out, nil
}

// uncounted are resources that quota does not cover and that Kueue may count.
var uncounted = []string{"pods", "ephemeral-storage"}

// ResourceWeights returns the weight of each resource. It names them all: Kueue counts
// a resource without a weight as 1, so that bytes of memory would hide accelerators.
func ResourceWeights(a *v1alpha1.AdmissionFairSharing) map[string]int {
	weights := map[string]int{}
	for _, name := range append(catalog.QuotaResources(), uncounted...) {
		weights[name] = 0
		if catalog.IsAccelerator(name) {
			weights[name] = 1
		}
	}
	for name, weight := range a.ResourceWeights {
		weights[name] = int(weight)
	}
	return weights
}

// setAdmissionFairSharing sets the section of usage; nil leaves it as it is. It removes
// the weights that the policy does not determine.
func (d *document) setAdmissionFairSharing(u *usage) {
	if u == nil {
		return
	}
	weights := map[string]any{}
	if list := child(d.section(admissionFairSharing), "resourceWeights"); list != nil && list.Kind == yaml.MappingNode {
		for i := 0; i < len(list.Content); i += 2 {
			weights[list.Content[i].Value] = nil
		}
	}
	for name, weight := range u.weights {
		weights[name] = weight
	}
	d.set(admissionFairSharing, map[string]any{
		"usageHalfLifeTime": u.halfLife, "usageSamplingInterval": u.interval, "resourceWeights": weights,
	}, "Usage of the shares of teams is counted with the half-life and the resource weights of the policy.")
}

// setGangScheduling switches waiting for pods in the same way; nil means off.
func (d *document) setGangScheduling(g *gang) {
	section := d.section(waitForPodsReady)
	if g == nil {
		d.disable(section, waitForPodsReady, "Gang scheduling is switched off in the section waitForPodsReady.")
		return
	}
	entry := map[string]any{
		"timeout": g.timeout, "recoveryTimeout": g.recovery, "blockAdmission": g.block,
		"requeuingStrategy": map[string]any{
			"timestamp": g.timestamp, "backoffLimitCount": limit(g.limit),
			"backoffBaseSeconds": int(g.base), "backoffMaxSeconds": int(g.max),
		},
	}
	if d.hasEnable {
		entry["enable"] = true
	}
	sentence := "Gang scheduling is switched on with the policy's timeouts."
	if section != nil && (!d.hasEnable || isTrue(child(section, "enable"))) {
		sentence = "Gang scheduling gets the policy's timeouts."
	}
	d.set(waitForPodsReady, entry, sentence)
}

// limit returns nil for no limit, which is Kueue's meaning of an absent key.
func limit(count *int32) any {
	if count == nil {
		return nil
	}
	return int(*count)
}

// disable removes a section, or switches it off and keeps its other keys in
// v1beta1.
func (d *document) disable(section *yaml.Node, name, sentence string) {
	switch {
	case section == nil:
	case !d.hasEnable:
		d.remove(name, sentence)
	case isTrue(child(section, "enable")):
		d.set(name, map[string]any{"enable": false}, sentence)
	}
}
