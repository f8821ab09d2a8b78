package handlerstest

import (
	"context"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/policy"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// PolicyBackend is the domain of the cluster policy in memory.
type PolicyBackend struct {
	Policy       *v1alpha1.ClusterPolicy
	Tasks        map[string]int
	NoMutation   bool // whether the API server has no mutating admission policies
	Reader       bool // whether the reader may not change anything
	StateError   error
	WriteError   error // what a review or a save answers, if anything
	ReviewResult policy.Review
	Reviewed     []v1alpha1.ClusterPolicy
	Saved        []v1alpha1.ClusterPolicy
	TriedAgain   int
	Secrets      []string
}

func (d *PolicyBackend) SecretNames(context.Context, governance.User) ([]string, error) {
	return d.Secrets, nil
}

func (d *PolicyBackend) TryAgain(context.Context, governance.User) error {
	if d.WriteError == nil {
		d.TriedAgain++
	}
	return d.WriteError
}

func (d *PolicyBackend) State(context.Context, governance.User) (policy.State, error) {
	return policy.State{Policy: d.Policy, MayEdit: !d.Reader, NoMutation: d.NoMutation}, d.StateError
}

func (d *PolicyBackend) CountTasks(_ context.Context, state *policy.State) error {
	state.Tasks = d.Tasks
	return nil
}

func (d *PolicyBackend) Nodes(_ context.Context, pools []v1alpha1.Pool) ([]int64, error) {
	nodes := make([]int64, len(pools))
	for i, pool := range pools {
		if pool.Match.Accelerator == "H100" {
			nodes[i] = 2
		}
	}
	return nodes, nil
}

func (d *PolicyBackend) check(p *v1alpha1.ClusterPolicy) error {
	version := ""
	if d.Policy != nil {
		version = d.Policy.ResourceVersion
	}
	if d.WriteError == nil && p.ResourceVersion != version {
		return &governance.Error{Kind: governance.Conflict, Message: "Another user changed it."}
	}
	return d.WriteError
}

func (d *PolicyBackend) Review(_ context.Context, _ governance.User, p *v1alpha1.ClusterPolicy) (policy.Review, error) {
	d.Reviewed = append(d.Reviewed, *p.DeepCopy())
	return d.ReviewResult, d.check(p)
}

func (d *PolicyBackend) Save(_ context.Context, _ governance.User, p *v1alpha1.ClusterPolicy) error {
	if err := d.check(p); err != nil {
		return err
	}
	d.Saved = append(d.Saved, *p.DeepCopy())
	return nil
}

const (
	PolicyURL = "/policies/cluster/edit"
	PoolsURL  = "/instances/pools"
	PricesURL = "/usage/prices"
	AlertsURL = "/alerts/rules"
)

// RankedPolicy is a policy as a user left it, with things that no form shows.
func RankedPolicy() *v1alpha1.ClusterPolicy {
	return &v1alpha1.ClusterPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "default", ResourceVersion: "7", Generation: 3, UID: "u", Labels: map[string]string{"by": "gitops"}, Annotations: map[string]string{"note": "kept"}},
		Spec: v1alpha1.ClusterPolicySpec{
			TaskPrioritization: v1alpha1.TaskRanking,
			NumericPriorities:  true,
			PriorityClasses: []v1alpha1.PriorityClass{
				{Name: "training", Weight: new(int32(60))},
				{Name: "inference", Weight: new(int32(90)), Description: "Serves users", DefaultTimeLimitSeconds: new(int32(5400)), MaximumTimeLimitSeconds: new(int32(7200))},
			},
			IdleCompute: v1alpha1.IdleCompute{Strategy: v1alpha1.IdleFairShare, ShareUnallocated: true},
			GangScheduling: v1alpha1.GangScheduling{
				Enabled: true, BlockAdmission: true,
				Timeout: &metav1.Duration{Duration: 90 * time.Minute}, RecoveryTimeout: &metav1.Duration{},
				Requeuing: v1alpha1.Requeuing{Timestamp: "Creation", BackoffLimitCount: new(int32(3)), BackoffBaseSeconds: new(int32(30)), BackoffMaxSeconds: new(int32(600))},
			},
			AdmissionFairSharing: &v1alpha1.AdmissionFairSharing{
				UsageHalfLifeTime: &metav1.Duration{Duration: 12 * time.Hour}, UsageSamplingInterval: &metav1.Duration{Duration: time.Minute},
				ResourceWeights: map[string]v1alpha1.ResourceWeight{"nvidia.com/gpu": 7, "nvidia.com/mig-1g.10gb": 1},
			},
			PreemptionLoops: v1alpha1.WarnOfLoops, Enforcement: v1alpha1.EnforcementNone,
			Alerts: &v1alpha1.Alerts{
				Rules:     []v1alpha1.AlertRule{{Rule: "quota-idle", Off: true}, {Rule: "task-waits", PriorityClass: "inference", After: &metav1.Duration{Duration: 10 * time.Minute}}},
				Receivers: []v1alpha1.AlertReceiver{{Name: "ops", Type: v1alpha1.SlackReceiver, SecretName: "alerts-ops"}, {Name: "vision", Type: v1alpha1.EmailReceiver, SecretName: "smtp", To: []string{"vision@example.com"}, Team: "vision", Severity: "warning", Notices: v1alpha1.AlsoNotices}},
			},
			Prices: &v1alpha1.Prices{Currency: "EUR", Hourly: []v1alpha1.HourlyPrice{
				{Pool: "h100", Resource: "nvidia.com/gpu", From: "2026-01-01", Own: "2.50", Borrowed: "1.25"}, {Pool: "h100", Resource: "nvidia.com/gpu", From: "2026-10-01T12:00:00Z", Own: "3"},
			}},
			Resources: []v1alpha1.ListedResource{
				{Name: "google.com/tpu", Label: "TPUs", Unit: v1alpha1.UnitCount, Accelerator: true}, {Name: "example.com/ram", Label: "GPU memory", Unit: v1alpha1.UnitBytes}, {Name: "example.com/license", Label: "licenses", Unit: v1alpha1.UnitCount},
			},
			OverAllocationLimits: []v1alpha1.OverAllocationLimit{{Pool: v1alpha1.AllPools, Percent: ptr.To[int32](20)}, {Pool: "h100", Percent: ptr.To[int32](0)}},
			Pools: []v1alpha1.Pool{
				{Name: "h100", Match: v1alpha1.PoolMatch{Accelerator: "H100"}},
				{Name: "g5", Match: v1alpha1.PoolMatch{InstanceFamily: "ml.g5"}},
				{Name: "cpu", Match: v1alpha1.PoolMatch{InstanceTypes: []string{"ml.c5.2xlarge", "ml.c5.4xlarge"}}},
				{Name: "rack", Match: v1alpha1.PoolMatch{NodeLabels: map[string]string{"zone": "a", "rack": "4"}}},
			},
		},
	}
}
