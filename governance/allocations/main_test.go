package allocations_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/controllers/reconcile"
	"kuota.dev/kuota/governance/policy"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/record/audit"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// soon is the timeout for a state that the controllers or the cache reach.
const soon = clustertest.Patience

func TestMain(m *testing.M) { clustertest.Main(m) }

// world is the cluster with Kuota's controllers, and the service of its pages.
type world struct {
	*clustertest.Cluster
	*allocations.Service
	admin, member governance.User
}

// Review is that of the service, under the state that user reads.
func (w world) Review(ctx context.Context, user governance.User, a *v1alpha1.ComputeAllocation, pools []v1alpha1.Pool) (allocations.Review, error) {
	state, err := w.State(ctx, user)
	if err != nil {
		return allocations.Review{}, err
	}
	return w.Service.Review(ctx, user, state, a, pools)
}

// Update is that of the service, under the state that user reads.
func (w world) Update(ctx context.Context, user governance.User, a *v1alpha1.ComputeAllocation, pools []v1alpha1.Pool) error {
	state, err := w.State(ctx, user)
	if err != nil {
		return err
	}
	return w.Service.Update(ctx, user, state, a, pools)
}

// Create is that of the service, under the state that user reads.
func (w world) Create(ctx context.Context, user governance.User, a *v1alpha1.ComputeAllocation, pools []v1alpha1.Pool, request string) error {
	state, err := w.State(ctx, user)
	if err != nil {
		return err
	}
	return w.Service.Create(ctx, user, state, a, pools, request)
}

// connection returns the console's connection with running controllers, shared by
// all tests.
var connection = sync.OnceValues(func() (*cluster.Cluster, error) {
	log := slog.New(slog.DiscardHandler) // no test here checks the controllers' log
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
	c, err := cluster.New(clustertest.Current().Console, cluster.Options{Namespace: "kuota-system", NoSessions: true, Log: log})
	if err != nil {
		return nil, err
	}
	if _, err := reconcile.SetupWithManager(c.Manager, reconcile.Options{Naming: desired.DefaultNaming, Kueue: reconcile.DefaultKueueInstall, Revisions: c.Revisions}); err != nil {
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
	if err != nil {
		t.Fatal(err)
	}
	clustertest.Eventually(t, soon, func(context.Context) error {
		_, err := c.Reader()
		return err
	})
	permission := &access.Service{Cluster: c}
	record := &audit.Recorder{Cluster: c, Log: slog.New(slog.DiscardHandler)}
	group := clustertest.Name("admins")
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: group},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "kuota-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}},
	}
	must(t, current.Client.Create(t.Context(), binding))
	t.Cleanup(func() { _ = current.Client.Delete(context.Background(), binding) })
	w := world{
		Cluster: current,
		Service: &allocations.Service{
			Cluster: c, Access: permission, Audit: record, Naming: desired.DefaultNaming,
			Pools: &policy.Service{Cluster: c, Access: permission, Audit: record, Naming: desired.DefaultNaming},
		},
		admin:  governance.User{Name: group + "@example.com", Groups: []string{group}},
		member: governance.User{Name: clustertest.Name("member") + "@example.com"},
	}
	clustertest.Eventually(t, soon, func(ctx context.Context) error { // the API server's RBAC cache sees the binding with a delay
		may, err := (&access.Service{Cluster: c}).MayDeleteAllocations(ctx, w.admin)
		if err == nil && !may {
			err = fmt.Errorf("the ClusterRoleBinding has no effect yet")
		}
		return err
	})
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// gpus returns a spec with nominal quota for n GPUs of g5.
func gpus(n int64) v1alpha1.ComputeAllocationSpec {
	return v1alpha1.ComputeAllocationSpec{Quota: []v1alpha1.QuotaRow{{InstanceType: "ml.g5.2xlarge", Quantities: v1alpha1.Quantities{Accelerators: &n}}}}
}

// team creates a team, waits until it is settled, and deletes it after the test.
func (w world) team(t *testing.T, prefix string, spec v1alpha1.ComputeAllocationSpec) v1alpha1.ComputeAllocation {
	t.Helper()
	allocation := &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: clustertest.Name(prefix)}, Spec: spec}
	must(t, w.Create(t.Context(), w.admin, allocation, nil, ""))
	t.Cleanup(func() { w.deleteTeam(allocation.Name) })
	return w.settled(t, allocation.Name)
}

// deleteTeam starts to delete a team and drains its running tasks.
func (w world) deleteTeam(team string) {
	_, _ = w.TryKubectl("", "annotate", "computeallocation", team, v1alpha1.AnnotationDrain+"=true", "--overwrite")
	_, _ = w.TryKubectl("", "delete", "computeallocation", team, "--wait=false")
}

// settled waits until the cache has an allocation that is ready, with conditions
// of its current generation, and returns it.
func (w world) settled(t *testing.T, team string) v1alpha1.ComputeAllocation {
	t.Helper()
	var found v1alpha1.ComputeAllocation
	clustertest.Eventually(t, soon, func(ctx context.Context) (err error) {
		if found, err = w.Find(ctx, w.admin, team); err != nil {
			return err
		}
		for _, name := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionWithinCapacity} {
			if c := meta.FindStatusCondition(found.Status.Conditions, name); c == nil || c.ObservedGeneration != found.Generation || name == v1alpha1.ConditionReady && c.Status != metav1.ConditionTrue {
				return fmt.Errorf("%s of %s is %+v", name, team, c)
			}
		}
		return nil
	})
	return found
}

// runTask creates a Job that requests n GPUs in a team's queue, and waits until
// Kueue admits it.
func (w world) runTask(t *testing.T, team, name string, n int) {
	t.Helper()
	w.Apply(t, fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {name: %s, namespace: %s, labels: {kueue.x-k8s.io/queue-name: %s}}
spec:
  template:
    metadata: {annotations: {pod-complete.stage.kwok.x-k8s.io/delay: 1h}}
    spec:
      restartPolicy: Never
      containers:
      - name: train
        image: example.com/train:1
        resources: {requests: {cpu: 1, memory: 1Gi, nvidia.com/gpu: %d}, limits: {nvidia.com/gpu: %d}}
`, name, w.Naming.Namespace(team), w.Naming.LocalQueue(team), n, n))
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		reader, err := w.Service.Cluster.Reader()
		if err != nil {
			return err
		}
		var list kueue.WorkloadList
		if err := reader.List(ctx, &list, client.InNamespace(w.Naming.Namespace(team))); err != nil {
			return err
		}
		for i := range list.Items {
			if list.Items[i].Status.Admission != nil && strings.HasPrefix(list.Items[i].Name, "job-"+name+"-") {
				return nil
			}
		}
		return fmt.Errorf("job %s is not admitted", name)
	})
	t.Cleanup(func() {
		_, _ = w.TryKubectl("", "delete", "job", name, "-n", w.Naming.Namespace(team), "--wait=false")
	})
}

// versions returns the resourceVersions of all objects that a review reads.
func (w world) versions(t *testing.T) map[string]string {
	t.Helper()
	versions := map[string]string{}
	for _, list := range []client.ObjectList{
		&v1alpha1.ComputeAllocationList{}, &v1alpha1.ClusterPolicyList{}, &kueue.ClusterQueueList{}, &kueue.LocalQueueList{},
		&kueue.ResourceFlavorList{}, &kueue.CohortList{}, &kueue.WorkloadPriorityClassList{}, &corev1.NamespaceList{},
	} {
		must(t, w.Client.List(t.Context(), list))
		must(t, meta.EachListItem(list, func(o runtime.Object) error {
			object, err := meta.Accessor(o)
			versions[fmt.Sprintf("%T %s/%s", o, object.GetNamespace(), object.GetName())] = object.GetResourceVersion()
			return err
		}))
	}
	return versions
}

// wantKind fails unless err is of this kind and contains the texts.
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
