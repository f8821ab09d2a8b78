package policy

import (
	"slices"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/quota/catalog"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func weight(n int32) *int32 { return &n }

func class(name string, n int32) v1alpha1.PriorityClass {
	return v1alpha1.PriorityClass{Name: name, Weight: &n}
}

func limited(name string, byDefault, atMost int32) v1alpha1.PriorityClass {
	c := class(name, 1)
	c.DefaultTimeLimitSeconds, c.MaximumTimeLimitSeconds = &byDefault, &atMost
	return c
}

func accelerator(name, model string) v1alpha1.Pool {
	return v1alpha1.Pool{Name: name, Match: v1alpha1.PoolMatch{Accelerator: model}}
}

// lab returns the state of a cluster with one p5, one p5e and one g5 node, and
// these applied pools.
func lab(pools []v1alpha1.Pool, teams ...v1alpha1.ComputeAllocation) State {
	state := State{label: catalog.InstanceTypeLabel, teams: cluster.Pointers(teams), Policy: &v1alpha1.ClusterPolicy{}}
	for _, instanceType := range []string{"ml.p5.48xlarge", "ml.p5e.48xlarge", "ml.g5.2xlarge"} {
		state.nodes = append(state.nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{catalog.InstanceTypeLabel: instanceType, "zone": "a"}}})
	}
	state.Policy.Spec.Pools, state.Policy.Status.Pools = pools, pools
	state.Types = state.catalog(pools)
	return state
}

func team(name string, rows ...v1alpha1.QuotaRow) v1alpha1.ComputeAllocation {
	n := int64(1)
	for i := range rows {
		rows[i].Accelerators = &n
	}
	return v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ComputeAllocationSpec{Quota: rows}}
}

// withApplied returns the team with applied quota in these pools.
func withApplied(team v1alpha1.ComputeAllocation, pools ...string) v1alpha1.ComputeAllocation {
	for _, pool := range pools {
		team.Status.Quota = append(team.Status.Quota, v1alpha1.PoolQuota{Pool: pool})
	}
	return team
}

func TestValidate(t *testing.T) {
	seconds := func(n time.Duration) *metav1.Duration { return &metav1.Duration{Duration: n * time.Second} }
	eleven := make([]v1alpha1.PriorityClass, 11)
	for i := range eleven {
		eleven[i] = class("c"+string(rune('a'+i)), 1)
	}
	for name, tc := range map[string]struct {
		spec v1alpha1.ClusterPolicySpec
		want map[string]string // part of the message by path
	}{
		"empty spec":     {v1alpha1.ClusterPolicySpec{}, nil},
		"eleven classes": {v1alpha1.ClusterPolicySpec{PriorityClasses: eleven}, map[string]string{"spec.priorityClasses": "at most 10"}},
		"time limits": {
			v1alpha1.ClusterPolicySpec{PriorityClasses: []v1alpha1.PriorityClass{
				limited("a", 3600, 3600), limited("b", 7200, 3600), limited("c", 0, v1alpha1.MaxTimeLimitSeconds+1), limited("d", -1, 60),
			}},
			map[string]string{
				"spec.priorityClasses[1].defaultTimeLimitSeconds": "longer than the maximum",
				"spec.priorityClasses[2].defaultTimeLimitSeconds": "from 1 to 31,536,000", "spec.priorityClasses[2].maximumTimeLimitSeconds": "from 1 to 31,536,000",
				"spec.priorityClasses[3].defaultTimeLimitSeconds": "from 1 to 31,536,000",
			},
		},
		"receivers of notices": {
			v1alpha1.ClusterPolicySpec{Alerts: &v1alpha1.Alerts{Receivers: []v1alpha1.AlertReceiver{
				{Name: "chat", Type: v1alpha1.SlackReceiver, SecretName: "chat", Severity: "critical", Notices: v1alpha1.AlsoNotices},
				{Name: "mail", Type: v1alpha1.EmailReceiver, SecretName: "smtp", Notices: v1alpha1.OnlyNotices},
				{Name: "both", Type: v1alpha1.EmailReceiver, SecretName: "smtp", To: []string{"ops@example.com"}, Notices: v1alpha1.AlsoNotices},
				{Name: "no-address", Type: v1alpha1.EmailReceiver, SecretName: "smtp", Notices: v1alpha1.AlsoNotices},
				{Name: "no-alerts", Type: v1alpha1.EmailReceiver, SecretName: "smtp", To: []string{"ops@example.com"}, Notices: v1alpha1.OnlyNotices},
				{Name: "severe", SecretName: "hook", Severity: "critical", Notices: v1alpha1.OnlyNotices},
				{Name: "odd", SecretName: "hook", Notices: "Sometimes"},
			}}},
			map[string]string{
				"spec.alerts.receivers[3]": "has addresses in to", "spec.alerts.receivers[4]": "has addresses in to",
				"spec.alerts.receivers[5]": "notices have no severity", "spec.alerts.receivers[6].notices": "Also or Only",
			},
		},
		"two classes of one object": {
			v1alpha1.ClusterPolicySpec{PriorityClasses: []v1alpha1.PriorityClass{class("dev", 1), class("dev-priority", 2)}},
			map[string]string{"spec.priorityClasses": "would be the same object"},
		},
		"a class that looks like a number": {
			v1alpha1.ClusterPolicySpec{NumericPriorities: true, PriorityClasses: []v1alpha1.PriorityClass{class("100", 1), class("7", 2)}},
			map[string]string{"spec.numericPriorities": "taken for a priority by number"},
		},
		"a class twice": {
			v1alpha1.ClusterPolicySpec{PriorityClasses: []v1alpha1.PriorityClass{class("dev", 1), class("dev", 2)}},
			map[string]string{"spec.priorityClasses[1].name": "twice"},
		},
		"bad classes": {
			v1alpha1.ClusterPolicySpec{PriorityClasses: []v1alpha1.PriorityClass{class("Dev", 101), {Name: ""}, class(strings.Repeat("a", 41), -1)}},
			map[string]string{
				"spec.priorityClasses[0].name": "lower-case", "spec.priorityClasses[0].weight": "from 0",
				"spec.priorityClasses[1].name": "is empty", "spec.priorityClasses[1].weight": "is missing",
				"spec.priorityClasses[2].name": "more than 40 characters", "spec.priorityClasses[2].weight": "from 0",
			},
		},
		"unknown values": {
			v1alpha1.ClusterPolicySpec{TaskPrioritization: "Best", Enforcement: "Some", IdleCompute: v1alpha1.IdleCompute{Strategy: "Mine"}},
			map[string]string{"spec.taskPrioritization": "TaskRanking", "spec.enforcement": "RequireQueue", "spec.idleCompute.strategy": "FairShare"},
		},
		"invalid gang scheduling": {
			v1alpha1.ClusterPolicySpec{GangScheduling: v1alpha1.GangScheduling{
				Timeout: seconds(0), RecoveryTimeout: seconds(-1),
				Requeuing: v1alpha1.Requeuing{Timestamp: "Now", BackoffLimitCount: weight(-1), BackoffBaseSeconds: weight(7200)},
			}},
			map[string]string{
				"spec.gangScheduling.timeout": "longer than 0s", "spec.gangScheduling.recoveryTimeout": "0s or longer",
				"spec.gangScheduling.requeuing.timestamp": "Eviction", "spec.gangScheduling.requeuing.backoffLimitCount": "from 0",
				"spec.gangScheduling.requeuing.backoffMaxSeconds": "smaller than backoffBaseSeconds",
			},
		},
		"usage that never counts": {
			v1alpha1.ClusterPolicySpec{AdmissionFairSharing: &v1alpha1.AdmissionFairSharing{
				UsageHalfLifeTime: seconds(0), UsageSamplingInterval: seconds(-1), ResourceWeights: map[string]v1alpha1.ResourceWeight{"cpu": 1001},
			}},
			map[string]string{
				"spec.admissionFairSharing.usageHalfLifeTime": "with 0s Kueue ignores usage", "spec.admissionFairSharing.usageSamplingInterval": "0s or longer",
				"spec.admissionFairSharing.resourceWeights": "cpu: must be a whole number from 0 to 1,000",
			},
		},
		"invalid prices": {
			v1alpha1.ClusterPolicySpec{Prices: &v1alpha1.Prices{Currency: "euro", Hourly: []v1alpha1.HourlyPrice{{Pool: "h100", Resource: "nvidia.com/gpu", From: "soon", Own: "1"}}}},
			map[string]string{"spec.prices.currency": "three capital letters", "spec.prices.hourly[0].from": "write the beginning"},
		},
		"unlimited recovery timeout": {v1alpha1.ClusterPolicySpec{GangScheduling: v1alpha1.GangScheduling{RecoveryTimeout: seconds(0)}}, nil},
		"invalid pools": {
			v1alpha1.ClusterPolicySpec{Pools: []v1alpha1.Pool{
				accelerator("ml.g5.2xlarge", "A10G"), accelerator("h100", ""), accelerator("a", "H100"), accelerator("a", "H200"),
				{Name: "b", Match: v1alpha1.PoolMatch{Accelerator: "A100", InstanceFamily: "ml.p4d"}},
				{Name: "c", Match: v1alpha1.PoolMatch{InstanceTypes: []string{"x", "", "x"}}},
				{Name: "d", Match: v1alpha1.PoolMatch{NodeLabels: map[string]string{"bad key": "x"}}},
			}},
			map[string]string{
				"spec.pools[0].name": "is an instance type", "spec.pools[1].match": "exactly one", "spec.pools[3].name": "twice",
				"spec.pools[4].match": "exactly one", "spec.pools[5].match.instanceTypes[1]": "empty", "spec.pools[5].match.instanceTypes[2]": "twice", "spec.pools[6].match.nodeLabels": "bad key=x",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			errs := Validate(&v1alpha1.ClusterPolicy{Spec: tc.spec}, lab(nil))
			got := map[string]bool{}
			for _, e := range errs {
				if !got[e.Path] && !strings.Contains(e.Message, tc.want[e.Path]) || tc.want[e.Path] == "" {
					t.Errorf("%s: %q, want %q", e.Path, e.Message, tc.want[e.Path])
				}
				got[e.Path] = true
			}
			for path := range tc.want {
				if !got[path] {
					t.Errorf("got errors %v, want one at %s", errs, path)
				}
			}
		})
	}
}

// A change that would take a pool from the quota of a team is an error that names
// the team.
func TestPoolsUnderQuota(t *testing.T) {
	byType := func(name string) v1alpha1.QuotaRow { return v1alpha1.QuotaRow{InstanceType: name} }
	byPool := func(name string) v1alpha1.QuotaRow { return v1alpha1.QuotaRow{Pool: name} }
	h100 := accelerator("h100", "H100")
	for name, tc := range map[string]struct {
		applied, proposed []v1alpha1.Pool
		teams             []v1alpha1.ComputeAllocation
		want              []governance.FieldError
	}{
		"removed without quota": {
			[]v1alpha1.Pool{h100}, nil, []v1alpha1.ComputeAllocation{team("vision", byType("ml.g5.2xlarge"))}, nil,
		},
		"removed with quota": {
			[]v1alpha1.Pool{h100}, nil, []v1alpha1.ComputeAllocation{team("speech", byPool("h100")), team("vision", byPool("h100"), byType("ml.g5.2xlarge"))},
			[]governance.FieldError{{Path: "spec.pools", Message: "teams speech and vision have quota in pool h100: move it first"}},
		},
		"removed with quota of an instance type": {
			[]v1alpha1.Pool{h100}, nil, []v1alpha1.ComputeAllocation{team("vision", byType("ml.p5.48xlarge"))},
			[]governance.FieldError{{Path: "spec.pools", Message: "team vision has quota in pool h100: move it first"}},
		},
		"renamed": {
			[]v1alpha1.Pool{h100}, []v1alpha1.Pool{accelerator("hopper", "H100")}, []v1alpha1.ComputeAllocation{team("vision", byPool("h100"))},
			[]governance.FieldError{{Path: "spec.pools", Message: "team vision has quota in pool h100: move it first"}},
		},
		"a new pool gets the nodes of a type": {
			nil, []v1alpha1.Pool{accelerator("h200", "H200"), h100}, []v1alpha1.ComputeAllocation{team("vision", byType("ml.g5.2xlarge"), byType("ml.p5.48xlarge"))},
			[]governance.FieldError{{Path: "spec.pools[1].match", Message: "team vision has quota in pool ml.p5.48xlarge: move it first"}},
		},
		"extended": {
			[]v1alpha1.Pool{h100}, []v1alpha1.Pool{{Name: "h100", Match: v1alpha1.PoolMatch{InstanceTypes: []string{"ml.p5.48xlarge", "ml.p5e.48xlarge"}}}},
			[]v1alpha1.ComputeAllocation{team("vision", byPool("h100"))}, nil,
		},
		"no longer matches the type of a row": {
			[]v1alpha1.Pool{h100}, []v1alpha1.Pool{accelerator("h100", "A10G")}, []v1alpha1.ComputeAllocation{team("vision", byType("ml.p5.48xlarge"))},
			[]governance.FieldError{{Path: "spec.pools[0].match", Message: "team vision has quota in pool h100: move it first"}},
		},
		"removed with applied quota only": {
			[]v1alpha1.Pool{h100}, nil, []v1alpha1.ComputeAllocation{withApplied(team("vision", byType("missing")), "h100", "ml.g5.2xlarge")},
			[]governance.FieldError{{Path: "spec.pools", Message: "team vision has quota in pool h100: move it first"}},
		},
		"renamed with quota of one team and applied quota of another": {
			[]v1alpha1.Pool{h100}, []v1alpha1.Pool{accelerator("hopper", "H100")},
			[]v1alpha1.ComputeAllocation{team("speech", byPool("h100")), withApplied(team("vision", byType("missing")), "h100")},
			[]governance.FieldError{{Path: "spec.pools", Message: "teams speech and vision have quota in pool h100: move it first"}},
		},
		"unchanged with applied quota": {
			[]v1alpha1.Pool{h100}, []v1alpha1.Pool{h100, accelerator("h200", "H200")},
			[]v1alpha1.ComputeAllocation{withApplied(team("vision", byType("missing")), "h100", "ml.g5.2xlarge", "lost before")}, nil,
		},
		"new, with quota that does not resolve": {
			nil, []v1alpha1.Pool{h100}, []v1alpha1.ComputeAllocation{team("vision", byPool("h200"))}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			policy := &v1alpha1.ClusterPolicy{Spec: v1alpha1.ClusterPolicySpec{Pools: tc.proposed}}
			if diff := cmp.Diff(tc.want, Validate(policy, lab(tc.applied, tc.teams...))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestClassChanges(t *testing.T) {
	before := []v1alpha1.PriorityClass{class("a", 1), class("b", 2), class("removed", 3)}
	after := []v1alpha1.PriorityClass{class("new", 4), class("b", 5), class("a", 1)}
	want := []ClassChange{
		{Name: "new", After: weight(4)},
		{Name: "b", Before: weight(2), After: weight(5), Tasks: 7},
		{Name: "removed", Before: weight(3), Tasks: 1},
	}
	got := classChanges(before, after, map[string]int{"b": 7, "removed": 1, "": 3})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got[0].InUse() || got[1].InUse() || !got[2].InUse() {
		t.Errorf("got InUse %t, %t, %t; want it only for a removed class that tasks use", got[0].InUse(), got[1].InUse(), got[2].InUse())
	}
}

// Errors of added pools have paths in the list of the added pools.
func TestErrorsOfAddedPools(t *testing.T) {
	state := lab([]v1alpha1.Pool{accelerator("h100", "H100")})
	pools := []v1alpha1.Pool{accelerator("h100", "H100"), accelerator("ml.g5.2xlarge", "A10G")}
	got := added(Validate(withPools(state.Policy, pools), state), state.Policy, pools)
	if len(got) != 1 || got[0].Path != "spec.pools[1].name" {
		t.Errorf("got %+v, want one error at spec.pools[1].name", got)
	}
	other := []v1alpha1.Pool{accelerator("h100", "H200")}
	got = added(Validate(withPools(state.Policy, other), state), state.Policy, other)
	if len(got) != 1 || got[0].Path != "spec.pools[0].name" {
		t.Errorf("got %+v for an existing name with another match, want one error at spec.pools[0].name", got)
	}
}

// A policy may name what does not exist yet, or no more. It is warned of.
func TestWarnings(t *testing.T) {
	spec := &v1alpha1.ClusterPolicySpec{
		Pools: []v1alpha1.Pool{{Name: "planned", Match: v1alpha1.PoolMatch{Accelerator: "H300"}}},
		Prices: &v1alpha1.Prices{Currency: "EUR", Hourly: []v1alpha1.HourlyPrice{
			{Pool: "planned", Resource: "nvidia.com/gpu", From: "2026-01-01", Own: "1"}, {Pool: "h101", Resource: "nvidia.com/gpu", From: "2026-01-01", Own: "1"},
			{Pool: "ml.g5.2xlarge", Resource: "aws.amazon.com/neuron", From: "2026-01-01", Own: "1"},
		}},
		Alerts: &v1alpha1.Alerts{Receivers: []v1alpha1.AlertReceiver{{Name: "ops", SecretName: "ops"}, {Name: "vision", SecretName: "smtp", Team: "visoin"}, {Name: "speech", SecretName: "ops", Department: "reserch"}, {Name: "known", SecretName: "ops", Department: "research"}}},
	}
	for name, tc := range map[string]struct {
		secrets []string
		want    []string
	}{
		"all":                 {[]string{"ops"}, []string{"spec.prices.hourly[1].pool", "spec.prices.hourly[2].resource", "spec.alerts.receivers[1].secretName", "spec.alerts.receivers[1].team", "spec.alerts.receivers[2].department"}},
		"no Secret":           {[]string{}, []string{"spec.prices.hourly[1].pool", "spec.prices.hourly[2].resource", "spec.alerts.receivers[0].secretName", "spec.alerts.receivers[1].secretName", "spec.alerts.receivers[1].team", "spec.alerts.receivers[2].secretName", "spec.alerts.receivers[2].department", "spec.alerts.receivers[3].secretName"}},
		"Secrets are unknown": {nil, []string{"spec.prices.hourly[1].pool", "spec.prices.hourly[2].resource", "spec.alerts.receivers[1].team", "spec.alerts.receivers[2].department"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			state := lab(nil)
			state.departments = []string{"research"}
			for _, w := range Warnings(spec, state, tc.secrets) {
				got = append(got, w.Path)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
