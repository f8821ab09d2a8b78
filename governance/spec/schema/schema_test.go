package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/spec/schema"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func allocation(change func(*v1alpha1.ComputeAllocationSpec)) *v1alpha1.ComputeAllocation {
	gpus := int64(1)
	a := &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: "vision"}}
	a.Spec.Quota = []v1alpha1.QuotaRow{{InstanceType: "ml.g5.xlarge", Quantities: v1alpha1.Quantities{Accelerators: &gpus}}}
	change(&a.Spec)
	return a
}

// Each kind of bound has a sentence and the path of its field.
func TestValidate(t *testing.T) {
	of := func(s string) *resource.Quantity { q := resource.MustParse(s); return &q }
	for name, tc := range map[string]struct {
		change func(*v1alpha1.ComputeAllocationSpec)
		want   governance.FieldErrors
	}{
		"valid":             {func(*v1alpha1.ComputeAllocationSpec) {}, nil},
		"a number":          {func(s *v1alpha1.ComputeAllocationSpec) { s.FairShareWeight = 101 }, governance.FieldErrors{{Path: "spec.fairShareWeight", Message: "must be a whole number from 0 to 100"}}},
		"a word":            {func(s *v1alpha1.ComputeAllocationSpec) { s.Activation = "Off" }, governance.FieldErrors{{Path: "spec.activation", Message: `is "Off"; it must be Active, Hold or Drain`}}},
		"a long text":       {func(s *v1alpha1.ComputeAllocationSpec) { s.Description = strings.Repeat("é", 1025) }, governance.FieldErrors{{Path: "spec.description", Message: "has more than 1,024 characters"}}},
		"no text":           {func(s *v1alpha1.ComputeAllocationSpec) { s.Description = "a\xff" }, governance.FieldErrors{{Path: "spec.description", Message: "is not UTF-8 text"}}},
		"a pattern":         {func(s *v1alpha1.ComputeAllocationSpec) { s.Quota[0].Memory = of("10000001Gi") }, governance.FieldErrors{{Path: "spec.quota[0].memory", Message: "must be from 0 to 10,000,000 GiB with fewer decimals"}}},
		"a rule":            {func(s *v1alpha1.ComputeAllocationSpec) { s.Namespace = "kube-system" }, governance.FieldErrors{{Path: "spec.namespace", Message: "that namespace is reserved for the cluster; choose another"}}},
		"a rule of several": {func(s *v1alpha1.ComputeAllocationSpec) { s.NamespaceCeiling, s.Sharing.Unlimited = true, true }, governance.FieldErrors{{Path: "spec.namespaceCeiling", Message: "a namespace ceiling needs a borrow limit: give one, or leave the ceiling out"}}},
		"a missing value":   {func(s *v1alpha1.ComputeAllocationSpec) { s.Members = []v1alpha1.Member{{Kind: "User"}} }, governance.FieldErrors{{Path: "spec.members[0].name", Message: "is empty"}}},
		"a name twice": {func(s *v1alpha1.ComputeAllocationSpec) {
			s.Shares = []v1alpha1.Share{{Name: "a", Weight: 1}, {Name: "a", Weight: 1}}
		}, governance.FieldErrors{{Path: "spec.shares[1].name", Message: "is listed twice; remove one"}}},
		"many": {func(s *v1alpha1.ComputeAllocationSpec) {
			for i := range 20 {
				s.Quota = append(s.Quota, v1alpha1.QuotaRow{InstanceType: fmt.Sprint(i), Quantities: s.Quota[0].Quantities})
			}
		}, governance.FieldErrors{{Path: "spec.quota", Message: "has 21 entries; at most 15 are possible"}}},
		"a listed resource": {func(s *v1alpha1.ComputeAllocationSpec) {
			s.Quota[0].Resources = []v1alpha1.ResourceQuantity{{Name: "example.com/license", Quantity: *of("4")}, {Name: "ephemeral-storage", Quantity: *of("1.5Ti")}}
		}, nil},
		"a resource without a name": {func(s *v1alpha1.ComputeAllocationSpec) {
			s.Quota[0].Resources = []v1alpha1.ResourceQuantity{{Name: "Example/license", Quantity: *of("4")}, {Name: "cpu-credits", Quantity: *of("1e20")}}
		}, governance.FieldErrors{{Path: "spec.quota[0].resources[0].name", Message: "is no Kubernetes resource, such as example.com/license"}, {Path: "spec.quota[0].resources[1].quantity", Message: "must be a whole number from 0, or from 0 to 10,000,000 GiB with fewer decimals"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, schema.ComputeAllocation.Validate(allocation(tc.change), nil)); diff != "" {
				t.Error(diff)
			}
		})
	}
	named := allocation(func(*v1alpha1.ComputeAllocationSpec) {})
	named.Name = "new"
	if errs := schema.ComputeAllocation.Validate(named, nil); len(errs) != 1 || errs[0].Path != "metadata.name" || !strings.Contains(errs[0].Message, "reserved") {
		t.Errorf("a reserved name: %v", errs)
	}
}

// A value that was saved before its bound existed may stay, as on the API server, and what
// cannot change may not.
func TestValidateUpdate(t *testing.T) {
	saved := allocation(func(s *v1alpha1.ComputeAllocationSpec) { s.FairShareWeight, s.Namespace = 200, "research" })
	same := saved.DeepCopy()
	same.Spec.Description = "new"
	if errs := schema.ComputeAllocation.Validate(same, saved); len(errs) > 0 {
		t.Errorf("unchanged: %v", errs)
	}
	same.Spec.FairShareWeight, same.Spec.Namespace = 201, "vision"
	if errs := schema.ComputeAllocation.Validate(same, saved); len(errs) != 2 || errs[0].Path != "spec.fairShareWeight" || errs[1].Path != "spec.namespace" {
		t.Errorf("changed: %v", errs)
	}
}

// Invalid values are left out, and no more than that; what follows from them is left out
// too. A share that would lose a member is left out as a whole.
func TestPrune(t *testing.T) {
	spec := allocation(func(s *v1alpha1.ComputeAllocationSpec) {
		s.FairShareWeight, s.DisplayName = 101, "Vision"
		s.Members = []v1alpha1.Member{{Kind: "Robot", Name: "r"}, {Kind: "User", Name: "ada"}, {Kind: "User", Name: "system:admin"}}
		s.Shares = []v1alpha1.Share{{Name: "open", Weight: 1}, {Name: "closed", Weight: 1, Members: []v1alpha1.Member{{Kind: "User", Name: "system:admin"}}}}
		s.Sharing = v1alpha1.Sharing{Strategy: v1alpha1.DontLend, BorrowLimits: s.Quota}
		for i := range 20 {
			s.Quota = append(s.Quota, v1alpha1.QuotaRow{InstanceType: fmt.Sprint(i % 3), Quantities: s.Quota[0].Quantities})
		}
		s.Quota[2].Accelerators = nil
	}).Spec
	var removed []string
	for _, e := range schema.Prune(schema.ComputeAllocation, &spec) {
		removed = append(removed, e.Path)
	}
	if errs := schema.ComputeAllocation.Validate(&v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: "vision"}, Spec: spec}, nil); len(errs) > 0 {
		t.Errorf("what is left is invalid: %v", errs)
	}
	kept := fmt.Sprint(spec.DisplayName, len(spec.Members), spec.Members[0].Name, len(spec.Shares), spec.Shares[0].Name, spec.Sharing.Strategy, len(spec.Sharing.BorrowLimits), spec.FairShareWeight)
	if want := "Vision1ada1openDontLend00"; strings.ReplaceAll(kept, " ", "") != want {
		t.Errorf("kept %s, want %s", kept, want)
	}
	for _, path := range []string{"spec.fairShareWeight", "spec.members[0].kind", "spec.members[2].name", "spec.shares[1].members[0].name", "spec.sharing.borrowLimits", "spec.quota", "spec.quota[2]"} {
		if !strings.Contains(strings.Join(removed, " ")+" ", path+" ") {
			t.Errorf("%s is not among %v", path, removed)
		}
	}
	valid := allocation(func(*v1alpha1.ComputeAllocationSpec) {}).Spec
	before := valid.DeepCopy()
	if removed := schema.Prune(schema.ComputeAllocation, &valid); removed != nil || !cmp.Equal(*before, valid) {
		t.Errorf("a valid spec lost %v", removed)
	}
}

func BenchmarkValidate(b *testing.B) {
	a := allocation(func(s *v1alpha1.ComputeAllocationSpec) {
		for i := range 14 {
			s.Quota = append(s.Quota, v1alpha1.QuotaRow{InstanceType: fmt.Sprint(i), Quantities: s.Quota[0].Quantities})
		}
		for i := range v1alpha1.MaxMembers {
			s.Members = append(s.Members, v1alpha1.Member{Kind: "User", Name: fmt.Sprint("user-", i)})
		}
	})
	schema.ComputeAllocation.Validate(a, nil)
	for b.Loop() {
		schema.ComputeAllocation.Validate(a, a)
	}
}
