package access_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/cluster/clustertest"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

func TestMain(m *testing.M) { clustertest.Main(m) }

// connection is the console's connection to the cluster, once for all tests.
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

func setup(t *testing.T) (*clustertest.Cluster, *cluster.Cluster, *access.Service) {
	t.Helper()
	current := clustertest.Get(t)
	c, err := connection()
	if err != nil {
		t.Fatal(err)
	}
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
		_, err := c.Reader()
		return err
	})
	return current, c, &access.Service{Cluster: c}
}

// namespaceFor makes a namespace with a queue, in which the subjects have a role.
func namespaceFor(t *testing.T, c *clustertest.Cluster, role string, subjects ...rbacv1.Subject) string {
	t.Helper()
	name := clustertest.Name("access")
	create(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	create(t, c, &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "queue"}, Spec: kueue.LocalQueueSpec{ClusterQueue: "none"}})
	if len(subjects) > 0 {
		create(t, c, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "members"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   subjects,
		})
	}
	return name
}

func create(t *testing.T, c *clustertest.Cluster, object client.Object) {
	t.Helper()
	if err := c.Client.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

func group(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: name}
}

func user(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
}

// sees waits until the scope of a user is these namespaces.
func sees(t *testing.T, s *access.Service, who governance.User, want ...string) {
	t.Helper()
	clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
		scope, err := s.Scope(ctx, who)
		if err != nil && governance.KindOf(err) != governance.Outside {
			return err
		}
		if (governance.KindOf(err) == governance.Outside) != (err != nil && len(want) == 0) || scope.Empty() != (len(want) == 0) {
			return fmt.Errorf("the scope is empty: %t, with %v", scope.Empty(), err)
		}
		for _, namespace := range want {
			if !scope.Includes(namespace) {
				return fmt.Errorf("%s is not in the scope", namespace)
			}
		}
		return nil
	})
}

// The scope matches RBAC, reviewed for the namespaces that name the user.
func TestScope(t *testing.T) {
	c, _, s := setup(t)
	team := clustertest.Name("team")
	mine := namespaceFor(t, c, "kuota-team-member", group(team), user("someone-else"))
	byName := namespaceFor(t, c, "kuota-team-member", user(team+"@example.com"))
	// A binding that names them without letting them list workloads.
	powerless := namespaceFor(t, c, "system:public-info-viewer", group(team))
	// A service account of that name is another user.
	account := namespaceFor(t, c, "kuota-team-member", rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: team})
	foreign := namespaceFor(t, c, "kuota-team-member", group(team+"-2"))

	ada := governance.User{Name: team + "@example.com", Groups: []string{"x", team}}
	sees(t, s, ada, mine, byName)
	scope, err := s.Scope(t.Context(), ada)
	if err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{powerless, account, foreign, "default", ""} {
		if scope.Includes(namespace) {
			t.Errorf("they see %q", namespace)
		}
	}
	sees(t, s, governance.User{Name: "stranger"})

	for namespace, want := range map[string]bool{mine: true, powerless: false, foreign: false} {
		if may, err := s.MayReadLogs(t.Context(), ada, namespace); err != nil || may != want {
			t.Errorf("reading logs in %s: got %t, %v, want %t", namespace, may, err, want)
		}
	}

	// A user with a ClusterRoleBinding sees all, by the first review.
	everything := clustertest.Name("all")
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: everything},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "kuota-admin"},
		Subjects:   []rbacv1.Subject{group(everything)},
	}
	create(t, c, binding)
	t.Cleanup(func() { _ = c.Client.Delete(context.Background(), binding) })
	boss := governance.User{Name: "boss", Groups: []string{everything}}
	sees(t, s, boss, mine, foreign, "any-other")
	if may, err := s.MayCreateAllocations(t.Context(), boss); err != nil || !may {
		t.Errorf("an admin may make allocations: %t, %v", may, err)
	}
	if may, err := s.MayReadLogs(t.Context(), boss, mine); err != nil || may {
		t.Errorf("an admin of quota may read logs: %t, %v", may, err)
	}
	if may, err := s.MayCreateAllocations(t.Context(), ada); err != nil || may {
		t.Errorf("a member may make allocations: %t, %v", may, err)
	}
}

// Two people whose names and groups run together when joined, at once: each
// gets their own answer.
func TestAnswersAreOnePersons(t *testing.T) {
	c, _, s := setup(t)
	team := clustertest.Name("joined")
	namespace := namespaceFor(t, c, "kuota-team-member", group(team))
	people := map[string]governance.User{
		"in":          {Name: "a", Groups: []string{team}},
		"in by two":   {Name: "a", Groups: []string{"a", team}},
		"out":         {Name: "a", Groups: []string{team + ","}},
		"out, joined": {Name: "a" + team},
		"out, quoted": {Name: "a", Groups: []string{`a","` + team}},
	}
	sees(t, s, people["in"], namespace)
	var asking sync.WaitGroup
	for name, person := range people {
		for range 20 {
			asking.Go(func() {
				allowed, err := s.CanSee(t.Context(), person, namespace)
				if err != nil || allowed != strings.HasPrefix(name, "in") {
					t.Errorf("%s: %t, %v", name, allowed, err)
				}
			})
		}
	}
	asking.Wait()
}

// There are no reviews for users of Kubernetes itself, or without a user.
func TestNobodyIsKubernetes(t *testing.T) {
	_, c, s := setup(t)
	for _, who := range []governance.User{
		{Name: "system:admin"}, {Name: "x", Groups: []string{"system:masters"}}, {Name: "x", Groups: []string{"a", ""}}, {}, {Name: "system:serviceaccount:kuota-system:kuota"},
	} {
		if allowed, err := s.CanSee(t.Context(), who, "default"); allowed || governance.KindOf(err) != governance.Forbidden {
			t.Errorf("%+v: %t, %v", who, allowed, err)
		}
		if _, err := c.ClientAs(who); governance.KindOf(err) != governance.Forbidden {
			t.Errorf("acting as %+v: %v", who, err)
		}
	}
}

// While the API server is away nothing is answered beyond what is remembered,
// and that for ten seconds only.
func TestClosedOnError(t *testing.T) {
	c, _, s := setup(t)
	team := clustertest.Name("closed")
	namespace := namespaceFor(t, c, "kuota-team-member", group(team))
	ada := governance.User{Name: "ada", Groups: []string{team}}
	sees(t, s, ada, namespace)
	if _, err := s.Scope(t.Context(), ada); err != nil {
		t.Fatal(err)
	}
	answered := time.Now()
	c.Without(t, func() {
		if allowed, err := s.CanSee(t.Context(), governance.User{Name: "grace"}, namespace); allowed || governance.KindOf(err) != governance.Unavailable {
			t.Errorf("a new user: %t, %v", allowed, err)
		}
		for {
			allowed, err := s.CanSee(t.Context(), ada, namespace)
			if err != nil {
				if allowed {
					t.Error("an error says yes")
				}
				break
			}
			if age := time.Since(answered); age > 11*time.Second {
				t.Fatalf("an answer is given after %s without the API server", age)
			}
			time.Sleep(100 * time.Millisecond) // to ask again, not to wait for anything
		}
		if _, err := s.Scope(t.Context(), ada); governance.KindOf(err) != governance.Unavailable {
			t.Errorf("the scope of a user without an answer: %v", err)
		}
	})
	sees(t, s, ada, namespace)
}

// The console's account can do for people what it needs to, and nothing else:
// constrained impersonation.
func TestImpersonationIsConstrained(t *testing.T) {
	current, c, _ := setup(t)
	boss := governance.User{Name: "boss@example.com", Groups: []string{"impersonated-admins"}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: clustertest.Name("boss")},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{group("impersonated-admins")},
	}
	create(t, current, binding)
	t.Cleanup(func() { _ = current.Client.Delete(context.Background(), binding) })
	as, err := c.ClientAs(boss)
	if err != nil {
		t.Fatal(err)
	}
	team := clustertest.Name("made")
	made := &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: team}}
	t.Cleanup(func() { _ = current.Client.Delete(context.Background(), made) })
	clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error { return as.Create(ctx, made.DeepCopy()) })
	if err := as.Get(t.Context(), client.ObjectKey{Name: team}, made); err != nil {
		t.Errorf("reading what they made: %v", err)
	}
	for what, do := range map[string]func() error{
		"read a secret": func() error {
			return as.Get(t.Context(), client.ObjectKey{Namespace: "kuota-system", Name: "x"}, &corev1.Secret{})
		},
		"list secrets":     func() error { return as.List(t.Context(), &corev1.SecretList{}) },
		"list allocations": func() error { return as.List(t.Context(), &v1alpha1.ComputeAllocationList{}) },
		"make a namespace": func() error {
			return as.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clustertest.Name("x")}})
		},
		"list tasks": func() error { return as.List(t.Context(), &kueue.WorkloadList{}) },
		"change what pods run": func() error {
			return as.Patch(t.Context(), &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"}}, client.RawPatch(types.MergePatchType, []byte(`{}`)))
		},
		"change what a deployment runs": func() error {
			return as.Patch(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"}}, client.RawPatch(types.MergePatchType, []byte(`{}`)))
		},
		"delete a deployment": func() error {
			return as.Delete(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"}})
		},
		"bind a role": func() error { return as.Create(t.Context(), binding.DeepCopy()) },
		"delete a policy": func() error {
			return as.Delete(t.Context(), &v1alpha1.ClusterPolicy{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
		},
		"write an allocation's status": func() error { return as.Status().Update(t.Context(), made.DeepCopy()) },
		"run a pod": func() error {
			return as.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"}})
		},
	} {
		if err := do(); governance.KindOf(cluster.Translate("try", err)) != governance.Forbidden {
			t.Errorf("as a cluster admin the console may %s: %v", what, err)
		}
	}
	// What it may do to tasks, of which there is none here.
	for what, do := range map[string]func() error{
		"stop a service": func() error {
			scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 1}}
			return as.SubResource("scale").Patch(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"}}, client.RawPatch(types.MergePatchType, []byte(`{"spec": {"replicas": 0}}`)), client.WithSubResourceBody(scale))
		},
		"stop a task": func() error {
			return as.Patch(t.Context(), &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"}}, client.RawPatch(types.MergePatchType, []byte(`{}`)))
		},
		"change a job's class": func() error {
			return as.Patch(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"}}, client.RawPatch(types.MergePatchType, []byte(`{}`)))
		},
		"delete a job": func() error {
			return as.Delete(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"}})
		},
	} {
		if err := do(); governance.KindOf(cluster.Translate("try", err)) != governance.NotFound {
			t.Errorf("as a cluster admin the console may not %s: %v", what, err)
		}
	}
	log, err := c.LogAs(t.Context(), boss, "default", "x", &corev1.PodLogOptions{})
	if err == nil {
		log.Close()
	}
	if governance.KindOf(cluster.Translate("try", err)) != governance.NotFound {
		t.Errorf("as a cluster admin the console may not read a log: %v", err)
	}
	// A member is refused by Kubernetes itself, whatever the console asks.
	member, err := c.ClientAs(governance.User{Name: "member"})
	if err != nil {
		t.Fatal(err)
	}
	if err := member.Create(t.Context(), &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: clustertest.Name("no")}}); governance.KindOf(cluster.Translate("try", err)) != governance.Forbidden {
		t.Errorf("a member makes an allocation: %v", err)
	}
}

// Five thousand groups fit into a review and into a write.
func TestManyGroups(t *testing.T) {
	c, connection, s := setup(t)
	team := clustertest.Name("many")
	var groups []string
	for i := range 5000 {
		groups = append(groups, fmt.Sprintf("CN=group-%05d,OU=somewhere,DC=example,DC=com", i))
	}
	many := governance.User{Name: "many@example.com", Groups: append(groups, team)}
	namespace := namespaceFor(t, c, "kuota-team-member", group(team))
	sees(t, s, many, namespace)
	as, err := connection.ClientAs(many)
	if err != nil {
		t.Fatal(err)
	}
	// Refused because they may not, and not because it is too long.
	err = as.Create(t.Context(), &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: team}})
	if governance.KindOf(cluster.Translate("try", err)) != governance.Forbidden {
		t.Errorf("a write with 5,000 groups: %v", err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: team},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "kuota-admin"},
		Subjects:   []rbacv1.Subject{group(team)},
	}
	create(t, c, binding)
	t.Cleanup(func() { _ = c.Client.Delete(context.Background(), binding) })
	clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
		return as.Create(ctx, &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: team}})
	})
	t.Cleanup(func() {
		_ = c.Client.Delete(context.Background(), &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: team}})
	})
}
