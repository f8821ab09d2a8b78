package policy_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/policy"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/record/audit"
	"kuota.dev/kuota/governance/spec/change"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// soon is the timeout for a state that the cache reaches.
const soon = clustertest.Patience

func TestMain(m *testing.M) { clustertest.Main(m) }

// world is the cluster without Kuota's controllers, and the service of the
// policy's pages. There is one policy, so these tests run one after another.
type world struct {
	*clustertest.Cluster
	*policy.Service
	admin, member governance.User
}

var connection = sync.OnceValues(func() (*cluster.Cluster, error) {
	c, err := cluster.New(clustertest.Current().Console, cluster.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	go func() {
		if err := c.Run(context.Background()); err != nil {
			panic(err)
		}
	}()
	return c, nil
})

func setup(t *testing.T) world {
	t.Helper()
	current := clustertest.Get(t)
	c, err := connection()
	must(t, err)
	group := clustertest.Name("admins")
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: group},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "kuota-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}},
	}
	must(t, current.Client.Create(t.Context(), binding))
	t.Cleanup(func() {
		_ = current.Client.Delete(context.Background(), binding)
		_, _ = current.TryKubectl("", "delete", "clusterpolicy", "default", "--ignore-not-found")
	})
	w := world{
		Cluster: current,
		Service: &policy.Service{Cluster: c, Access: &access.Service{Cluster: c}, Audit: &audit.Recorder{Cluster: c, Log: slog.New(slog.DiscardHandler)}, Naming: desired.DefaultNaming},
		admin:   governance.User{Name: group + "@example.com", Groups: []string{group}},
		member:  governance.User{Name: clustertest.Name("member") + "@example.com"},
	}
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		if _, err := c.Reader(); err != nil {
			return err
		}
		may, err := (&access.Service{Cluster: c}).MayEditPolicy(ctx, w.admin)
		if err == nil && !may {
			err = errors.New("the ClusterRoleBinding has no effect yet")
		}
		return err
	})
	w.waitState(t, func(s policy.State) bool { return s.Policy == nil }) // the policy of the previous test is deleted
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// waitState waits until ok accepts the state, and returns it.
func (w world) waitState(t *testing.T, ok func(policy.State) bool) policy.State {
	t.Helper()
	var state policy.State
	clustertest.Eventually(t, soon, func(ctx context.Context) (err error) {
		if state, err = w.State(ctx, w.admin); err == nil && !ok(state) {
			err = fmt.Errorf("the cached policy is %+v", state.Policy)
		}
		return err
	})
	return state
}

func wantKind(t *testing.T, err error, want governance.Kind, texts ...string) {
	t.Helper()
	if err == nil || governance.KindOf(err) != want {
		t.Fatalf("got error %v, want kind %d", err, want)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("got error %q, want it to contain %q", err, text)
		}
	}
}

func ranking(classes ...v1alpha1.PriorityClass) *v1alpha1.ClusterPolicy {
	return &v1alpha1.ClusterPolicy{Spec: v1alpha1.ClusterPolicySpec{TaskPrioritization: v1alpha1.TaskRanking, PriorityClasses: classes}}
}

func class(name string, weight int32) v1alpha1.PriorityClass {
	return v1alpha1.PriorityClass{Name: name, Weight: &weight}
}

// A policy is created and changed, and a save over an older version is a conflict.
func TestSave(t *testing.T) {
	w := setup(t)
	first := ranking(class("dev", 10))
	must(t, w.Save(t.Context(), w.admin, first))
	must(t, w.Save(t.Context(), w.admin, first)) // as after a lost response
	state, err := w.State(t.Context(), w.admin)
	must(t, err)
	if !state.MayEdit || state.Policy == nil {
		t.Fatalf("state right after the save: got MayEdit %t and policy %v, want true and the saved policy", state.MayEdit, state.Policy)
	}
	wantKind(t, w.Save(t.Context(), w.admin, ranking(class("dev", 99))), governance.Conflict)

	edited := state.Policy.DeepCopy()
	edited.Spec.PriorityClasses = []v1alpha1.PriorityClass{class("dev", 20)}
	edited.Annotations = map[string]string{v1alpha1.AnnotationDropClasses: "old", "kuota.dev/other": "not saved"}
	must(t, w.Save(t.Context(), w.admin, edited))
	must(t, w.Save(t.Context(), w.admin, edited))
	saved := w.waitState(t, func(s policy.State) bool { return s.Policy.Generation == 2 }).Policy
	want := map[string]string{v1alpha1.AnnotationDropClasses: "old", v1alpha1.AnnotationChangedBy: w.admin.Name, v1alpha1.AnnotationChangedGeneration: "2"}
	if diff := cmp.Diff(want, saved.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	stale := state.Policy.DeepCopy()
	stale.Spec.PriorityClasses = nil
	wantKind(t, w.Save(t.Context(), w.admin, stale), governance.Conflict)
	_, err = w.Review(t.Context(), w.admin, stale)
	wantKind(t, err, governance.Conflict)

	// The same spec over a stale version succeeds only if the policy has all
	// confirmed deletions of classes.
	late := edited.DeepCopy()
	late.Annotations = map[string]string{v1alpha1.AnnotationDropClasses: "old,older"}
	wantKind(t, w.Save(t.Context(), w.admin, late), governance.Conflict)

	// A concurrent update of the status is no conflict.
	written := saved.DeepCopy()
	written.Status.ObservedGeneration = 2
	must(t, w.Client.Status().Update(t.Context(), written))
	again := saved.DeepCopy()
	again.Spec.PriorityClasses = append(again.Spec.PriorityClasses, class("prod", 90))
	must(t, w.Save(t.Context(), w.admin, again))

	invalid := ranking(class("dev", 10), class("dev-priority", 20))
	wantKind(t, w.Save(t.Context(), w.admin, invalid), governance.Invalid, "would be the same object")
	wantKind(t, w.Save(t.Context(), w.member, again), governance.Forbidden)
	_, err = w.Review(t.Context(), w.member, again)
	wantKind(t, err, governance.Forbidden)
	_, err = w.State(t.Context(), w.member)
	wantKind(t, err, governance.Outside)
}

// A policy that is being deleted is not changed: the change would be lost.
func TestSaveWhileDeleted(t *testing.T) {
	w := setup(t)
	must(t, w.Save(t.Context(), w.admin, ranking(class("dev", 10))))
	now := w.waitState(t, func(s policy.State) bool { return s.Policy != nil }).Policy.DeepCopy()
	finalizers := func(text string) {
		must(t, w.Client.Patch(context.Background(), now.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": `+text+`}}`))))
	}
	finalizers(`["kuota.dev/test"]`)
	t.Cleanup(func() { finalizers("null") })
	must(t, w.Client.Delete(t.Context(), now))
	next := w.waitState(t, func(s policy.State) bool { return s.Policy != nil && s.Policy.DeletionTimestamp != nil }).Policy.DeepCopy()
	next.Spec.PriorityClasses = []v1alpha1.PriorityClass{class("dev", 20)}
	wantKind(t, w.Save(t.Context(), w.admin, next), governance.Conflict, "is being deleted")
	wantKind(t, w.Save(t.Context(), w.admin, ranking(class("dev", 30))), governance.Conflict, "is being deleted")
}

// A review lists the changes of Kueue objects and changes nothing.
func TestReview(t *testing.T) {
	w := setup(t)
	name := clustertest.Name("class")
	existing := kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: desired.PriorityClassName(name), Labels: map[string]string{desired.LabelManagedBy: desired.ManagedBy}}, Value: 10}
	must(t, w.Client.Create(t.Context(), &existing))
	t.Cleanup(func() { _ = w.Client.Delete(context.Background(), &existing) })
	must(t, w.Save(t.Context(), w.admin, ranking(class(name, 10), class("unused", 1))))
	now := w.waitState(t, func(s policy.State) bool { return s.Policy != nil }).Policy

	next := now.DeepCopy()
	fresh := clustertest.Name("fresh")
	next.Spec.PriorityClasses = []v1alpha1.PriorityClass{class(name, 20), class(fresh, 5)}
	next.Spec.NumericPriorities, next.Spec.IdleCompute.ShareUnallocated = true, true
	next.Spec.Pools = []v1alpha1.Pool{{Name: "hopper", Match: v1alpha1.PoolMatch{Accelerator: "H100"}}}
	w.Kueue = func(_ context.Context, spec *v1alpha1.ClusterPolicySpec) (bool, string, error) {
		return spec.IdleCompute.ShareUnallocated, "patch", nil
	}
	review, err := w.Review(t.Context(), w.admin, next)
	must(t, err)
	ten, twenty, five, one := int32(10), int32(20), int32(5), int32(1)
	want := policy.Review{
		Settings: []change.Field{
			{Path: "Priority by number", Before: "No", After: "Yes"},
			{Path: "Lend unallocated compute", Before: "No", After: "Yes"},
			{Path: "Pool hopper", After: "all H100 nodes"},
		},
		Classes: []policy.ClassChange{{Name: name, Before: &ten, After: &twenty}, {Name: fresh, After: &five}, {Name: "unused", Before: &one}},
		Reranks: true, Restart: true, Patch: "patch",
	}
	objects, pools := review.Objects, review.Pools
	review.Objects, review.Pools = nil, nil
	if diff := cmp.Diff(want, review); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !slices.ContainsFunc(pools, func(p policy.PoolChange) bool {
		return p.Name == "hopper" && p.NodesBefore == 0 && p.NodesAfter > 0 && slices.Contains(p.Types, "ml.p5.48xlarge")
	}) {
		t.Errorf("pools: %+v", pools)
	}
	wantObjects := []change.Object{
		{Kind: "WorkloadPriorityClass", Name: desired.PriorityClassName(name), Action: change.Changed, Fields: []change.Field{{Path: "value", Before: "10", After: "20"}}},
		{Kind: "WorkloadPriorityClass", Name: desired.PriorityClassName(fresh), Action: change.Created, Fields: []change.Field{{Path: "value", After: "5"}}},
		{Kind: "WorkloadPriorityClass", Name: "unused-priority", Action: change.Removed},
		{Kind: "WorkloadPriorityClass", Name: "kuota-priority-0 to kuota-priority-99", Action: change.Created},
		{Kind: "Cohort", Name: "shared-pool", Action: change.Created},
	}
	if diff := cmp.Diff(wantObjects, objects); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	var live kueue.WorkloadPriorityClass
	must(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(&existing), &live))
	if live.ResourceVersion != existing.ResourceVersion {
		t.Error("the review changed the WorkloadPriorityClass")
	}
	if after := w.waitState(t, func(s policy.State) bool { return s.Policy != nil }).Policy; after.ResourceVersion != now.ResourceVersion {
		t.Error("the review changed the policy")
	}

	// A WorkloadPriorityClass that Kuota does not manage is a conflict.
	foreign := kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: desired.PriorityClassName(fresh)}, Value: 1}
	must(t, w.Client.Create(t.Context(), &foreign))
	t.Cleanup(func() { _ = w.Client.Delete(context.Background(), &foreign) })
	_, err = w.Review(t.Context(), w.admin, next)
	wantKind(t, err, governance.Invalid, "spec.priorityClasses[1].name", "not managed by Kuota")
}

// Concurrent additions of pools all succeed and change nothing else of the policy.
func TestAddPools(t *testing.T) {
	w := setup(t)
	first := []v1alpha1.Pool{{Name: "first", Match: v1alpha1.PoolMatch{Accelerator: "H100"}}, {Name: "second", Match: v1alpha1.PoolMatch{Accelerator: "A100"}}}
	errs, err := w.CheckPools(t.Context(), first)
	must(t, err)
	if len(errs) != 2 || errs[1].Path != "spec.pools[1].name" || !strings.Contains(errs[1].Message, "create one first") {
		t.Errorf("got errors %+v without a policy", errs)
	}
	wantKind(t, w.AddPools(t.Context(), w.admin, first), governance.Invalid, "spec.pools[0].name", "no cluster policy yet")
	if err := w.Client.Get(t.Context(), client.ObjectKey{Name: v1alpha1.ClusterPolicyName}, &v1alpha1.ClusterPolicy{}); !apierrors.IsNotFound(err) {
		t.Fatalf("got %v, want that no policy exists", err)
	}

	must(t, w.Save(t.Context(), w.admin, ranking(class("dev", 10))))
	models := []string{"H100", "A100", "L4"}
	var adding sync.WaitGroup
	for _, model := range models {
		pools := []v1alpha1.Pool{{Name: "pool-" + strings.ToLower(model), Match: v1alpha1.PoolMatch{Accelerator: model}}}
		adding.Go(func() {
			if err := w.AddPools(context.Background(), w.admin, pools); err != nil {
				t.Errorf("%s: %v", model, err)
			}
		})
	}
	adding.Wait()
	state := w.waitState(t, func(s policy.State) bool { return s.Policy != nil && len(s.Policy.Spec.Pools) == len(models) })
	if s := state.Policy.Spec; s.TaskPrioritization != v1alpha1.TaskRanking || len(s.PriorityClasses) != 1 {
		t.Errorf("adding pools changed other settings: %+v", s)
	}
	nodes, err := w.Nodes(t.Context(), state.Policy.Spec.Pools)
	must(t, err)
	if slices.Max(nodes) == 0 {
		t.Errorf("no pool has nodes: %v", nodes)
	}
	wantKind(t, w.AddPools(t.Context(), w.admin, []v1alpha1.Pool{{Name: "pool-h100", Match: v1alpha1.PoolMatch{Accelerator: "H200"}}}), governance.Invalid, "twice")
}
