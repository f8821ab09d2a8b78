package queries_test

import (
	"slices"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/tasks/queries"
)

// If the policy requires queues, only its own priority classes are allowed, and numbers if it
// allows them: the admission policy refuses others.
func TestAllowedPriorityClasses(t *testing.T) {
	l := newLab(t)
	l.apply("{apiVersion: kueue.x-k8s.io/v1beta2, kind: WorkloadPriorityClass, metadata: {name: NAME-dev-priority}, value: 20}")
	l.apply("{apiVersion: kueue.x-k8s.io/v1beta2, kind: WorkloadPriorityClass, metadata: {name: " + desired.GrowthClass + "}, value: -1000000}")
	number := desired.NumberClass(42)
	l.apply("{apiVersion: kueue.x-k8s.io/v1beta2, kind: WorkloadPriorityClass, metadata: {name: " + number + "}, value: 42}")
	policy := &v1alpha1.ClusterPolicy{}
	policy.Spec.PriorityClasses = []v1alpha1.PriorityClass{{Name: l.name + "-dev"}}
	for enforcement, want := range map[v1alpha1.Enforcement][]string{
		v1alpha1.RequireQueue:    {"-dev-priority"},
		v1alpha1.EnforcementNone: {"-low", "-dev-priority", "-high"},
	} {
		policy.Spec.Enforcement = enforcement
		for _, allowed := range []bool{true, false} {
			policy.Spec.NumericPriorities = allowed
			all, err := queries.AllowedPriorityClasses(t.Context(), l.c.Client, policy)
			if err != nil {
				t.Fatal(err)
			}
			_, numbers := queries.WithoutNumbers(all)
			if got, want := len(numbers) > 0, allowed || enforcement == v1alpha1.EnforcementNone; got != want {
				t.Errorf("enforcement %s, numbers allowed %v: got the numbers %v", enforcement, allowed, numbers)
			}
		}
		all, err := queries.AllowedPriorityClasses(t.Context(), l.c.Client, policy)
		if err != nil {
			t.Fatal(err)
		}
		found, _ := queries.WithoutNumbers(all)
		var names []string
		for _, c := range found {
			if c.Name == desired.GrowthClass {
				t.Errorf("enforcement %s: tasks may name %s", enforcement, c.Name)
			}
			if suffix, mine := strings.CutPrefix(c.Name, l.name); mine {
				names = append(names, suffix)
			}
		}
		if !slices.Equal(names, want) {
			t.Errorf("enforcement %s: got %q, want %q", enforcement, names, want)
		}
	}
}
