// Package uninstall removes Kuota from a cluster. Kueue, its queues and running tasks
// stay unchanged.
package uninstall

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/managed"
	"kuota.dev/kuota/governance/controllers/dependencies"
	"kuota.dev/kuota/governance/controllers/loopguard"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/tasks"

	admission "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// prefix begins the names of Kuota's cluster-scoped objects.
const prefix = "kuota-"

// crdTimeout bounds how long the API server can take to delete a CRD with its
// objects.
const crdTimeout = time.Minute

// Options configure Run.
type Options struct {
	DryRun   bool      // only print the steps
	KeepCRDs bool      // keep the CRDs with the policy and all allocations
	Out      io.Writer // receives one line for each step
}

// Run removes Kuota, with a client of a cluster admin. The order matters:
//
//  1. What lets the admins of departments write, which an admission policy limits.
//  2. Admission policies, so that nothing in between rejects jobs.
//  3. The console's RBAC, so that a running console reverts nothing.
//  4. The bindings of members of departments.
//  5. Holds of the loop guard, and gates of tasks that wait for others, which nothing would remove any more.
//  6. Finalizers, for which the CRDs would wait.
//  7. CRDs with their objects, unless they are kept.
//
// Run continues where it stopped if it is called again.
func Run(ctx context.Context, c client.Client, o Options) error {
	u := uninstaller{Client: c, Options: o}
	steps := []func(context.Context) error{u.delegates, u.admissionPolicies, u.consoleRBAC, u.departmentBindings, u.releaseWorkloads, u.finalizers}
	if !o.KeepCRDs {
		steps = append(steps, u.crds)
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	u.printf("Kueue, its queues, flavors, Cohort and priority classes, team namespaces with their members, and all tasks stay unchanged.")
	if o.KeepCRDs {
		u.printf("The CRDs, the policy and all allocations remain. After a new installation Kuota manages them again; until then their quota does not change.")
	}
	u.printf("Not deleted, delete yourself if you want to: the console, its namespace with sessions and versions, and ClusterRoles kuota-admin and kuota-team-member, which still let people see queues and submit jobs, and kuota-department-admin and kuota-department-viewer, to which no user is bound.")
	return nil
}

type uninstaller struct {
	client.Client
	Options
}

func (u uninstaller) printf(format string, args ...any) { fmt.Fprintf(u.Out, format+"\n", args...) }

// delegates deletes the role of the admins of departments before its binding: a running console
// may bind it again, which then grants nothing.
func (u uninstaller) delegates(ctx context.Context) error {
	role := func(name string) bool { return name == desired.DepartmentDelegateRole || name == desired.DelegatesName }
	return u.deleteOurs(ctx, role, &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{})
}

// departmentBindings deletes the RoleBindings of members of departments. Those of the members
// of teams stay.
func (u uninstaller) departmentBindings(ctx context.Context) error {
	var list rbacv1.RoleBindingList
	if err := u.list(ctx, &list, "RoleBindings"); err != nil {
		return err
	}
	for i := range list.Items {
		if b := &list.Items[i]; b.Name == desired.DepartmentName && managed.ByKuota(b) {
			if err := u.delete(ctx, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// admissionPolicies deletes bindings before their policies.
func (u uninstaller) admissionPolicies(ctx context.Context) error {
	return u.deleteOurs(ctx, func(name string) bool { return strings.HasPrefix(name, prefix) },
		&admission.ValidatingAdmissionPolicyBindingList{}, &admission.ValidatingAdmissionPolicyList{},
		&admission.MutatingAdmissionPolicyBindingList{}, &admission.MutatingAdmissionPolicyList{})
}

// consoleRBAC deletes the console's permissions. The roles of users stay,
// because team members are bound to them.
func (u uninstaller) consoleRBAC(ctx context.Context) error {
	names := sets.New("kuota-console", "kuota-impersonation", "kuota-elastic")
	return u.deleteOurs(ctx, names.Has, &rbacv1.ClusterRoleBindingList{}, &rbacv1.ClusterRoleList{})
}

// deleteOurs deletes the objects of kinds that have a name of Kuota. A kind may not be served.
func (u uninstaller) deleteOurs(ctx context.Context, ours func(name string) bool, lists ...client.ObjectList) error {
	for _, list := range lists {
		if err := u.list(ctx, list, fmt.Sprintf("%T", list)); err != nil {
			return err
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			object, ok := item.(client.Object)
			if !ok || !ours(object.GetName()) {
				return nil
			}
			return u.delete(ctx, object)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// list lists the objects of a kind; none of a kind that is not served.
func (u uninstaller) list(ctx context.Context, list client.ObjectList, name string) error {
	if err := u.List(ctx, list); err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("list %s: %w", name, err)
	}
	return nil
}

func (u uninstaller) delete(ctx context.Context, object client.Object) error {
	kind, err := u.GroupVersionKindFor(object)
	if err != nil {
		return err
	}
	u.printf("%s %s %s", u.verb("delete"), kind.Kind, object.GetName())
	if u.DryRun {
		return nil
	}
	if err := client.IgnoreNotFound(u.Delete(ctx, object)); err != nil {
		return fmt.Errorf("delete %s %s: %w", kind.Kind, object.GetName(), err)
	}
	return nil
}

func (u uninstaller) verb(word string) string {
	if u.DryRun {
		return "would " + word
	}
	return word
}

// releaseWorkloads releases the Workloads that the loop guard keeps out of
// admission, and those that wait for other tasks. One that cannot be released keeps no other one held.
func (u uninstaller) releaseWorkloads(ctx context.Context) (failed error) {
	var workloads kueue.WorkloadList
	if err := u.list(ctx, &workloads, "Workloads"); err != nil {
		return err
	}
	for i := range workloads.Items {
		w := &workloads.Items[i]
		if after, others := tasks.AfterOf(w); len(after) > 0 {
			u.printf("%s the gate of Workload %s/%s, which waits for another task", u.verb("remove"), w.Namespace, w.Name)
			if !u.DryRun {
				failed = errors.Join(failed, dependencies.Release(ctx, u.Client, w, others))
			}
		}
		if _, marked := loopguard.MarkOf(w); !marked {
			continue
		}
		u.printf("%s Workload %s/%s, which the loop guard holds", u.verb("release"), w.Namespace, w.Name)
		if u.DryRun {
			continue
		}
		if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { return u.release(ctx, w) }); client.IgnoreNotFound(err) != nil {
			failed = errors.Join(failed, fmt.Errorf("release Workload %s/%s: %w", w.Namespace, w.Name, err))
		}
	}
	return failed
}

// release releases a Workload that is still held. Kueue may update it at the
// same time.
func (u uninstaller) release(ctx context.Context, w *kueue.Workload) error {
	if err := u.Get(ctx, client.ObjectKeyFromObject(w), w); err != nil {
		return err
	}
	if _, marked := loopguard.MarkOf(w); !marked {
		return nil
	}
	return u.Patch(ctx, w, loopguard.ReleasePatch(w))
}

// finalizers removes Kuota's finalizers from its objects, because no controller
// handles them any more. An object whose finalizers cannot be removed, or that cannot be
// decoded, keeps no other one.
func (u uninstaller) finalizers(ctx context.Context) (failed error) {
	for _, kind := range []string{"ElasticJob", "ComputeAllocation", "Department", "ClusterPolicy"} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind + "List"))
		if err := u.list(ctx, list, kind); err != nil {
			return err
		}
		for i := range list.Items {
			object := &list.Items[i]
			if len(object.Finalizers) == 0 {
				continue
			}
			u.printf("%s the finalizers of %s", u.verb("remove"), object.Name)
			if u.DryRun {
				continue
			}
			err := u.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`)))
			if client.IgnoreNotFound(err) != nil {
				failed = errors.Join(failed, fmt.Errorf("remove the finalizers of %s: %w", object.Name, err))
			}
		}
	}
	return failed
}

// crds deletes the CRDs with the remaining objects, and waits until they are
// deleted.
func (u uninstaller) crds(ctx context.Context) error {
	for _, plural := range []string{"elasticjobs", "computeallocations", "departments", "clusterpolicies"} {
		crd := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: plural + "." + v1alpha1.GroupVersion.Group}}
		crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
		err := u.Get(ctx, client.ObjectKeyFromObject(crd), crd)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		if err := u.delete(ctx, crd); err != nil {
			return err
		}
		if u.DryRun {
			continue
		}
		err = wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, crdTimeout, true, func(ctx context.Context) (bool, error) {
			return apierrors.IsNotFound(u.Get(ctx, client.ObjectKeyFromObject(crd), crd)), nil
		})
		if err != nil {
			return fmt.Errorf("%s is still being deleted: %w. Stop the console, and run this again", crd.Name, err)
		}
	}
	return nil
}
