package allocations_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/quota/desired"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// department creates a department with an admin and returns both.
func (w world) department(t *testing.T, prefix string, gpus int64) (name string, admin governance.User) {
	t.Helper()
	name = clustertest.Name(prefix)
	admin = governance.User{Name: name + "-admin@example.com"}
	w.createDepartment(t, name, "", gpus, admin)
	return name, admin
}

func (w world) createDepartment(t *testing.T, name, parent string, count int64, admin governance.User) {
	t.Helper()
	d := &v1alpha1.Department{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.DepartmentSpec{
		Parent: parent, Quota: gpus(count).Quota, Members: []v1alpha1.DepartmentMember{{Member: v1alpha1.Member{Kind: "User", Name: admin.Name}, Role: v1alpha1.DepartmentAdmin}},
	}}
	must(t, w.Client.Create(t.Context(), d))
	t.Cleanup(func() { _ = w.Client.Delete(context.Background(), d) })
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		governed, err := w.Access.Delegated(ctx, admin)
		if err != nil || !governed.Includes(name) {
			return fmt.Errorf("%s governs %v (%v), want %s", admin.Name, governed.Departments(), err, name)
		}
		return nil
	})
}

// in returns a spec of n GPUs in a department.
func in(department string, n int64) v1alpha1.ComputeAllocationSpec {
	spec := gpus(n)
	spec.Department = department
	return spec
}

// An admin of a department sees and changes its teams, although the API server lets them read no
// allocation, and learns nothing of other teams, not even whether there is one of a name.
func TestDelegates(t *testing.T) {
	w := setup(t)
	research, head := w.department(t, "research", 8)
	sales, _ := w.department(t, "sales", 4)
	theirs := w.team(t, "theirs", in(sales, 1))
	free := w.team(t, "free", gpus(1))

	// A department without a team: its admin is no stranger.
	state, err := w.State(t.Context(), head)
	if err != nil || len(state.Allocations) != 0 || state.All || len(state.Others) == 0 {
		t.Errorf("before the first team: got %d allocations and others %v (%v), want none and sums of others", len(state.Allocations), state.Others, err)
	}
	own := clustertest.Name("own")
	created := &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: own}, Spec: in(research, 2)}
	if review, err := w.Review(t.Context(), head, created, nil); err != nil || review.Empty() {
		t.Errorf("review: got %+v and %v, want changes", review, err)
	}
	must(t, w.Create(t.Context(), head, created, nil, "form-1"))
	t.Cleanup(func() { w.deleteTeam(own) })
	must(t, w.Create(t.Context(), head, created, nil, "form-1")) // the response was lost
	if err := w.Create(t.Context(), head, created, nil, "form-2"); governance.KindOf(err) != governance.Invalid || !strings.Contains(fmt.Sprint(err), "already in use") {
		t.Errorf("a name that is taken: got %v, want Invalid", err)
	}
	if state, err = w.State(t.Context(), head); err != nil || !slices.ContainsFunc(state.Allocations, func(a v1alpha1.ComputeAllocation) bool { return a.Name == own }) || len(state.Allocations) != 1 {
		t.Errorf("after it: got %d allocations (%v), want only %s", len(state.Allocations), err, own)
	}
	now := w.settled(t, own)
	now.Spec.Activation = v1alpha1.Hold
	must(t, w.Update(t.Context(), head, &now, nil))
	if _, err := w.QueueActivity(t.Context(), head, own); err != nil {
		t.Errorf("effects of a hold: %v", err)
	}
	if _, err := w.PreviewDeletion(t.Context(), head, own); err != nil {
		t.Errorf("effects of a deletion: %v", err)
	}

	// Not of others.
	for _, other := range []v1alpha1.ComputeAllocation{theirs, free} {
		_, missing := w.Find(t.Context(), head, "no-such-team")
		_, found := w.Find(t.Context(), head, other.Name)
		same := func(what string, err error) {
			t.Helper()
			if governance.KindOf(err) != governance.NotFound || strings.ReplaceAll(fmt.Sprint(err), other.Name, "") != strings.ReplaceAll(fmt.Sprint(missing), "no-such-team", "") {
				t.Errorf("%s of %s: got %v, want what is answered for no team: %v", what, other.Name, err, missing)
			}
		}
		same("find", found)
		_, err := w.QueueActivity(t.Context(), head, other.Name)
		same("hold", err)
		_, err = w.PreviewDeletion(t.Context(), head, other.Name)
		same("deletion", err)
		changed := other.DeepCopy()
		changed.Spec.Department = research
		_, err = w.Review(t.Context(), head, changed, nil)
		same("review", err)
		same("update", w.Update(t.Context(), head, changed, nil))
		missing = w.Delete(t.Context(), head, "no-such-team", allocations.Deletion{ResourceVersion: other.ResourceVersion})
		same("delete", w.Delete(t.Context(), head, other.Name, allocations.Deletion{ResourceVersion: other.ResourceVersion}))
	}
	for _, department := range []string{"", sales, "no-such-department"} {
		one := &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: clustertest.Name("new")}, Spec: in(department, 1)}
		moved := w.settled(t, own)
		moved.Spec.Department = department
		_, review := w.Review(t.Context(), head, one, nil)
		for what, err := range map[string]error{"review": review, "create": w.Create(t.Context(), head, one, nil, ""), "move": w.Update(t.Context(), head, &moved, nil)} {
			if governance.KindOf(err) != governance.Invalid {
				t.Errorf("%s in department %q: got %v, want Invalid", what, department, err)
			}
		}
	}
	if err := w.Delete(t.Context(), head, own, allocations.Deletion{ResourceVersion: now.ResourceVersion, Release: true}); governance.KindOf(err) != governance.Forbidden {
		t.Errorf("release: got %v, want Forbidden", err)
	}
	now = w.settled(t, own)
	must(t, w.Delete(t.Context(), head, own, allocations.Deletion{ResourceVersion: now.ResourceVersion, Drain: true, Reason: "it is over"}))
}

// The namespace that a deleted team leaves has its Secrets and volumes, and is not for the admins
// of another department.
func TestNamespaceStaysInItsDepartment(t *testing.T) {
	w := setup(t)
	research, _ := w.department(t, "research", 8)
	sales, other := w.department(t, "sales", 8)
	vision := clustertest.Name("vision")
	w.createDepartment(t, vision, research, 4, governance.User{Name: vision + "@example.com"})
	left := w.team(t, "left", in(research, 1))
	outside := w.team(t, "outside", gpus(1))
	annotation := func(team string) string {
		var n corev1.Namespace
		must(t, w.Client.Get(t.Context(), client.ObjectKey{Name: w.Naming.Namespace(team)}, &n))
		return n.Annotations[desired.AnnotationDepartment]
	}
	if got := annotation(left.Name); !strings.HasPrefix(got, research+"/") {
		t.Errorf("annotation of the namespace: got %q, want that of %s", got, research)
	}
	// A team that lives takes its namespace along.
	left.Spec.Department = sales
	must(t, w.Update(t.Context(), w.admin, &left, nil))
	left = w.settled(t, left.Name)
	clustertest.Eventually(t, soon, func(context.Context) error {
		if got := annotation(left.Name); !strings.HasPrefix(got, sales+"/") {
			return fmt.Errorf("annotation of the namespace of a team that moved: got %q, want that of %s", got, sales)
		}
		return nil
	})
	left.Spec.Department = vision
	must(t, w.Update(t.Context(), w.admin, &left, nil))
	w.settled(t, left.Name)
	clustertest.Eventually(t, soon, func(context.Context) error {
		if got := annotation(left.Name); !strings.HasPrefix(got, vision+"/") {
			return fmt.Errorf("annotation of the namespace of a team that moved: got %q, want that of %s", got, vision)
		}
		return nil
	})
	for _, team := range []string{left.Name, outside.Name} {
		w.deleteTeam(team)
		clustertest.Eventually(t, soon, func(ctx context.Context) error {
			if _, err := w.Find(ctx, w.admin, team); governance.KindOf(err) != governance.NotFound {
				return fmt.Errorf("%s exists: %v", team, err)
			}
			return nil
		})
	}
	again := func(user governance.User, team, department string) error {
		one := &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: team}, Spec: in(department, 1)}
		_, err := w.Review(t.Context(), user, one, nil)
		return err
	}
	for _, tc := range []struct {
		user             governance.User
		team, department string
		want             string // part of the conflict; empty for none
	}{
		{other, left.Name, sales, "of department " + vision},
		{w.admin, left.Name, "", "remove the annotation " + desired.AnnotationDepartment},
		{w.admin, left.Name, sales, "set the annotation " + desired.AnnotationDepartment},
		{w.admin, left.Name, vision, ""},
		{w.admin, left.Name, research, ""}, // above it
		{other, outside.Name, sales, "of no department"},
		{w.admin, outside.Name, "", ""},
	} {
		err := again(tc.user, tc.team, tc.department)
		if tc.want == "" && err != nil || tc.want != "" && !strings.Contains(messages(err), tc.want) {
			t.Errorf("%s as a team of department %q: got %v, want %q", tc.team, tc.department, messages(err), tc.want)
		}
	}
	// Not even by a department of the same name that is another one.
	must(t, w.Client.Delete(t.Context(), &v1alpha1.Department{ObjectMeta: metav1.ObjectMeta{Name: vision}}))
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		err := w.Client.Get(ctx, client.ObjectKey{Name: vision}, &v1alpha1.Department{})
		if client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("department %s exists (%v)", vision, err)
		}
		return nil
	})
	w.createDepartment(t, vision, sales, 4, other)
	clustertest.Eventually(t, soon, func(context.Context) error { // until the cache has the new one
		if err := again(other, left.Name, vision); !strings.Contains(messages(err), "of department "+vision) {
			return fmt.Errorf("by a department of the same name: got %v, want a conflict", err)
		}
		return nil
	})
	// Also the controller refuses it.
	direct := &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: left.Name}, Spec: in(sales, 1)}
	must(t, w.Client.Create(t.Context(), direct))
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		var a v1alpha1.ComputeAllocation
		if err := w.Client.Get(ctx, client.ObjectKeyFromObject(direct), &a); err != nil {
			return err
		}
		for _, c := range a.Status.Conditions {
			if c.Type == v1alpha1.ConditionReady && c.Reason == v1alpha1.ReasonBlocked && strings.Contains(c.Message, "has the data of an earlier team") {
				return nil
			}
		}
		return fmt.Errorf("conditions of a team in another department: %+v", a.Status.Conditions)
	})
}

// messages returns an error with the messages of its fields.
func messages(err error) string {
	var ours *governance.Error
	if err == nil || !errors.As(err, &ours) {
		return fmt.Sprint(err)
	}
	return ours.Message + " " + governance.JoinFieldErrors(ours.Fields)
}
