package kueueconfig_test

import (
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/kueue/kueueconfig"

	"k8s.io/apimachinery/pkg/labels"
)

func TestManagedNamespaces(t *testing.T) {
	team := labels.Set{"kubernetes.io/metadata.name": "team-a", "kuota.dev/governed": "true"}
	for name, tc := range map[string]struct {
		text string
		want bool
	}{
		"no selector":               {head2, true},
		"null":                      {head2 + "managedJobsNamespaceSelector:\n", true},
		"an empty selector":         {head2 + "managedJobsNamespaceSelector: {}\n", true},
		"the release's":             {head2 + "managedJobsNamespaceSelector:\n  matchExpressions:\n  - {key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system, kueue-system]}\n", true},
		"it excludes the namespace": {head2 + "managedJobsNamespaceSelector:\n  matchExpressions:\n  - {key: kubernetes.io/metadata.name, operator: NotIn, values: [team-a]}\n", false},
		"a label of Kuota":          {head2 + "managedJobsNamespaceSelector: {matchLabels: {kuota.dev/governed: 'true'}}\n", true},
		"a label that it lacks":     {head2 + "managedJobsNamespaceSelector: {matchLabels: {managed-by-kueue: 'true'}}\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			selector, err := kueueconfig.ManagedNamespaces(tc.text)
			if err != nil {
				t.Fatal(err)
			}
			if got := selector.Matches(team); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
	for _, text := range []string{"managedJobsNamespaceSelector: [a]\n", "managedJobsNamespaceSelector: {matchExpressions: [{key: a, operator: Like}]}\n"} {
		if _, err := kueueconfig.ManagedNamespaces(head2 + text); governance.KindOf(err) != governance.Invalid {
			t.Errorf("%s: got error %v", text, err)
		}
	}
}

// Kueue labels jobs without a priority class from 0.20 on, before that if the gate is
// on. If that is unknown, it may: enforcement must not reject what Kueue labels.
func TestDefaultPriorityClass(t *testing.T) {
	for name, tc := range map[string]struct{ image, gates, want string }{
		"0.20":                    {"x:v0.20.0", "", "default"},
		"0.20, switched off":      {"x:v0.20.0", "featureGates: {WorkloadPriorityClassDefaulting: false}\n", ""},
		"0.19":                    {"x:v0.19.2", "", ""},
		"0.19, switched on":       {"x:v0.19.2", "featureGates: {WorkloadPriorityClassDefaulting: true}\n", "default"},
		"an unknown version":      {"x:main", "", "default"},
		"unknown, switched off":   {"x:main", "featureGates: {WorkloadPriorityClassDefaulting: false}\n", ""},
		"unknown, switched on":    {"x:main", "featureGates: {WorkloadPriorityClassDefaulting: true}\n", "default"},
		"a version after 0.20":    {"x:v0.21.0", "", "default"},
		"configuration is a list": {"x:v0.20.0", "- a\n", "default"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := kueueconfig.DefaultPriorityClass(kueueconfig.Current{Text: head2 + tc.gates, Image: tc.image}); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// Gates that are off by default in all versions are returned only if they are set.
func TestOptionalGates(t *testing.T) {
	seen := kueueconfig.Current{Text: head2, Image: "x:v0.20.0"}
	if kueueconfig.GateEnabled(seen, kueueconfig.GateBoost) {
		t.Error("PriorityBoost is on by default")
	}
	seen.Text += "featureGates: {PriorityBoost: true, ConfigurablePreemption: false}\n"
	if !kueueconfig.GateEnabled(seen, kueueconfig.GateBoost) || kueueconfig.GateEnabled(seen, kueueconfig.GatePreemption) {
		t.Error("the gates that are set are not read")
	}
	gates, err := kueueconfig.Gates(seen)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, g := range gates {
		names[g.Name] = true
	}
	if !names[kueueconfig.GateBoost] || !names[kueueconfig.GatePreemption] || names[kueueconfig.GateDynamicQuota] {
		t.Errorf("got %v", gates)
	}
}
