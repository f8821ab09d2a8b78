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
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/access"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/audit"
	"kuota.dev/kuota/governance/change"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/desired"
	"kuota.dev/kuota/governance/policy"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// soon is how long a state may take to come.
const soon = 30 * time.Second

func TestMain(m *testing.M) { clustertest.Main(m) }

// world is the cluster without Kuota's controllers, and the service of the
// policy's pages. There is one policy, so these tests run one after another.
type world struct {
	*clustertest.Cluster
	*policy.Service
	admin, member governance.User
}

var current *clustertest.Cluster

var connection = sync.OnceValues(func() (*cluster.Cluster, error) {
	c, err := cluster.New(current.Console, cluster.Options{Log: slog.New(slog.DiscardHandler)})
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
	current = clustertest.Get(t)
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
			err = errors.New("the binding has no effect yet")
		}
		return err
	})
	w.seen(t, func(s policy.State) bool { return s.Policy == nil }) // what the test before left is gone
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// seen waits until the state is as wanted, and returns it.
func (w world) seen(t *testing.T, ok func(policy.State) bool) policy.State {
	t.Helper()
	var state policy.State
	clustertest.Eventually(t, soon, func(ctx context.Context) (err error) {
		if state, err = w.State(ctx, w.admin); err == nil && !ok(state) {
			err = fmt.Errorf("the state is %+v", state.Policy)
		}
		return err
	})
	return state
}

func wantKind(t *testing.T, err error, want governance.Kind, texts ...string) {
	t.Helper()
	if err == nil || governance.KindOf(err) != want {
		t.Fatalf("the error is %v, want kind %d", err, want)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q lacks %q", err, text)
		}
	}
}

func ranking(classes ...v1alpha1.PriorityClass) *v1alpha1.ClusterPolicy {
	return &v1alpha1.ClusterPolicy{Spec: v1alpha1.ClusterPolicySpec{TaskPrioritization: v1alpha1.TaskRanking, PriorityClasses: classes}}
}

func class(name string, weight int32) v1alpha1.PriorityClass {
	return v1alpha1.PriorityClass{Name: name, Weight: &weight}
}

// A policy is made, changed, and not overwritten by who read an older one.
func TestSave(t *testing.T) {
	w := setup(t)
	first := ranking(class("dev", 10))
	must(t, w.Save(t.Context(), w.admin, first))
	must(t, w.Save(t.Context(), w.admin, first)) // its answer was lost
	state := w.seen(t, func(s policy.State) bool { return s.Policy != nil })
	if !state.MayEdit {
		t.Error("an admin may not edit it")
	}
	wantKind(t, w.Save(t.Context(), w.admin, ranking(class("dev", 99))), governance.Conflict)

	mine := state.Policy.DeepCopy()
	mine.Spec.PriorityClasses = []v1alpha1.PriorityClass{class("dev", 20)}
	mine.Annotations = map[string]string{v1alpha1.AnnotationDropClasses: "old", "kuota.dev/other": "not ours to set"}
	must(t, w.Save(t.Context(), w.admin, mine))
	must(t, w.Save(t.Context(), w.admin, mine))
	saved := w.seen(t, func(s policy.State) bool { return s.Policy.Generation == 2 }).Policy
	want := map[string]string{v1alpha1.AnnotationDropClasses: "old", v1alpha1.AnnotationChangedBy: w.admin.Name, v1alpha1.AnnotationChangedGeneration: "2"}
	if diff := cmp.Diff(want, saved.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	theirs := state.Policy.DeepCopy()
	theirs.Spec.PriorityClasses = nil
	wantKind(t, w.Save(t.Context(), w.admin, theirs), governance.Conflict)
	_, err := w.Review(t.Context(), w.admin, theirs)
	wantKind(t, err, governance.Conflict)

	// The same spec over a stale version is success, and a confirmed drop that
	// is not there yet is none.
	late := mine.DeepCopy()
	late.Annotations = map[string]string{v1alpha1.AnnotationDropClasses: "old,older"}
	wantKind(t, w.Save(t.Context(), w.admin, late), governance.Conflict)

	// Who writes the status does not stand in anybody's way.
	written := saved.DeepCopy()
	written.Status.ObservedGeneration = 2
	must(t, w.Client.Status().Update(t.Context(), written))
	again := saved.DeepCopy()
	again.Spec.PriorityClasses = append(again.Spec.PriorityClasses, class("prod", 90))
	must(t, w.Save(t.Context(), w.admin, again))

	wrong := ranking(class("dev", 10), class("dev-priority", 20))
	wantKind(t, w.Save(t.Context(), w.admin, wrong), governance.Invalid, "spec.priorityClasses[1].name")
	wantKind(t, w.Save(t.Context(), w.member, again), governance.Forbidden)
	_, err = w.Review(t.Context(), w.member, again)
	wantKind(t, err, governance.Forbidden)
	_, err = w.State(t.Context(), w.member)
	wantKind(t, err, governance.Outside)
}

// A policy that is being deleted takes nothing any more: it would go with it.
func TestSaveWhileDeleted(t *testing.T) {
	w := setup(t)
	must(t, w.Save(t.Context(), w.admin, ranking(class("dev", 10))))
	now := w.seen(t, func(s policy.State) bool { return s.Policy != nil }).Policy.DeepCopy()
	finalizers := func(text string) {
		must(t, w.Client.Patch(context.Background(), now.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": `+text+`}}`))))
	}
	finalizers(`["kuota.dev/test"]`)
	t.Cleanup(func() { finalizers("null") })
	must(t, w.Client.Delete(t.Context(), now))
	next := w.seen(t, func(s policy.State) bool { return s.Policy != nil && s.Policy.DeletionTimestamp != nil }).Policy.DeepCopy()
	next.Spec.PriorityClasses = []v1alpha1.PriorityClass{class("dev", 20)}
	wantKind(t, w.Save(t.Context(), w.admin, next), governance.Conflict, "is being deleted")
	wantKind(t, w.Save(t.Context(), w.admin, ranking(class("dev", 30))), governance.Conflict, "is being deleted")
}

// A review tells what Kueue's objects would become, and changes nothing.
func TestReview(t *testing.T) {
	w := setup(t)
	name := clustertest.Name("class")
	made := kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: desired.PriorityClassName(name), Labels: map[string]string{desired.LabelManagedBy: desired.ManagedBy}}, Value: 10}
	must(t, w.Client.Create(t.Context(), &made))
	t.Cleanup(func() { _ = w.Client.Delete(context.Background(), &made) })
	must(t, w.Save(t.Context(), w.admin, ranking(class(name, 10), class("unused", 1))))
	now := w.seen(t, func(s policy.State) bool { return s.Policy != nil }).Policy

	next := now.DeepCopy()
	fresh := clustertest.Name("fresh")
	next.Spec.PriorityClasses = []v1alpha1.PriorityClass{class(name, 20), class(fresh, 5)}
	next.Spec.IdleCompute.ShareUnallocated = true
	next.Spec.Pools = []v1alpha1.Pool{{Name: "hopper", Match: v1alpha1.PoolMatch{Accelerator: "H100"}}}
	w.Kueue = func(_ context.Context, spec *v1alpha1.ClusterPolicySpec) (bool, string, error) {
		return spec.IdleCompute.ShareUnallocated, "patch", nil
	}
	review, err := w.Review(t.Context(), w.admin, next)
	must(t, err)
	ten, twenty, five, one := int32(10), int32(20), int32(5), int32(1)
	want := policy.Review{
		Settings: []change.Field{
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
		{Kind: "Cohort", Name: "shared-pool", Action: change.Created},
	}
	if diff := cmp.Diff(wantObjects, objects); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	var live kueue.WorkloadPriorityClass
	must(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(&made), &live))
	if live.ResourceVersion != made.ResourceVersion {
		t.Error("the review wrote the class")
	}
	if after := w.seen(t, func(s policy.State) bool { return s.Policy != nil }).Policy; after.ResourceVersion != now.ResourceVersion {
		t.Error("the review wrote the policy")
	}

	// A class object that somebody else made is theirs.
	foreign := kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: desired.PriorityClassName(fresh)}, Value: 1}
	must(t, w.Client.Create(t.Context(), &foreign))
	t.Cleanup(func() { _ = w.Client.Delete(context.Background(), &foreign) })
	_, err = w.Review(t.Context(), w.admin, next)
	wantKind(t, err, governance.Invalid, "spec.priorityClasses[1].name", "not managed by Kuota")
}

// Pools are added whatever else the policy says, and by several at once.
func TestAddPools(t *testing.T) {
	w := setup(t)
	first := []v1alpha1.Pool{{Name: "first", Match: v1alpha1.PoolMatch{Accelerator: "H100"}}, {Name: "second", Match: v1alpha1.PoolMatch{Accelerator: "A100"}}}
	wrong, err := w.CheckPools(t.Context(), first)
	must(t, err)
	if len(wrong) != 2 || wrong[1].Path != "spec.pools[1].name" || !strings.Contains(wrong[1].Message, "create one first") {
		t.Errorf("without a policy, %+v is wrong", wrong)
	}
	wantKind(t, w.AddPools(t.Context(), w.admin, first), governance.Invalid, "spec.pools[0].name", "no cluster policy yet")
	if err := w.Client.Get(t.Context(), client.ObjectKey{Name: v1alpha1.ClusterPolicyName}, &v1alpha1.ClusterPolicy{}); !apierrors.IsNotFound(err) {
		t.Fatalf("there is a policy now, or it cannot be read: %v", err)
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
	state := w.seen(t, func(s policy.State) bool { return s.Policy != nil && len(s.Policy.Spec.Pools) == len(models) })
	if s := state.Policy.Spec; s.TaskPrioritization != v1alpha1.TaskRanking || len(s.PriorityClasses) != 1 {
		t.Errorf("pools changed more of the policy than pools: %+v", s)
	}
	nodes, err := w.Nodes(t.Context(), state.Policy.Spec.Pools)
	must(t, err)
	if slices.Max(nodes) == 0 {
		t.Errorf("no pool has nodes: %v", nodes)
	}
	wantKind(t, w.AddPools(t.Context(), w.admin, []v1alpha1.Pool{{Name: "pool-h100", Match: v1alpha1.PoolMatch{Accelerator: "H200"}}}), governance.Invalid, "twice")
}
