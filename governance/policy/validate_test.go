package policy

import (
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/catalog"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func weight(n int32) *int32 { return &n }

func class(name string, n int32) v1alpha1.PriorityClass {
	return v1alpha1.PriorityClass{Name: name, Weight: &n}
}

func accelerator(name, model string) v1alpha1.Pool {
	return v1alpha1.Pool{Name: name, Match: v1alpha1.PoolMatch{Accelerator: model}}
}

// lab is a cluster of one p5, one p5e and one g5 node, with pools in force.
func lab(inForce []v1alpha1.Pool, teams ...v1alpha1.ComputeAllocation) State {
	state := State{label: catalog.InstanceTypeLabel, teams: teams, Policy: &v1alpha1.ClusterPolicy{}}
	for _, instanceType := range []string{"ml.p5.48xlarge", "ml.p5e.48xlarge", "ml.g5.2xlarge"} {
		state.nodes = append(state.nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{catalog.InstanceTypeLabel: instanceType, "zone": "a"}}})
	}
	state.Policy.Spec.Pools, state.Policy.Status.Pools = inForce, inForce
	state.Types = state.catalog(inForce)
	return state
}

func team(name string, rows ...v1alpha1.QuotaRow) v1alpha1.ComputeAllocation {
	n := int64(1)
	for i := range rows {
		rows[i].Accelerators = &n
	}
	return v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ComputeAllocationSpec{Quota: rows}}
}

// applied is a team whose queue has quota in these pools.
func applied(team v1alpha1.ComputeAllocation, pools ...string) v1alpha1.ComputeAllocation {
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
		want map[string]string // a part of the sentence by path
	}{
		"nothing":        {v1alpha1.ClusterPolicySpec{}, nil},
		"eleven classes": {v1alpha1.ClusterPolicySpec{PriorityClasses: eleven}, map[string]string{"spec.priorityClasses": "at most 10"}},
		"classes of one object": {
			v1alpha1.ClusterPolicySpec{PriorityClasses: []v1alpha1.PriorityClass{class("dev", 1), class("dev-priority", 2)}},
			map[string]string{"spec.priorityClasses[1].name": "dev and dev-priority would both be the object"},
		},
		"a class twice": {
			v1alpha1.ClusterPolicySpec{PriorityClasses: []v1alpha1.PriorityClass{class("dev", 1), class("dev", 2)}},
			map[string]string{"spec.priorityClasses[1].name": "twice"},
		},
		"bad classes": {
			v1alpha1.ClusterPolicySpec{PriorityClasses: []v1alpha1.PriorityClass{class("Dev", 101), {Name: ""}, class(strings.Repeat("a", 41), -1)}},
			map[string]string{
				"spec.priorityClasses[0].name": "lower-case", "spec.priorityClasses[0].weight": "from 0",
				"spec.priorityClasses[1].name": "enter a name", "spec.priorityClasses[1].weight": "enter a weight",
				"spec.priorityClasses[2].name": "41 characters", "spec.priorityClasses[2].weight": "from 0",
			},
		},
		"words that are none": {
			v1alpha1.ClusterPolicySpec{TaskPrioritization: "Best", Enforcement: "Some", IdleCompute: v1alpha1.IdleCompute{Strategy: "Mine"}},
			map[string]string{"spec.taskPrioritization": "TaskRanking", "spec.enforcement": "RequireQueue", "spec.idleCompute.strategy": "FairShare"},
		},
		"gang times": {
			v1alpha1.ClusterPolicySpec{GangScheduling: v1alpha1.GangScheduling{
				Timeout: seconds(0), RecoveryTimeout: seconds(-1),
				Requeuing: v1alpha1.Requeuing{Timestamp: "Now", BackoffLimitCount: weight(-1), BackoffBaseSeconds: weight(7200)},
			}},
			map[string]string{
				"spec.gangScheduling.timeout": "longer than 0s", "spec.gangScheduling.recoveryTimeout": "0s or longer",
				"spec.gangScheduling.requeuing.timestamp": "Eviction", "spec.gangScheduling.requeuing.backoffLimitCount": "from 0",
				"spec.gangScheduling.requeuing.backoffMaxSeconds": "at least the base backoff, 7200",
			},
		},
		"for ever to recover": {v1alpha1.ClusterPolicySpec{GangScheduling: v1alpha1.GangScheduling{RecoveryTimeout: seconds(0)}}, nil},
		"pools that cannot be": {
			v1alpha1.ClusterPolicySpec{Pools: []v1alpha1.Pool{
				accelerator("ml.g5.2xlarge", "A10G"), accelerator("h100", ""), accelerator("a", "H100"), accelerator("a", "H200"),
				{Name: "b", Match: v1alpha1.PoolMatch{Accelerator: "A100", InstanceFamily: "ml.p4d"}},
				{Name: "c", Match: v1alpha1.PoolMatch{InstanceTypes: []string{"x", "", "x"}}},
				{Name: "d", Match: v1alpha1.PoolMatch{NodeLabels: map[string]string{"bad key": "x"}}},
			}},
			map[string]string{
				"spec.pools[0].name": "is an instance type", "spec.pools[1].match": "exactly one", "spec.pools[3].name": "twice",
				"spec.pools[4].match": "exactly one", "spec.pools[5].match.instanceTypes": "empty", "spec.pools[6].match.nodeLabels": "bad key=x",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			wrong := Validate(&v1alpha1.ClusterPolicy{Spec: tc.spec}, lab(nil))
			got := map[string]bool{}
			for _, w := range wrong {
				if !got[w.Path] && !strings.Contains(w.Message, tc.want[w.Path]) || tc.want[w.Path] == "" {
					t.Errorf("%s: %q, want %q", w.Path, w.Message, tc.want[w.Path])
				}
				got[w.Path] = true
			}
			for path := range tc.want {
				if !got[path] {
					t.Errorf("%s is not wrong: %v", path, wrong)
				}
			}
		})
	}
}

// A pool is not taken from under a team's quota, and the team is named.
func TestPoolsUnderQuota(t *testing.T) {
	byType := func(name string) v1alpha1.QuotaRow { return v1alpha1.QuotaRow{InstanceType: name} }
	byPool := func(name string) v1alpha1.QuotaRow { return v1alpha1.QuotaRow{Pool: name} }
	h100 := accelerator("h100", "H100")
	for name, tc := range map[string]struct {
		inForce, proposed []v1alpha1.Pool
		teams             []v1alpha1.ComputeAllocation
		want              []governance.FieldError
	}{
		"a pool that nobody has quota in goes": {
			[]v1alpha1.Pool{h100}, nil, []v1alpha1.ComputeAllocation{team("vision", byType("ml.g5.2xlarge"))}, nil,
		},
		"a pool goes": {
			[]v1alpha1.Pool{h100}, nil, []v1alpha1.ComputeAllocation{team("speech", byPool("h100")), team("vision", byPool("h100"), byType("ml.g5.2xlarge"))},
			[]governance.FieldError{{Path: "spec.pools", Message: "teams speech and vision have quota in pool h100: move it first"}},
		},
		"a pool that holds a type of a row goes": {
			[]v1alpha1.Pool{h100}, nil, []v1alpha1.ComputeAllocation{team("vision", byType("ml.p5.48xlarge"))},
			[]governance.FieldError{{Path: "spec.pools", Message: "team vision has quota in pool h100: move it first"}},
		},
		"a pool is called otherwise": {
			[]v1alpha1.Pool{h100}, []v1alpha1.Pool{accelerator("hopper", "H100")}, []v1alpha1.ComputeAllocation{team("vision", byPool("h100"))},
			[]governance.FieldError{{Path: "spec.pools", Message: "team vision has quota in pool h100: move it first"}},
		},
		"a new pool takes a type": {
			nil, []v1alpha1.Pool{accelerator("h200", "H200"), h100}, []v1alpha1.ComputeAllocation{team("vision", byType("ml.g5.2xlarge"), byType("ml.p5.48xlarge"))},
			[]governance.FieldError{{Path: "spec.pools[1].match", Message: "team vision has quota in pool ml.p5.48xlarge: move it first"}},
		},
		"a pool grows": {
			[]v1alpha1.Pool{h100}, []v1alpha1.Pool{{Name: "h100", Match: v1alpha1.PoolMatch{InstanceTypes: []string{"ml.p5.48xlarge", "ml.p5e.48xlarge"}}}},
			[]v1alpha1.ComputeAllocation{team("vision", byPool("h100"))}, nil,
		},
		"a pool no longer has what a row names": {
			[]v1alpha1.Pool{h100}, []v1alpha1.Pool{accelerator("h100", "A10G")}, []v1alpha1.ComputeAllocation{team("vision", byType("ml.p5.48xlarge"))},
			[]governance.FieldError{{Path: "spec.pools[0].match", Message: "team vision has quota in pool h100: move it first"}},
		},
		"a pool goes that a team still has by what was applied": {
			[]v1alpha1.Pool{h100}, nil, []v1alpha1.ComputeAllocation{applied(team("vision", byType("gone")), "h100", "ml.g5.2xlarge")},
			[]governance.FieldError{{Path: "spec.pools", Message: "team vision has quota in pool h100: move it first"}},
		},
		"a pool is called otherwise that teams have, one of them by what was applied": {
			[]v1alpha1.Pool{h100}, []v1alpha1.Pool{accelerator("hopper", "H100")},
			[]v1alpha1.ComputeAllocation{team("speech", byPool("h100")), applied(team("vision", byType("gone")), "h100")},
			[]governance.FieldError{{Path: "spec.pools", Message: "teams speech and vision have quota in pool h100: move it first"}},
		},
		"a pool stays that a team has by what was applied": {
			[]v1alpha1.Pool{h100}, []v1alpha1.Pool{h100, accelerator("h200", "H200")},
			[]v1alpha1.ComputeAllocation{applied(team("vision", byType("gone")), "h100", "ml.g5.2xlarge", "lost before")}, nil,
		},
		"a team that has none loses none": {
			nil, []v1alpha1.Pool{h100}, []v1alpha1.ComputeAllocation{team("vision", byPool("h200"))}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			policy := &v1alpha1.ClusterPolicy{Spec: v1alpha1.ClusterPolicySpec{Pools: tc.proposed}}
			if diff := cmp.Diff(tc.want, Validate(policy, lab(tc.inForce, tc.teams...))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestClassChanges(t *testing.T) {
	before := []v1alpha1.PriorityClass{class("a", 1), class("b", 2), class("gone", 3)}
	after := []v1alpha1.PriorityClass{class("new", 4), class("b", 5), class("a", 1)}
	want := []ClassChange{
		{Name: "new", After: weight(4)},
		{Name: "b", Before: weight(2), After: weight(5), Tasks: 7},
		{Name: "gone", Before: weight(3), Tasks: 1},
	}
	got := classChanges(before, after, map[string]int{"b": 7, "gone": 1, "": 3})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got[0].InUse() || got[1].InUse() || !got[2].InUse() {
		t.Error("only a class that goes while tasks name it is dropped")
	}
}

// What is wrong with pools that are added has the paths of those pools.
func TestAddedPools(t *testing.T) {
	state := lab([]v1alpha1.Pool{accelerator("h100", "H100")})
	pools := []v1alpha1.Pool{accelerator("h100", "H100"), accelerator("ml.g5.2xlarge", "A10G")}
	got := added(Validate(withPools(state.Policy, pools), state), state.Policy, pools)
	if len(got) != 1 || got[0].Path != "spec.pools[1].name" {
		t.Errorf("%+v", got)
	}
	other := []v1alpha1.Pool{accelerator("h100", "H200")}
	got = added(Validate(withPools(state.Policy, other), state), state.Policy, other)
	if len(got) != 1 || got[0].Path != "spec.pools[0].name" {
		t.Errorf("a pool of that name is there, and matches otherwise: %+v", got)
	}
}
