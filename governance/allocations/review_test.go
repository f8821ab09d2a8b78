package allocations_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/spec/change"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// changeOf returns the change of the object of this kind.
func changeOf(t *testing.T, review allocations.Review, kind string) change.Object {
	t.Helper()
	i := slices.IndexFunc(review.Objects, func(o change.Object) bool { return o.Kind == kind })
	if i < 0 {
		t.Fatalf("got no change of a %s in %+v", kind, review.Objects)
	}
	return review.Objects[i]
}

// reviewed returns a review that changed nothing. It repeats a review during which
// Kueue wrote a status.
func (w world) reviewed(t *testing.T, allocation *v1alpha1.ComputeAllocation) (review allocations.Review) {
	t.Helper()
	clustertest.Eventually(t, soon, func(ctx context.Context) (err error) {
		before := w.versions(t)
		if review, err = w.Review(ctx, w.admin, allocation, nil); err != nil {
			return err
		}
		if diff := cmp.Diff(before, w.versions(t)); diff != "" {
			return fmt.Errorf("objects changed during the review (-before +after):\n%s", diff)
		}
		return nil
	})
	return review
}

// A review of a change lists all its effects and changes nothing.
func TestReviewOfChange(t *testing.T) {
	w := setup(t)
	team := w.team(t, "review", gpus(2))
	w.runTask(t, team.Name, "first", 1)
	w.runTask(t, team.Name, "second", 1)
	one := team.DeepCopy()
	one.Spec = gpus(1)
	one.Spec.FairShareWeight = 10
	one.Spec.Members = []v1alpha1.Member{{Kind: "User", Name: "ada"}}
	review := w.reviewed(t, one)
	if len(review.Pools) != 1 || review.Pools[0].Before[catalog.GPU] != 2 || review.Pools[0].After[catalog.GPU] != 1 ||
		review.Pools[0].BorrowingLimitBefore[catalog.GPU] != 1 || review.Pools[0].BorrowingLimitAfter[catalog.GPU] != 0 {
		t.Errorf("pools: %+v", review.Pools)
	}
	if diff := cmp.Diff([]change.Field{{Path: "Member", After: "User ada"}, {Path: "Fair-share weight", Before: "0", After: "10"}}, review.Settings); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	queue := changeOf(t, review, "ClusterQueue")
	for _, want := range []change.Field{
		{Path: "ml.g5.2xlarge · nvidia.com/gpu · nominalQuota", Before: "2", After: "1"},
		{Path: "ml.g5.2xlarge · memory · nominalQuota", Before: "64Gi", After: "32Gi"},
		{Path: "fairSharing.weight", Before: "0", After: "10"},
	} {
		if !slices.Contains(queue.Fields, want) {
			t.Errorf("got fields %+v, want them to contain %+v", queue.Fields, want)
		}
	}
	if len(review.Objects) != 2 || queue.Action != change.Changed || changeOf(t, review, "RoleBinding").Action != change.Created {
		t.Errorf("objects: %+v", review.Objects)
	}
	i := slices.IndexFunc(review.Capacity, func(c allocations.CapacityChange) bool { return c.Resource == catalog.GPU })
	if c := review.Capacity[i]; c.After != c.Before-1 || c.Physical == 0 {
		t.Errorf("capacity: %+v", c)
	}

	drained := one.DeepCopy()
	drained.Spec.Activation = v1alpha1.Drain
	review = w.reviewed(t, drained)
	if len(review.Evicted) != 2 || !slices.Contains(review.Evicted, allocations.Task{Namespace: team.Status.Namespace, Kind: "Job", Name: "second"}) {
		t.Errorf("draining evicts %+v", review.Evicted)
	}

	same, err := w.Review(t.Context(), w.admin, &team, nil)
	must(t, err)
	if !same.Empty() {
		t.Errorf("review of an unchanged spec: got %+v, want it empty", same)
	}
}

// A review of a new team creates nothing, not even its namespace.
func TestReviewOfNewTeam(t *testing.T) {
	w := setup(t)
	w.team(t, "settle", gpus(1)) // wait until the controllers have reconciled everything
	team := &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: clustertest.Name("new")}, Spec: gpus(2)}
	review := w.reviewed(t, team)
	var created []string
	for _, object := range review.Objects {
		created = append(created, object.Action+" "+object.Kind)
	}
	if diff := cmp.Diff([]string{"created Namespace", "created ClusterQueue", "created LocalQueue", "created RoleBinding"}, created); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if len(review.Pools) != 1 || review.Pools[0].Before != nil || review.Pools[0].After[catalog.CPU] != 16_000 {
		t.Errorf("pools: %+v", review.Pools)
	}
	if review.Unknown != "" {
		t.Errorf("the review of a new team is incomplete: %+v", review)
	}
}

// Rejections of Kueue objects by an admission policy have the path of the
// allocation's field that causes them.
func TestRejectionsHavePathOfField(t *testing.T) {
	w := setup(t)
	team := w.team(t, "ruled", gpus(1))
	for name, rule := range map[string]struct {
		resource, expression, message string
		want                          governance.FieldError
	}{
		"a field path in the text": {
			"clusterqueues", "object.spec.resourceGroups[0].flavors[0].resources[2].nominalQuota != '24'",
			"spec.resourceGroups[0].flavors[0].resources[2].nominalQuota: Invalid value: 24: is an unlucky number of CPUs",
			governance.FieldError{Path: "spec.quota[0].vCPU", Message: "is an unlucky number of CPUs"},
		},
		"a pool in the text": {
			"clusterqueues", "object.spec.resourceGroups[0].flavors[0].resources[0].nominalQuota != '3'",
			"flavor ml.g5.2xlarge needs an even number of nvidia.com/gpu",
			governance.FieldError{Path: "spec.quota[0].accelerators", Message: "flavor ml.g5.2xlarge needs an even number of nvidia.com/gpu"},
		},
		"a text about the whole object": {
			"clusterqueues", "object.spec.resourceGroups[0].flavors[0].resources[0].nominalQuota != '3'",
			"not on a Friday",
			governance.FieldError{Path: "", Message: "ClusterQueue " + team.Status.ClusterQueue + ": not on a Friday"},
		},
		"the allocation itself": {
			"computeallocations", "object.spec.quota[0].accelerators != 3",
			"spec.quota[0].accelerators: enter an even number",
			governance.FieldError{Path: "spec.quota[0].accelerators", Message: "enter an even number"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w.denyUnless(t, rule.resource, team.Status.ClusterQueue, team.Name, rule.expression, rule.message)
			three := team.DeepCopy()
			three.Spec = gpus(3)
			clustertest.Eventually(t, soon, func(ctx context.Context) error { // the API server enforces a new admission policy with a delay
				_, err := w.Review(ctx, w.admin, three, nil)
				if governance.KindOf(err) != governance.Invalid {
					return fmt.Errorf("got %w from the review, want kind Invalid", err)
				}
				if diff := cmp.Diff([]governance.FieldError{rule.want}, fieldsOf(err)); diff != "" {
					return fmt.Errorf("(-want +got):\n%s", diff)
				}
				return nil
			})
		})
	}
}

// denyUnless creates an admission policy that rejects the objects of two names for
// which the expression is false.
func (w world) denyUnless(t *testing.T, resource, queue, team, expression, message string) {
	t.Helper()
	name := clustertest.Name("rule")
	group, version := "kueue.x-k8s.io", "v1beta2"
	if resource == "computeallocations" {
		group, version = "kuota.dev", "v1alpha1"
	}
	w.Apply(t, fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [%[2]s], apiVersions: [%[3]s], resources: [%[4]s], operations: [CREATE, UPDATE]}]}
  matchConditions: [{name: these, expression: "object.metadata.name in ['%[5]s', '%[6]s']"}]
  validations: [{expression: "%[7]s", message: "%[8]s"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s, validationActions: [Deny]}
`, name, group, version, resource, queue, team, expression, message))
	t.Cleanup(func() {
		_, _ = w.TryKubectl("", "delete", "validatingadmissionpolicy,validatingadmissionpolicybinding", name)
	})
}

// fieldsOf returns the errors of single fields.
func fieldsOf(err error) []governance.FieldError {
	var ours *governance.Error
	if !errors.As(err, &ours) {
		return nil
	}
	return ours.Fields
}

// While Kueue does not answer, a review reports that and contains the rest, and an
// allocation can be saved.
func TestReviewWithoutKueue(t *testing.T) {
	w := setup(t)
	team := w.team(t, "silent", gpus(1))
	two := team.DeepCopy()
	two.Spec = gpus(2)
	w.Control(t, "stop", "kueue")
	defer func() {
		w.Control(t, "start", "kueue")
		w.settled(t, team.Name) // Kueue answers again and has reconciled the queues
	}()
	review, err := w.Review(t.Context(), w.admin, two, nil)
	must(t, err)
	if review.Unknown == "" {
		t.Errorf("got no Unknown while Kueue is stopped: %+v", review)
	}
	if len(review.Pools) != 1 || review.Pools[0].After[catalog.GPU] != 2 {
		t.Errorf("the rest of the review is missing: %+v", review)
	}
	must(t, w.Update(t.Context(), w.admin, two, nil)) // the save needs no Kueue
}

// A pool that is created with the allocation is part of its review, and the save
// creates the pool.
func TestPoolsCreatedWithAllocation(t *testing.T) {
	w := setup(t)
	existing := &v1alpha1.ClusterPolicy{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ClusterPolicyName}}
	existing.Spec = v1alpha1.ClusterPolicySpec{TaskPrioritization: v1alpha1.FirstComeFirstServe, Enforcement: v1alpha1.EnforcementNone}
	must(t, w.Client.Create(t.Context(), existing))
	t.Cleanup(func() { _ = w.Client.Delete(context.Background(), existing) })
	clustertest.Eventually(t, soon, func(ctx context.Context) error { // the cache that the page reads
		state, err := w.State(ctx, w.admin)
		if err == nil && state.Policy == nil {
			err = errors.New("the cache has no policy yet")
		}
		return err
	})
	pool := v1alpha1.Pool{Name: clustertest.Name("trn"), Match: v1alpha1.PoolMatch{InstanceFamily: "ml.trn1"}}
	n := int64(16)
	team := &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: clustertest.Name("pooled")}}
	team.Spec.Quota = []v1alpha1.QuotaRow{{Pool: pool.Name, Quantities: v1alpha1.Quantities{Accelerators: &n}}}
	_, err := w.Review(t.Context(), w.admin, team, nil)
	wantKind(t, err, governance.Invalid, "spec.quota[0].pool")
	review, err := w.Review(t.Context(), w.admin, team, []v1alpha1.Pool{pool})
	must(t, err)
	if len(review.Pools) != 1 || review.Pools[0].Pool != pool.Name || review.Pools[0].After[catalog.Neuron] != 16 || len(review.NewPools) != 1 {
		t.Errorf("the review: %+v", review)
	}
	invalid := pool
	invalid.Match.InstanceTypes = []string{"ml.trn1.32xlarge"}
	_, err = w.Review(t.Context(), w.admin, team, []v1alpha1.Pool{invalid})
	wantKind(t, err, governance.Invalid, "spec.quota[0].pool", "pool "+pool.Name, "exactly one")

	t.Cleanup(func() { w.deleteTeam(team.Name) })
	must(t, w.Create(t.Context(), w.admin, team, []v1alpha1.Pool{pool}, "form-1"))
	must(t, w.Create(t.Context(), w.admin, team, []v1alpha1.Pool{pool}, "form-1")) // as after a lost response
	var policy v1alpha1.ClusterPolicy
	must(t, w.Client.Get(t.Context(), client.ObjectKey{Name: v1alpha1.ClusterPolicyName}, &policy))
	if !slices.ContainsFunc(policy.Spec.Pools, func(p v1alpha1.Pool) bool { return p.Name == pool.Name }) {
		t.Errorf("the policy has pools %+v", policy.Spec.Pools)
	}

	// More quota than the policy allows is refused at its row.
	clustertest.Eventually(t, soon, func(ctx context.Context) error { // another controller writes the policy too
		if err := w.Client.Get(ctx, client.ObjectKeyFromObject(&policy), &policy); err != nil {
			return err
		}
		policy.Spec.OverAllocationLimits = []v1alpha1.OverAllocationLimit{{Pool: "ml.g6.12xlarge", Percent: new(int32)}}
		return w.Client.Update(ctx, &policy)
	})
	n = 1_000_000
	team.Spec.Quota = []v1alpha1.QuotaRow{{InstanceType: "ml.g6.12xlarge", Quantities: v1alpha1.Quantities{Accelerators: &n}}}
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		state, err := w.State(ctx, w.admin)
		if err == nil && len(state.Policy.Spec.OverAllocationLimits) == 0 {
			err = errors.New("the cache has no limit yet")
		}
		return err
	})
	team.Name = clustertest.Name("greedy")
	_, err = w.Review(t.Context(), w.admin, team, nil)
	wantKind(t, err, governance.Invalid, "spec.quota[0]", "more than the cluster policy lets all teams have")
	wantKind(t, w.Create(t.Context(), w.admin, team, nil, "form-2"), governance.Invalid, "more than the cluster policy lets all teams have")
}
