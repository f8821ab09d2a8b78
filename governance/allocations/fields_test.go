package allocations

import (
	"net/http"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/rejection"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// statusError returns an error of the API server.
func statusError(code int32, reason metav1.StatusReason, message string, causes ...metav1.StatusCause) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message, Details: &metav1.StatusDetails{Causes: causes}}}
}

const denial = `admission webhook "vclusterqueue.kb.io" denied the request: `

// Rejections, in the texts of Kueue 0.19 and the API server 1.36, are mapped to
// fields of an allocation with quota of g5 and of pool h100, and a borrowing limit
// for p4d alone.
func TestRejectionsMapToFields(t *testing.T) {
	n := int64(1)
	spec := v1alpha1.ComputeAllocationSpec{
		Quota: []v1alpha1.QuotaRow{
			{InstanceType: "ml.g5.2xlarge", Quantities: v1alpha1.Quantities{Accelerators: &n}},
			{Pool: "h100", Quantities: v1alpha1.Quantities{Accelerators: &n}},
		},
		Sharing: v1alpha1.Sharing{BorrowLimits: []v1alpha1.QuotaRow{{InstanceType: "ml.p4d.24xlarge", Quantities: v1alpha1.Quantities{Accelerators: &n}}}},
	}
	types := catalog.New(catalog.Input{Pools: []v1alpha1.Pool{{Name: "h100", Match: v1alpha1.PoolMatch{Accelerator: "H100"}}}})
	resolved, errs := quota.Resolve(&spec, types)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	form := newFieldMap(&spec, resolved, types)
	forbidden := func(text string) error { return statusError(http.StatusForbidden, metav1.StatusReasonForbidden, text) }

	for name, tc := range map[string]struct {
		err  error
		want []governance.FieldError
	}{
		"one amount": {
			forbidden(denial + `spec.resourceGroups[0].flavors[0].resources[0].nominalQuota: Invalid value: "-1": must be greater than or equal to 0`),
			[]governance.FieldError{{Path: "spec.quota[0].accelerators", Message: "must be greater than or equal to 0"}},
		},
		"several amounts, one reason with a comma": {
			forbidden(denial + `[spec.resourceGroups[0].flavors[1].resources[2].nominalQuota: Invalid value: "1": is too much, or too little, spec.resourceGroups[0].flavors[1].resources[3].lendingLimit: Invalid value: "1": must be nil when cohort is empty]`),
			[]governance.FieldError{{Path: "spec.quota[1].vCPU", Message: "is too much, or too little"}, {Path: "spec.sharing.strategy", Message: "must be nil when cohort is empty"}},
		},
		"a borrowing limit by percentage": {
			forbidden(denial + `spec.resourceGroups[0].flavors[0].resources[3].borrowingLimit: Invalid value: "1": is odd`),
			[]governance.FieldError{{Path: "spec.sharing.borrowLimitPercent", Message: "is odd"}},
		},
		"an absolute borrowing limit": {
			forbidden(denial + `spec.resourceGroups[0].flavors[2].resources[3].borrowingLimit: Invalid value: "1": is odd`),
			[]governance.FieldError{{Path: "spec.sharing.borrowLimits[0].memory", Message: "is odd"}},
		},
		"an amount that was filled in": {
			forbidden(denial + `spec.resourceGroups[0].flavors[1].resources[4].nominalQuota: Invalid value: "1": is odd`),
			[]governance.FieldError{{Path: "spec.quota[1]", Message: "is odd"}},
		},
		"a flavor": {
			forbidden(denial + `spec.resourceGroups[0].flavors[1].name: Not found: "h100"`),
			[]governance.FieldError{{Path: "spec.quota[1]", Message: `Not found: "h100"`}},
		},
		"another setting": {
			forbidden(denial + `spec.fairSharing.weight: Invalid value: "1": is odd`),
			[]governance.FieldError{{Path: "spec.fairShareWeight", Message: "is odd"}},
		},
		"the schema": {
			statusError(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "ClusterQueue is invalid",
				metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: "spec.resourceGroups[0].flavors[0].resources[2].nominalQuota", Message: `Invalid value: "x": is no quantity`},
				metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: "<nil>", Message: `Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation`}),
			[]governance.FieldError{{Path: "spec.quota[0].vCPU", Message: "is no quantity"}},
		},
		"an admission policy": {
			statusError(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid,
				`clusterqueues.kueue.x-k8s.io "x" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: teams of h100 need a sponsor`),
			[]governance.FieldError{{Path: "spec.quota[1]", Message: "teams of h100 need a sponsor"}},
		},
		"a text about two pools": {
			forbidden(denial + "h100 and ml.g5.2xlarge do not go together"),
			[]governance.FieldError{{Path: "", Message: "h100 and ml.g5.2xlarge do not go together"}},
		},
		"a text with a pool's name within another word": {
			forbidden(denial + "node-h100-a is full"),
			[]governance.FieldError{{Path: "", Message: "node-h100-a is full"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			rejected, ok := rejection.Fields(tc.err)
			if !ok {
				t.Fatalf("got no rejection from %v", tc.err)
			}
			var got []governance.FieldError
			for _, fieldErr := range rejected {
				got = append(got, form.of("ClusterQueue", "x", fieldErr))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Reclaimable pods use no quota.
func TestUsageWithoutReclaimablePods(t *testing.T) {
	if got := admittedTaskOf(workload("a", 4, 0), true).usage; got[catalog.GPU] != 8 {
		t.Errorf("four pods of two GPUs use %v, want 8 GPUs", got)
	}
	if got := admittedTaskOf(workload("a", 4, 3), true).usage; got[catalog.GPU] != 2 {
		t.Errorf("one remaining pod of two GPUs uses %v, want 2 GPUs", got)
	}
}

func workload(name string, pods, ended int32) *kueue.Workload {
	w := &kueue.Workload{}
	w.Name = name
	w.Status.Admission = &kueue.Admission{PodSetAssignments: []kueue.PodSetAssignment{{
		Name: "main", Count: &pods,
		Flavors:       map[corev1.ResourceName]kueue.ResourceFlavorReference{catalog.GPU: "g5"},
		ResourceUsage: corev1.ResourceList{catalog.GPU: *resource.NewQuantity(2*int64(pods), resource.DecimalSI)},
	}}}
	if ended > 0 {
		w.Status.ReclaimablePods = []kueue.ReclaimablePod{{Name: "main", Count: ended}}
	}
	return w
}
