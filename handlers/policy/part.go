package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/handlers/urls"

	"k8s.io/apimachinery/pkg/api/equality"
)

// part is the fields of the policy that the form of one page changes. Saving keeps all
// others. A form that a version or an import filled in can change several.
type part struct {
	name        string // value of an input named "part"
	path        string // of its page
	title, lead string
	up, upLabel string // the page that links to it
	active      string // entry of the navigation
	copy        func(to, from *v1alpha1.ClusterPolicySpec)
	parse       func(*policyForm, *v1alpha1.ClusterPolicySpec, *governance.FieldErrors)
}

var (
	clusterPart = &part{
		name: "cluster", path: urls.EditPolicy, title: "Edit cluster policy", up: urls.Policies, upLabel: "Policies", active: "policies",
		lead:  "Sets which tasks start first and how teams share idle compute. Saving asks first where it interrupts running tasks or restarts Kueue.",
		parse: (*policyForm).parseCluster,
		copy: func(to, from *v1alpha1.ClusterPolicySpec) {
			to.TaskPrioritization, to.PriorityClasses, to.IdleCompute, to.GangScheduling = from.TaskPrioritization, from.PriorityClasses, from.IdleCompute, from.GangScheduling
			to.NumericPriorities, to.AdmissionFairSharing, to.PreemptionLoops, to.Enforcement = from.NumericPriorities, from.AdmissionFairSharing, from.PreemptionLoops, from.Enforcement
		},
	}
	poolsPart = &part{
		name: "pools", path: urls.EditPools, title: "Edit pools", up: urls.Instances, upLabel: "Instances", active: "instances",
		lead:  "A pool groups nodes that share a quota. A node belongs to the first pool that matches it, else to the pool of its instance type.",
		parse: (*policyForm).parsePools,
		copy: func(to, from *v1alpha1.ClusterPolicySpec) {
			to.Pools, to.OverAllocationLimits, to.Resources = from.Pools, from.OverAllocationLimits, from.Resources
		},
	}
	pricesPart = &part{
		name: "prices", path: urls.EditPrices, title: "Edit prices", up: urls.Usage, upLabel: "Usage", active: "usage",
		lead:  "What an hour of compute costs in the usage report. Prices change nothing in Kueue.",
		parse: (*policyForm).parsePrices,
		copy:  func(to, from *v1alpha1.ClusterPolicySpec) { to.Prices = from.Prices },
	}
	alertsPart = &part{
		name: "alerts", path: urls.EditAlerts, title: "Edit alert rules and receivers", up: urls.Alerts, upLabel: "Alerts", active: "alerts",
		lead:  "When alerts fire, and who is notified. Both change nothing in Kueue.",
		parse: (*policyForm).parseAlerts,
		copy:  func(to, from *v1alpha1.ClusterPolicySpec) { to.Alerts = from.Alerts },
	}
	parts = []*part{clusterPart, poolsPart, pricesPart, alertsPart}
)

// only returns the fields of these parts.
func only(spec *v1alpha1.ClusterPolicySpec, of ...*part) (some v1alpha1.ClusterPolicySpec) {
	for _, p := range of {
		p.copy(&some, spec)
	}
	return some
}

// generationOf identifies these parts of the spec of a policy. It has the UID, since a policy
// that is created again is another one.
func generationOf(policy *v1alpha1.ClusterPolicy, of []*part) string {
	some := only(&policy.Spec, of...)
	text, _ := json.Marshal(&some)
	sum := sha256.Sum256(text)
	return string(policy.UID) + "/" + hex.EncodeToString(sum[:8])
}

// differing returns the first part, and all others in which two specs differ.
func differing(first *part, a, b *v1alpha1.ClusterPolicySpec) []*part {
	list := []*part{first}
	for _, p := range parts {
		if one, other := only(a, p), only(b, p); p != first && !equality.Semantic.DeepEqual(one, other) {
			list = append(list, p)
		}
	}
	return list
}

// readParts returns the part of a page, and those that its form carries besides.
func readParts(page *part, names []string) []*part {
	list := []*part{page}
	for _, p := range parts {
		if p != page && slices.Contains(names, p.name) {
			list = append(list, p)
		}
	}
	return list
}
