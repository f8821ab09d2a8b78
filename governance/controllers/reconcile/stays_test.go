package reconcile_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/quota/desired"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Deleting an allocation that names another team's namespace deletes nothing of that
// team.
func TestBlockedAllocationDeletesNothing(t *testing.T) {
	c := setup(t)
	alpha, beta := clustertest.Name("alpha"), clustertest.Name("beta")
	spec := specOf(v1alpha1.QuotaRow{InstanceType: "ml.g5.2xlarge", Quantities: accelerators(1)})
	spec.Members, spec.DefaultQueue = []v1alpha1.Member{{Kind: "User", Name: "mia@example.com"}}, true
	create(t, c, alpha, spec)
	conditionIs(t, c, alpha, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "hyperpod-ns-" + alpha, Name: desired.MembersName}}
	waitExists(t, c, binding, true)
	uid := binding.UID

	spec.Namespace = "hyperpod-ns-" + alpha
	create(t, c, beta, spec)
	conditionIs(t, c, beta, v1alpha1.ConditionReady, metav1.ConditionFalse, "belongs to another team")
	if err := c.Client.Delete(t.Context(), &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: beta}}); err != nil {
		t.Fatal(err)
	}
	waitDeleted(t, c, &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: beta}})
	waitExists(t, c, binding, true)
	if binding.UID != uid {
		t.Error("the members' binding was deleted and created again")
	}
}

// Of two concurrent allocations with one namespace, one is ready and one is blocked.
func TestOneNamespaceOneTeam(t *testing.T) {
	c := setup(t)
	namespace := clustertest.Name("shared")
	if err := c.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Client.Delete(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	})
	spec := specOf(v1alpha1.QuotaRow{InstanceType: "ml.g5.2xlarge", Quantities: accelerators(1)})
	spec.Namespace = namespace
	teams := []string{clustertest.Name("one"), clustertest.Name("two")}
	for _, team := range teams {
		create(t, c, team, spec)
	}
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		got := map[string]string{}
		for _, team := range teams {
			var allocation v1alpha1.ComputeAllocation
			if err := c.Client.Get(ctx, client.ObjectKey{Name: team}, &allocation); err != nil {
				return err
			}
			if ready := meta.FindStatusCondition(allocation.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
				got[ready.Reason] = team
			}
		}
		if got["Ready"] == "" || got[v1alpha1.ReasonBlocked] == "" {
			return fmt.Errorf("got reasons %v, want one Ready and one Blocked", got)
		}
		return nil
	})
	var queues kueue.LocalQueueList
	if err := c.Client.List(t.Context(), &queues, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	if len(queues.Items) != 1 {
		t.Errorf("%d LocalQueues in the namespace, want 1", len(queues.Items))
	}
}

// labNode creates a node of an instance type that only this test uses.
func labNode(t *testing.T, c *clustertest.Cluster, name, instanceType string, labels map[string]string) *corev1.Node {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"node.kubernetes.io/instance-type": instanceType}}}
	for key, value := range labels {
		node.Labels[key] = value
	}
	node.Status.Capacity = corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("32Gi"), "nvidia.com/gpu": resource.MustParse("1")}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if err := c.Client.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Client.Delete(context.Background(), node) })
	return node
}

// Nodes that leave a pool move no quota to another pool. All other fields of the
// allocation still apply, and the policy keeps the pool.
func TestQuotaStaysWhenNodesMove(t *testing.T) {
	c := setup(t)
	lab := "lab." + clustertest.Name("moves")
	pool := clustertest.Name("blue")
	node := labNode(t, c, clustertest.Name("blue-node"), lab, map[string]string{"colour": pool})
	policy := ranking()
	policy.Pools = []v1alpha1.Pool{{Name: pool, Match: v1alpha1.PoolMatch{NodeLabels: map[string]string{"colour": pool}}}}
	setPolicy(t, c, policy)
	policyIs(t, c, v1alpha1.ConditionPools, metav1.ConditionTrue, "")
	byType, byPool := clustertest.Name("bytype"), clustertest.Name("bypool")
	create(t, c, byType, specOf(v1alpha1.QuotaRow{InstanceType: lab, Quantities: accelerators(1)}))
	create(t, c, byPool, specOf(v1alpha1.QuotaRow{Pool: pool, Quantities: accelerators(1)}))
	flavorOf := func(team string) string {
		var queue kueue.ClusterQueue
		if err := c.Client.Get(t.Context(), client.ObjectKey{Name: desired.DefaultNaming.ClusterQueue(team)}, &queue); err != nil {
			t.Fatal(err)
		}
		return string(queue.Spec.ResourceGroups[0].Flavors[0].Name)
	}
	for _, team := range []string{byType, byPool} {
		conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
		if got := flavorOf(team); got != pool {
			t.Fatalf("%s has quota in %s", team, got)
		}
	}

	relabel := fmt.Appendf(nil, `{"metadata": {"labels": {"colour": null, "kuota.dev/pool": null}}}`)
	if err := c.Client.Patch(t.Context(), node, client.RawPatch(types.MergePatchType, relabel)); err != nil {
		t.Fatal(err)
	}
	conditionIs(t, c, byType, v1alpha1.ConditionReady, metav1.ConditionFalse, "nodes moved")
	conditionIs(t, c, byPool, v1alpha1.ConditionReady, metav1.ConditionFalse, "")
	for _, team := range []string{byType, byPool} {
		if got := flavorOf(team); got != pool {
			t.Errorf("the quota of %s is in %s", team, got)
		}
	}
	spec := specOf(v1alpha1.QuotaRow{Pool: pool, Quantities: accelerators(1)})
	spec.Activation = v1alpha1.Hold
	setQuota(t, c, byPool, spec)
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		var queue kueue.ClusterQueue
		if err := c.Client.Get(ctx, client.ObjectKey{Name: desired.DefaultNaming.ClusterQueue(byPool)}, &queue); err != nil {
			return err
		}
		if queue.Spec.StopPolicy == nil || *queue.Spec.StopPolicy != kueue.Hold {
			return fmt.Errorf("stop policy is %v, want Hold", queue.Spec.StopPolicy)
		}
		return nil
	})
	if err := c.Client.Patch(t.Context(), node, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata": {"labels": {"colour": %q}}}`, pool))); err != nil {
		t.Fatal(err)
	}
	for _, team := range []string{byType, byPool} {
		conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	}
}

// While the Cohort cannot be written, nominal quota that grows waits. All other
// changes apply.
func TestRejectedCohortDelaysOnlyGrowth(t *testing.T) {
	c := setup(t)
	policy := ranking()
	setPolicy(t, c, policy)
	team, other := clustertest.Name("refused"), clustertest.Name("other")
	spec := specOf(v1alpha1.QuotaRow{InstanceType: "ml.p5.48xlarge", Quantities: accelerators(2)})
	spec.Members = []v1alpha1.Member{{Kind: "User", Name: "mia@example.com"}}
	create(t, c, team, spec)
	create(t, c, other, spec)
	conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	conditionIs(t, c, other, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	name := clustertest.Name("no-cohorts")
	c.Apply(t, strings.ReplaceAll(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: NAME}
spec:
  failurePolicy: Fail
  matchConstraints: {resourceRules: [{apiGroups: [kueue.x-k8s.io], apiVersions: ["*"], operations: [CREATE, UPDATE], resources: [cohorts]}]}
  validations: [{expression: "false", message: "no Cohorts here"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: NAME}
spec: {policyName: NAME, validationActions: [Deny]}
`, "NAME", name))
	t.Cleanup(func() {
		c.Kubectl(t, "", "delete", "validatingadmissionpolicybinding/"+name, "validatingadmissionpolicy/"+name, "--ignore-not-found")
	})
	probe := &kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: name}}
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		if err := c.Client.Create(ctx, probe, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "no Cohorts here") {
			return fmt.Errorf("Cohorts are not rejected yet: %v", err)
		}
		return nil
	})
	policy.IdleCompute.ShareUnallocated = true
	setPolicy(t, c, policy)
	policyIs(t, c, v1alpha1.ConditionShareUnallocated, metav1.ConditionFalse, "no Cohorts here")
	more := specOf(v1alpha1.QuotaRow{InstanceType: "ml.p5.48xlarge", Quantities: accelerators(4)})
	setQuota(t, c, team, more) // without its member
	conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionFalse, "no Cohorts here")
	waitExists(t, c, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "hyperpod-ns-" + team, Name: desired.MembersName}}, false)
	less := specOf(v1alpha1.QuotaRow{InstanceType: "ml.p5.48xlarge", Quantities: accelerators(1)})
	setQuota(t, c, other, less)
	conditionIs(t, c, other, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	c.Kubectl(t, "", "delete", "validatingadmissionpolicybinding/"+name, "validatingadmissionpolicy/"+name)
	clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
		var allocation v1alpha1.ComputeAllocation
		if err := c.Client.Get(ctx, client.ObjectKey{Name: team}, &allocation); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(allocation.Status.Conditions, v1alpha1.ConditionReady) {
			return fmt.Errorf("%+v", allocation.Status.Conditions)
		}
		return nil
	})
}

// A policy that is deleted during a change of the ranking is removed when the change
// ends.
func TestPolicyDeletedDuringChange(t *testing.T) {
	c := setup(t)
	setPolicy(t, c, ranking(class("midway", 10)))
	policyIs(t, c, v1alpha1.ConditionPriorityClasses, metav1.ConditionTrue, "")
	team := clustertest.Name("midway")
	create(t, c, team, specOf(v1alpha1.QuotaRow{InstanceType: "ml.g5.2xlarge", Quantities: accelerators(1)}))
	conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	for i := range 10 {
		submitWith(t, c, team, fmt.Sprintf("waits-%d", i), "midway-priority", 10, "100")
	}
	setPolicy(t, c, ranking(class("midway", 50)))
	policyIs(t, c, v1alpha1.ConditionPriorityClasses, metav1.ConditionUnknown, "")
	policy := &v1alpha1.ClusterPolicy{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ClusterPolicyName}}
	if err := c.Client.Delete(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(policy), policy); client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("the policy still exists: %+v", policy.Status.Ranking)
		}
		return nil
	})
	var tasks kueue.WorkloadList
	if err := c.Client.List(t.Context(), &tasks, client.InNamespace("hyperpod-ns-"+team)); err != nil {
		t.Fatal(err)
	}
	for i := range tasks.Items {
		if p := tasks.Items[i].Spec.Priority; *p != 50 {
			t.Errorf("%s has priority %d, want 50", tasks.Items[i].Name, *p)
		}
	}
}
