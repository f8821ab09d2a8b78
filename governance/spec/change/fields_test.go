package change_test

import (
	"testing"

	"kuota.dev/kuota/governance/spec/change"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	kueueapi "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	kueue "sigs.k8s.io/kueue/client-go/applyconfiguration/kueue/v1beta2"
)

func TestApplied(t *testing.T) {
	live := &kueueapi.ClusterQueue{}
	live.Spec.CohortName = "labs"
	live.Spec.QueueingStrategy = kueueapi.StrictFIFO
	live.Spec.ResourceGroups = []kueueapi.ResourceGroup{{CoveredResources: []corev1.ResourceName{"cpu"}, Flavors: []kueueapi.FlavorQuotas{{Name: "any", Resources: []kueueapi.ResourceQuota{
		{Name: "cpu", NominalQuota: resource.MustParse("1000m"), BorrowingLimit: ptr.To(resource.MustParse("2"))},
	}}}}}
	want := func(amount *kueue.ResourceQuotaApplyConfiguration) *kueue.ClusterQueueApplyConfiguration {
		return kueue.ClusterQueue("a").WithLabels(map[string]string{"a": "b"}).WithSpec(kueue.ClusterQueueSpec().WithCohortName("labs").
			WithResourceGroups(kueue.ResourceGroup().WithCoveredResources("cpu").WithFlavors(kueue.FlavorQuotas().WithName("any").WithResources(amount.WithName("cpu")))))
	}
	one, two := resource.MustParse("1"), resource.MustParse("2")
	another := want(kueue.ResourceQuota().WithNominalQuota(one).WithBorrowingLimit(two))
	another.Spec.WithCohortName("other").WithQueueingStrategy(kueueapi.BestEffortFIFO)
	noCohort := want(kueue.ResourceQuota().WithNominalQuota(one).WithBorrowingLimit(two))
	noCohort.Spec.CohortName = nil
	weighted, threshold := live.DeepCopy(), live.DeepCopy()
	weighted.Spec.FairSharing = &kueueapi.FairSharing{Weight: ptr.To(two)}
	threshold.Spec.Preemption = &kueueapi.ClusterQueuePreemption{BorrowWithinCohort: &kueueapi.BorrowWithinCohort{MaxPriorityThreshold: ptr.To[int32](5)}}
	equal := want(kueue.ResourceQuota().WithNominalQuota(one).WithBorrowingLimit(two))
	for name, c := range map[string]struct {
		live    *kueueapi.ClusterQueue
		want    *kueue.ClusterQueueApplyConfiguration
		changed []change.Field
	}{
		"equal in another notation, and fields that stay": {live, equal, nil},
		"a cohort, and none":                              {live, noCohort, []change.Field{{Path: "cohortName", Before: "labs"}}},
		"a weight, and none":                              {weighted, equal, []change.Field{{Path: "fairSharing.weight", Before: "2"}}},
		"a threshold":                                     {threshold, equal, []change.Field{{Path: "preemption.borrowWithinCohort.maxPriorityThreshold", Before: "5"}}},
		"another quantity":                                {live, want(kueue.ResourceQuota().WithNominalQuota(two).WithBorrowingLimit(two)), []change.Field{{Path: "any · cpu · nominalQuota", Before: "1", After: "2"}}},
		"a field that a list would lose":                  {live, want(kueue.ResourceQuota().WithNominalQuota(one)), []change.Field{{Path: "any · cpu · borrowingLimit", Before: "2"}}},
		"other fields":                                    {live, another, []change.Field{{Path: "cohortName", Before: "labs", After: "other"}, {Path: "queueingStrategy", Before: "StrictFIFO", After: "BestEffortFIFO"}}},
		"quota that want does not contain": {live, kueue.ClusterQueue("a").WithSpec(kueue.ClusterQueueSpec().WithCohortName("labs")), []change.Field{
			{Path: "any · cpu · borrowingLimit", Before: "2"}, {Path: "any · cpu · nominalQuota", Before: "1"}, {Path: "any · resources", Before: "cpu"},
			{Path: "resourceGroups.coveredResources", Before: "cpu"}, {Path: "resourceGroups.flavors", Before: "any"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := change.Applied(c.live, c.want)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.changed, got); diff != "" && len(c.changed)+len(got) > 0 {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}
