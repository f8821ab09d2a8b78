package handlerstest

import (
	"net/url"
	"time"

	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AllocationBackend is the part of the domain in memory that changes
// allocations.
type AllocationBackend struct {
	Pools           []v1alpha1.Pool // the policy's
	Policy          *v1alpha1.ClusterPolicy
	SavedPools      []v1alpha1.Pool // with the last save
	Reader          bool            // may change nothing
	ReviewResult    allocations.Review
	Reviewed        *v1alpha1.ComputeAllocation
	WriteError      error // what changing and looking ahead answer, if anything
	DepartureResult allocations.DeletionPreview
	Updated         []v1alpha1.ComputeAllocation
	Deletions       []string // teams, with how
}

// FullAllocation is an allocation with a value for all that there is.
func FullAllocation() v1alpha1.ComputeAllocation {
	memory, cpu := resource.MustParse("1000Mi"), resource.MustParse("1500m")
	return v1alpha1.ComputeAllocation{
		ObjectMeta: metav1.ObjectMeta{Name: "vision", ResourceVersion: "7", Generation: 3, Annotations: map[string]string{"kuota.dev/changed-by": "grace@example.com"}},
		Spec: v1alpha1.ComputeAllocationSpec{
			DisplayName: "Vision", Description: "All that <sees>", Activation: v1alpha1.Active, Namespace: "research",
			Members:         []v1alpha1.Member{{Kind: "Group", Name: "vision-team"}, {Kind: "User", Name: "oidc:ada@example.com"}},
			FairShareWeight: 30,
			Quota: []v1alpha1.QuotaRow{
				{InstanceType: "ml.g6.12xlarge", Quantities: v1alpha1.Quantities{Accelerators: new(int64(2)), VCPU: &cpu, Memory: &memory}},
				{Pool: "h100", Quantities: v1alpha1.Quantities{Accelerators: new(int64(4))}},
				{InstanceType: "ml.p4d.24xlarge", Quantities: v1alpha1.Quantities{Partition: &v1alpha1.Partition{Profile: "mig-1g.5gb", Count: 7}}},
				{InstanceType: "ml.c5.2xlarge", Quantities: v1alpha1.Quantities{Instances: new(int64(3)), Resources: []v1alpha1.ResourceQuantity{
					{Name: "ephemeral-storage", Quantity: resource.MustParse("1536Gi")}, {Name: "example.com/license", Quantity: resource.MustParse("4")},
				}}},
			},
			Sharing: v1alpha1.Sharing{
				Strategy: v1alpha1.LendAndBorrow, BorrowLimitPercent: new(int32(25)),
				BorrowLimits: []v1alpha1.QuotaRow{{InstanceType: "ml.g5.2xlarge", Quantities: v1alpha1.Quantities{Accelerators: new(int64(1))}}},
			},
			Preemption: v1alpha1.Preemption{WithinTeam: v1alpha1.PreemptNever}, NamespaceCeiling: true, DefaultQueue: true,
			Shares: []v1alpha1.Share{
				{Name: "research", Weight: 15, Members: []v1alpha1.Member{{Kind: "Group", Name: "research"}, {Kind: "User", Name: "oidc:ada@example.com"}}},
				{Name: "nightly", Weight: 3},
			},
			Windows: []v1alpha1.Window{
				{
					Name: "nights", Days: []v1alpha1.Weekday{"Monday", "Tuesday", "Wednesday", "Friday"}, From: "22:00", To: "06:00", TimeZone: "Europe/Berlin", Notice: &metav1.Duration{Duration: 90 * time.Minute},
					Quota: []v1alpha1.WindowQuota{
						{InstanceType: "ml.g6.12xlarge", Accelerators: new(int64(8))}, {InstanceType: "ml.c5.2xlarge", Instances: new(int64(2))},
						{InstanceType: "ml.p4d.24xlarge", Partition: &v1alpha1.Partition{Profile: "mig-1g.5gb", Count: 14}},
					},
					Sharing: &v1alpha1.WindowSharing{Strategy: v1alpha1.LendAndBorrow, BorrowLimitPercent: new(int32(40))},
				},
				{Name: "upkeep", From: "2030-12-07T08:00", To: "2030-12-07T18:00", Activation: v1alpha1.Drain, Sharing: &v1alpha1.WindowSharing{Strategy: v1alpha1.DontLend}},
			},
			Budget: &v1alpha1.Budget{Money: "1250.50", Period: v1alpha1.BudgetQuarter, TimeZone: "Asia/Tokyo", Steps: []v1alpha1.BudgetStep{{Percent: 80, Action: v1alpha1.BudgetNotify}, {Percent: 100, Action: v1alpha1.BudgetDrain}}},
		},
	}
}

func WithAllocations(all ...v1alpha1.ComputeAllocation) *Backend {
	d := &Backend{Allocations: all}
	d.Pools = []v1alpha1.Pool{{Name: "h100", Match: v1alpha1.PoolMatch{Accelerator: "H100"}}}
	return d
}

const EditURL = "/policies/allocations/vision/edit"

func AllocationForm(pairs ...string) url.Values {
	values := url.Values{
		"action": {"save"}, "request-id": {"r"}, "team": {"vision"}, "weight": {"10"}, "strategy": {"LendAndBorrow"},
		"borrow-percent": {"50"}, "preemption": {"Never"}, "row-0-type": {"ml.g6.12xlarge"}, "row-0-accelerators": {"2"},
	}
	for i := 0; i < len(pairs); i += 2 {
		values.Set(pairs[i], pairs[i+1])
	}
	return values
}

const NewURL = "/policies/allocations/new"
