package bypasses_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/controllers/reconcile"
	"kuota.dev/kuota/governance/quota/desired"

	admission "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// delegation is two departments, one below the first, and their teams and members. Texts of
// its tests name them in capitals: see departmentObjects.
type delegation struct {
	*clustertest.Cluster
	names map[string]string
	texts *strings.Replacer
}

// departmentObjects are the departments RESEARCH and SALES, VISION below RESEARCH, and a team of each. OUT is in
// none; LOST and ORPHAN are in departments that do not exist. HEAD, CHIEF and OTHER are the admins of RESEARCH, VISION and SALES; VIEWER sees RESEARCH.
const departmentObjects = `
apiVersion: kuota.dev/v1alpha1
kind: Department
metadata: {name: RESEARCH}
spec:
  quota: [{instanceType: ml.g5.2xlarge, accelerators: 6}]
  members: [{kind: User, name: HEAD, role: Admin}, {kind: User, name: VIEWER}, {kind: Group, name: HEADS, role: Admin}, {kind: User, name: READER, role: Admin}]
---
apiVersion: kuota.dev/v1alpha1
kind: Department
metadata: {name: VISION}
spec: {parent: RESEARCH, quota: [{instanceType: ml.g5.2xlarge, accelerators: 2}], members: [{kind: User, name: CHIEF, role: Admin}]}
---
apiVersion: kuota.dev/v1alpha1
kind: Department
metadata: {name: SALES}
spec: {quota: [{instanceType: ml.g5.2xlarge, accelerators: 2}], members: [{kind: User, name: OTHER, role: Admin}]}
---
apiVersion: kuota.dev/v1alpha1
kind: ComputeAllocation
metadata: {name: ATOMS}
spec: {department: RESEARCH, members: [{kind: User, name: MEMBER}], quota: [{instanceType: ml.g5.2xlarge, accelerators: 1}]}
---
apiVersion: kuota.dev/v1alpha1
kind: ComputeAllocation
metadata: {name: PIXELS}
spec: {department: VISION, members: [{kind: User, name: MEMBER}], quota: [{instanceType: ml.g5.2xlarge, accelerators: 1}]}
---
apiVersion: kuota.dev/v1alpha1
kind: ComputeAllocation
metadata: {name: DEALS}
spec: {department: SALES, quota: [{instanceType: ml.g5.2xlarge, accelerators: 1}]}
---
apiVersion: kuota.dev/v1alpha1
kind: ComputeAllocation
metadata: {name: OUT}
spec: {quota: [{instanceType: ml.g5.2xlarge, accelerators: 1}]}
---
apiVersion: kuota.dev/v1alpha1
kind: ComputeAllocation
metadata: {name: LOST}
spec: {department: MISSING, quota: [{instanceType: ml.g5.2xlarge, accelerators: 1}]}
---
apiVersion: kuota.dev/v1alpha1
kind: Department
metadata: {name: ORPHAN}
spec: {parent: ABOVE}
---
apiVersion: kuota.dev/v1alpha1
kind: ComputeAllocation
metadata: {name: RELEASED, annotations: {kuota.dev/release: "true"}}
spec: {department: RESEARCH, quota: [{instanceType: ml.g5.2xlarge, accelerators: 1}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: READER}
rules:
- {apiGroups: ["*"], resources: ["*"], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [namespaces], verbs: [create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: READER}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: READER}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: READER}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: BOSS}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kuota-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: BOSS}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: CUSTOM}
rules: [{apiGroups: [kuota.dev], resources: [computeallocations, departments], verbs: [get, create, update]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: CUSTOM}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: CUSTOM}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: CUSTOM}]
`

const patches = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: PATCHES}
rules: [{apiGroups: [kuota.dev], resources: [computeallocations, departments], verbs: [patch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: PATCHES}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: PATCHES}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: HEAD}, {apiGroup: rbac.authorization.k8s.io, kind: User, name: CHIEF}, {apiGroup: rbac.authorization.k8s.io, kind: User, name: OTHER}]
`

// newDelegation creates the objects, and waits until Kuota has bound the roles.
func newDelegation(t *testing.T) delegation {
	t.Helper()
	current = clustertest.Get(t)
	if err := controllers(); err != nil {
		t.Fatal(err)
	}
	id := clustertest.Name("d")
	d := delegation{Cluster: current, names: map[string]string{}}
	var pairs []string
	for _, name := range []string{"RESEARCH", "VISION", "SALES", "ATOMS", "PIXELS", "DEALS", "RELEASED", "LOST", "MISSING", "ORPHAN", "ABOVE", "OUT", "NEW", "NONE", "BOSS", "HEADS", "HEAD", "CHIEF", "OTHER", "READER", "CUSTOM", "VIEWER", "MEMBER", "STRANGER", "PATCHES"} {
		d.names[name] = id + "-" + strings.ToLower(name)
		pairs = append(pairs, name, d.names[name])
	}
	d.texts = strings.NewReplacer(pairs...)
	t.Cleanup(func() {
		ctx := context.Background()
		for _, name := range []string{"PIXELS", "ATOMS", "DEALS", "RELEASED", "LOST", "OUT", "NEW"} {
			_ = d.Client.Delete(ctx, &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: d.names[name]}})
		}
		for _, name := range []string{"VISION", "RESEARCH", "SALES", "ORPHAN", "NEW"} {
			_ = d.Client.Delete(ctx, &v1alpha1.Department{ObjectMeta: metav1.ObjectMeta{Name: d.names[name]}})
		}
		for _, name := range []string{"READER", "BOSS", "CUSTOM", "PATCHES"} {
			_ = d.Client.Delete(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: d.names[name]}})
			_ = d.Client.Delete(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: d.names[name]}})
		}
	})
	d.Apply(t, d.texts.Replace(departmentObjects))
	for user, department := range map[string]string{"HEAD": "RESEARCH", "READER": "RESEARCH", "CHIEF": "VISION", "OTHER": "SALES"} {
		d.waitMay(t, user, true, permission{"create", "computeallocations", ""}, permission{"govern", "departments", "kuota-department-" + d.names[department]})
	}
	d.waitMay(t, "HEAD", true, permission{"govern", "departments", "kuota-department-" + d.names["VISION"]})
	d.waitMay(t, "BOSS", true, permission{"create", "computeallocations", ""})
	return d
}

// permission is a verb on a resource of kuota.dev, in a namespace or in none.
type permission struct{ verb, resource, namespace string }

// waitMay waits until the API server says that a user may, or may not, do all of these.
func (d delegation) waitMay(t *testing.T, user string, want bool, permissions ...permission) {
	t.Helper()
	for _, p := range permissions {
		clustertest.Eventually(t, waitLimit, func(ctx context.Context) error {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: d.names[user], ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: p.verb, Group: v1alpha1.GroupVersion.Group, Resource: p.resource, Namespace: p.namespace}}}
			if err := d.Client.Create(ctx, review); err != nil || review.Status.Allowed != want {
				return fmt.Errorf("%s may %+v: got %v (%v), want %v", user, p, review.Status.Allowed, err, want)
			}
			return nil
		})
	}
}

// as returns a client of a user.
func (d delegation) as(t *testing.T, user string, groups ...string) client.WithWatch {
	t.Helper()
	config := rest.CopyConfig(d.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: d.names[user], Groups: append(groups, "system:authenticated")}
	c, err := client.NewWithWatch(config, client.Options{Scheme: d.Client.Scheme(), Mapper: d.Client.RESTMapper()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// change is a request for one object.
type change struct {
	how  string // create, apply, update, merge, json, delete, or a subresource and one of these
	kind string // team or department
	name string
	body string // flow YAML: the spec, with metadata under META; or the patch
}

func (c change) String() string { return fmt.Sprintf("%s %s %s %s", c.how, c.kind, c.name, c.body) }

// try sends a change; dry changes nothing.
func (d delegation) try(t *testing.T, as client.Client, c change, dry bool) error {
	t.Helper()
	object := &unstructured.Unstructured{}
	kind := map[string]string{"team": "ComputeAllocation", "department": "Department"}[c.kind]
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	object.SetName(d.names[c.name])
	body := []byte(d.texts.Replace(c.body))
	var only []string
	if dry {
		only = []string{metav1.DryRunAll}
	}
	ctx := t.Context()
	fill := func() {
		sent := map[string]any{}
		if err := yaml.Unmarshal(body, &sent); err != nil {
			t.Fatal(err)
		}
		if _, patch := sent["spec"]; !patch {
			sent = map[string]any{"spec": sent}
		}
		if metadata, ok := sent["metadata"].(map[string]any); ok {
			all, _ := object.Object["metadata"].(map[string]any)
			maps.Copy(all, metadata)
		}
		object.Object["spec"] = sent["spec"]
	}
	json := func() []byte {
		text, err := yaml.YAMLToJSON(body)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	how, sub, _ := strings.Cut(c.how, "/")
	switch how {
	case "create":
		fill()
		return as.Create(ctx, object, &client.CreateOptions{DryRun: only})
	case "apply":
		fill()
		text, err := object.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		return as.Patch(ctx, object, client.RawPatch(types.ApplyPatchType, text), &client.PatchOptions{DryRun: only, FieldManager: "bypass", Force: new(true)})
	case "update":
		if err := d.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			t.Fatal(err)
		}
		fill()
		return as.Update(ctx, object, &client.UpdateOptions{DryRun: only})
	case "delete":
		return as.Delete(ctx, object, &client.DeleteOptions{DryRun: only})
	}
	patch := client.RawPatch(map[string]types.PatchType{"merge": types.MergePatchType, "json": types.JSONPatchType}[how], json())
	if sub != "" {
		return as.SubResource(sub).Patch(ctx, object, patch, &client.SubResourcePatchOptions{PatchOptions: client.PatchOptions{DryRun: only}})
	}
	return as.Patch(ctx, object, patch, &client.PatchOptions{DryRun: only})
}

const quota1 = "quota: [{instanceType: ml.g5.2xlarge, accelerators: 1}]"

// Why the API server refuses a change: the department, a field, or RBAC.
const (
	notYours  = "you are not an admin of "
	noParent  = "choose a department that you are an admin of"
	clusters  = "it is in no department, so that only admins of the cluster can change it"
	fixed     = "only admins of the cluster can"
	named     = "names a department of this name already"
	forbidden = "is forbidden: User"
)

// TestDelegatesStayInTheirDepartments tries each way in which an admin of a department could
// write what is not below it, or what is of the whole cluster, and each legitimate one.
func TestDelegatesStayInTheirDepartments(t *testing.T) {
	d := newDelegation(t)
	// Another role lets them patch, so that the policy decides about patches too.
	d.Apply(t, d.texts.Replace(patches))
	for _, user := range []string{"HEAD", "CHIEF", "OTHER"} {
		d.waitMay(t, user, true, permission{"patch", "computeallocations", ""})
	}
	team := func(how, name, body string) change { return change{how, "team", name, body} }
	department := func(how, name, body string) change { return change{how, "department", name, body} }
	for _, name := range []string{"MISSING", "ABOVE"} { // until the API server knows the kinds of the policies' parameters
		clustertest.Eventually(t, waitLimit, func(context.Context) error {
			if err := d.try(t, d.as(t, "HEAD"), department("create", name, "{parent: RESEARCH, "+quota1+"}"), true); err == nil || !strings.Contains(err.Error(), named) {
				return fmt.Errorf("a department that is named already: got %v, want %q", err, named)
			}
			return nil
		})
	}
	for _, tc := range []struct {
		user   string
		change change
		want   string // part of the refusal; empty if the API server accepts it
	}{
		// Legitimate.
		{"HEAD", team("create", "NEW", "{department: RESEARCH, members: [{kind: User, name: MEMBER}], "+quota1+"}"), ""},
		{"HEAD", team("create", "NEW", "{department: VISION, "+quota1+"}"), ""},
		{"HEAD", team("apply", "NEW", "{department: RESEARCH, "+quota1+"}"), ""},
		{"HEAD", team("merge", "ATOMS", "{spec: {activation: Hold, fairShareWeight: 3}}"), ""},
		{"HEAD", team("update", "ATOMS", "{department: RESEARCH, activation: Hold}"), ""},
		{"HEAD", team("json", "ATOMS", `[{op: replace, path: /spec/department, value: "VISION"}]`), ""}, // both are HEAD's
		{"HEAD", team("merge", "ATOMS", "{metadata: {annotations: {kuota.dev/change-reason: because, kuota.dev/drain: 'true'}}}"), ""},
		{"HEAD", team("delete", "ATOMS", ""), ""},
		{"HEAD", team("merge", "PIXELS", "{spec: {activation: Hold}}"), ""},
		{"CHIEF", team("merge", "PIXELS", "{spec: {activation: Hold}}"), ""},
		{"CHIEF", team("delete", "PIXELS", ""), ""},
		{"HEAD", department("merge", "VISION", "{spec: {members: [], fairShareWeight: 3, quota: [{instanceType: ml.g5.2xlarge, accelerators: 1}]}}"), ""},
		{"HEAD", department("create", "NEW", "{parent: RESEARCH, "+quota1+"}"), ""},
		{"CHIEF", department("create", "NEW", "{parent: VISION, "+quota1+"}"), ""},
		{"HEAD", department("delete", "VISION", ""), ""},
		{"BOSS", team("merge", "OUT", "{spec: {department: SALES}}"), ""},
		{"BOSS", team("create", "NEW", "{"+quota1+"}"), ""},
		{"BOSS", department("merge", "RESEARCH", "{spec: {fairShareWeight: 3}}"), ""},
		{"BOSS", team("delete", "RELEASED", ""), ""},
		{"CUSTOM", team("create", "NEW", "{"+quota1+"}"), ""}, // roles that exist stay as they are
		{"CUSTOM", team("update", "DEALS", "{department: SALES, activation: Hold}"), ""},

		// The department of a team.
		{"HEAD", team("create", "NEW", "{"+quota1+"}"), noParent},
		{"HEAD", team("create", "NEW", "{department: SALES, "+quota1+"}"), notYours},
		{"HEAD", team("create", "NEW", "{department: NONE, "+quota1+"}"), notYours}, // it does not exist
		{"HEAD", team("create", "NEW", `{department: "../kuota-department-x", `+quota1+"}"), notYours},
		{"HEAD", team("create", "NEW", "{metadata: {labels: {kuota.dev/department: RESEARCH}}, spec: {department: SALES, "+quota1+"}}"), notYours},
		{"HEAD", team("apply", "NEW", "{department: SALES, "+quota1+"}"), notYours},
		{"CHIEF", team("create", "NEW", "{department: RESEARCH, "+quota1+"}"), notYours},
		{"HEAD", team("merge", "ATOMS", "{spec: {department: SALES}}"), notYours},
		{"HEAD", team("json", "ATOMS", `[{op: replace, path: /spec/department, value: "SALES"}]`), notYours},
		{"HEAD", team("apply", "ATOMS", "{department: SALES}"), notYours},
		{"HEAD", team("update", "ATOMS", "{department: SALES}"), notYours},
		{"HEAD", team("merge", "ATOMS", "{spec: {department: null}}"), noParent},
		{"HEAD", team("json", "ATOMS", "[{op: remove, path: /spec/department}]"), noParent},
		{"HEAD", team("update", "ATOMS", "{"+quota1+"}"), noParent},
		{"HEAD", team("merge", "DEALS", "{spec: {department: RESEARCH}}"), notYours},
		{"HEAD", team("merge", "DEALS", "{spec: {activation: Hold}}"), notYours},
		{"HEAD", team("merge", "DEALS", "{metadata: {labels: {kuota.dev/department: RESEARCH}}}"), notYours},
		{"HEAD", team("merge", "DEALS", "{metadata: {annotations: {kuota.dev/drain: 'true'}}}"), notYours},
		{"HEAD", team("delete", "DEALS", ""), notYours},
		{"HEAD", team("merge", "OUT", "{spec: {department: RESEARCH}}"), clusters},
		{"HEAD", team("delete", "OUT", ""), clusters},
		{"CHIEF", team("merge", "ATOMS", "{spec: {department: VISION}}"), notYours},
		{"CHIEF", team("merge", "PIXELS", "{spec: {department: RESEARCH}}"), notYours},
		{"CHIEF", team("delete", "ATOMS", ""), notYours},

		// What is of the whole cluster.
		{"HEAD", team("create", "NEW", "{department: RESEARCH, namespace: kuota-taken, "+quota1+"}"), fixed},
		{"HEAD", team("create", "NEW", "{department: RESEARCH, clusterQueueName: other, "+quota1+"}"), fixed},
		{"HEAD", team("create", "NEW", "{department: RESEARCH, clusterQueueName: other, localQueueName: other, "+quota1+"}"), fixed},
		{"HEAD", team("create", "NEW", "{department: RESEARCH, clusterQueueName: other, coveredResources: [cpu], "+quota1+"}"), fixed},
		{"HEAD", team("create", "NEW", "{department: RESEARCH, clusterQueueName: other, management: Observe, "+quota1+"}"), fixed},
		{"HEAD", team("create", "NEW", "{clusterQueueName: other, cohortName: other, "+quota1+"}"), noParent}, // a department has no cohortName
		{"HEAD", team("create", "NEW", "{metadata: {finalizers: [example.com/stay]}, spec: {department: RESEARCH, "+quota1+"}}"), fixed},
		{"HEAD", team("merge", "ATOMS", "{metadata: {finalizers: null}}"), fixed},
		{"HEAD", team("json", "ATOMS", "[{op: remove, path: /metadata/finalizers/0}]"), fixed},
		{"HEAD", team("merge", "ATOMS", "{metadata: {ownerReferences: [{apiVersion: v1, kind: Node, name: some, uid: some}]}}"), fixed},
		{"HEAD", team("merge", "ATOMS", "{metadata: {annotations: {kuota.dev/release: 'true'}}}"), fixed},
		{"HEAD", team("create", "NEW", "{metadata: {annotations: {kuota.dev/release: 'true'}}, spec: {department: RESEARCH, "+quota1+"}}"), fixed},
		{"HEAD", team("merge", "RELEASED", "{metadata: {annotations: {kuota.dev/release: 'yes'}}}"), fixed},
		{"HEAD", team("delete", "RELEASED", ""), fixed},
		{"HEAD", team("merge", "RELEASED", "{metadata: {annotations: {kuota.dev/release: null}}}"), ""},
		{"HEAD", team("merge/status", "ATOMS", "{status: {namespace: default}}"), forbidden},
		{"HEAD", department("merge/status", "VISION", "{status: {parent: null}}"), forbidden},
		{"HEAD", department("merge/status", "RESEARCH", "{status: {quota: []}}"), forbidden},

		// Departments: their own, others, and the top.
		{"HEAD", department("merge", "RESEARCH", "{spec: {fairShareWeight: 100}}"), clusters},
		{"HEAD", department("merge", "RESEARCH", "{spec: {quota: [{instanceType: ml.g5.2xlarge, accelerators: 100}]}}"), clusters},
		{"HEAD", department("merge", "RESEARCH", "{spec: {parent: SALES}}"), clusters},
		{"HEAD", department("merge", "RESEARCH", "{spec: {parent: VISION}}"), clusters},
		{"HEAD", department("update", "RESEARCH", "{members: []}"), clusters},
		{"HEAD", department("delete", "RESEARCH", ""), clusters},
		{"HEAD", department("create", "NEW", "{"+quota1+"}"), noParent},
		{"HEAD", department("create", "NEW", "{parent: SALES, "+quota1+"}"), notYours},
		{"HEAD", department("create", "NEW", "{parent: NONE, "+quota1+"}"), notYours},
		{"HEAD", department("create", "NEW", "{parent: RESEARCH, cohortName: other, "+quota1+"}"), fixed},
		{"HEAD", department("create", "NEW", "{metadata: {finalizers: [example.com/stay]}, spec: {parent: RESEARCH}}"), fixed},
		{"HEAD", department("merge", "VISION", "{metadata: {finalizers: null}}"), fixed},
		{"HEAD", department("merge", "VISION", "{metadata: {ownerReferences: [{apiVersion: v1, kind: Node, name: some, uid: some}]}}"), fixed},
		{"HEAD", department("merge", "VISION", "{spec: {parent: null}}"), noParent},
		{"HEAD", department("merge", "VISION", "{spec: {parent: SALES}}"), notYours},
		{"HEAD", department("json", "VISION", "[{op: remove, path: /spec/parent}]"), noParent},
		{"HEAD", department("apply", "SALES", "{parent: RESEARCH}"), clusters},
		{"HEAD", department("merge", "SALES", "{spec: {parent: RESEARCH}}"), clusters},
		{"HEAD", department("delete", "SALES", ""), clusters},
		{"HEAD", department("create", "MISSING", "{parent: RESEARCH, "+quota1+"}"), named},
		{"HEAD", department("create", "ABOVE", "{parent: RESEARCH, "+quota1+"}"), named},
		{"CHIEF", department("create", "MISSING", "{parent: VISION, "+quota1+"}"), named},
		{"READER", department("create", "MISSING", "{parent: RESEARCH, "+quota1+"}"), named},
		{"BOSS", department("create", "MISSING", "{"+quota1+"}"), ""},
		{"BOSS", department("create", "ABOVE", "{parent: RESEARCH, "+quota1+"}"), ""},
		{"CHIEF", department("merge", "VISION", "{spec: {fairShareWeight: 100}}"), notYours},
		{"CHIEF", department("merge", "VISION", "{spec: {quota: [{instanceType: ml.g5.2xlarge, accelerators: 3}]}}"), notYours},
		{"CHIEF", department("merge", "VISION", "{spec: {members: []}}"), notYours},
		{"CHIEF", department("merge", "VISION", "{spec: {sharing: {strategy: LendAndBorrow, unlimited: true}}}"), notYours},
		{"CHIEF", department("merge", "VISION", "{spec: {parent: null}}"), notYours},
		{"CHIEF", department("merge", "VISION", "{spec: {displayName: mine}}"), notYours},
		{"CHIEF", department("delete", "VISION", ""), notYours},
		{"OTHER", department("merge", "VISION", "{spec: {parent: SALES}}"), notYours},

		// Others: members who are no admins, and admins who may also read everything.
		{"VIEWER", team("create", "NEW", "{department: RESEARCH, "+quota1+"}"), forbidden},
		{"VIEWER", team("merge", "ATOMS", "{spec: {activation: Hold}}"), forbidden},
		{"VIEWER", department("create", "NEW", "{parent: RESEARCH}"), forbidden},
		{"MEMBER", team("merge", "ATOMS", "{spec: {activation: Hold}}"), forbidden},
		{"STRANGER", team("create", "NEW", "{department: RESEARCH, "+quota1+"}"), forbidden},
		{"READER", team("create", "NEW", "{department: RESEARCH, "+quota1+"}"), ""},
		{"READER", team("create", "NEW", "{"+quota1+"}"), noParent},
		{"READER", team("update", "DEALS", "{department: SALES, activation: Hold}"), notYours},
		{"READER", department("create", "NEW", "{"+quota1+"}"), noParent},
		{"BOSS", department("merge", "RESEARCH", "{metadata: {annotations: {kuota.dev/probe: 'true'}}}"), "the API server applies kuota-departments"},
	} {
		err := d.try(t, d.as(t, tc.user), tc.change, tc.want == "")
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("%s: %v: got %v, want no error", tc.user, tc.change, err)
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s: %v: got %v, want %q", tc.user, tc.change, err, tc.want)
		}
	}

	// By a group: the roles are bound to it too.
	if err := d.try(t, d.as(t, "STRANGER", d.names["HEADS"]), team("create", "NEW", "{department: RESEARCH, "+quota1+"}"), true); err != nil {
		t.Errorf("as a member of a group of admins: %v", err)
	}
	if err := d.try(t, d.as(t, "STRANGER", d.names["HEADS"]), team("update", "DEALS", "{department: SALES, activation: Hold}"), true); err == nil || !strings.Contains(err.Error(), notYours) {
		t.Errorf("as a member of a group of admins: got %v, want %q", err, notYours)
	}

	// They read through Kuota only.
	head := d.as(t, "HEAD")
	heads := d.as(t, "STRANGER", d.names["HEADS"])
	for what, read := range map[string]func() error{
		"an invalid patch": func() error { // the answer would have the whole object
			return d.try(t, heads, team("merge", "DEALS", "{metadata: {ownerReferences: [{name: 1}]}}"), false)
		},
		"a patch":                 func() error { return d.try(t, heads, team("merge", "ATOMS", "{spec: {activation: Hold}}"), false) },
		"an apply":                func() error { return d.try(t, heads, team("apply", "ATOMS", "{department: RESEARCH}"), false) },
		"a patch of a department": func() error { return d.try(t, heads, department("json", "VISION", "[]"), false) },
		"get": func() error {
			return head.Get(t.Context(), client.ObjectKey{Name: d.names["ATOMS"]}, &v1alpha1.ComputeAllocation{})
		},
		"list":             func() error { return head.List(t.Context(), &v1alpha1.ComputeAllocationList{}) },
		"watch":            func() error { _, err := head.Watch(t.Context(), &v1alpha1.ComputeAllocationList{}); return err },
		"deletecollection": func() error { return head.DeleteAllOf(t.Context(), &v1alpha1.ComputeAllocation{}) },
		"get of departments": func() error {
			return head.Get(t.Context(), client.ObjectKey{Name: d.names["RESEARCH"]}, &v1alpha1.Department{})
		},
		"list of departments": func() error { return head.List(t.Context(), &v1alpha1.DepartmentList{}) },
		"deletecollection of departments": func() error {
			return head.DeleteAllOf(t.Context(), &v1alpha1.Department{})
		},
		"list of bindings": func() error {
			return head.List(t.Context(), &rbacv1.RoleBindingList{}, client.InNamespace("kuota-department-"+d.names["RESEARCH"]))
		},
		"create of a binding": func() error {
			return head.Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "kuota-department-" + d.names["RESEARCH"], Name: "x"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: desired.DepartmentAdminRole}})
		},
	} {
		if err := read(); !apierrors.IsForbidden(err) {
			t.Errorf("%s as an admin of a department: got %v, want forbidden", what, err)
		}
	}

	// A namespace of a department is Kuota's: an admin of their own namespaces makes none.
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "kuota-department-" + d.names["NONE"]}}}
	if err := d.as(t, "READER").Create(t.Context(), namespace, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "which Kuota creates") {
		t.Errorf("a self-made namespace of a department: got %v, want a refusal", err)
	}
	namespace.SetName("")
	namespace.SetGenerateName("kuota-department-")
	if err := d.as(t, "READER").Create(t.Context(), namespace, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "which Kuota creates") {
		t.Errorf("a self-made namespace of a department by generateName: got %v, want a refusal", err)
	}
	namespace.SetGenerateName("other-")
	if err := d.as(t, "READER").Create(t.Context(), namespace, client.DryRunAll); err != nil {
		t.Errorf("another namespace: %v", err)
	}
}

// TestDelegatesAreBoundWhileThePolicyApplies checks that the admins of departments lose the
// right to write when they are no admins any more, and when the API server does not apply the
// policy, and that they have it again when it does.
func TestDelegatesAreBoundWhileThePolicyApplies(t *testing.T) {
	d := newDelegation(t)
	creates := permission{"create", "computeallocations", ""}
	d.waitMay(t, "OTHER", true, creates)
	head := d.as(t, "HEAD")
	if err := d.try(t, d.as(t, "BOSS"), change{"merge", "department", "RESEARCH", "{spec: {members: [{kind: User, name: VIEWER}, {kind: User, name: HEAD}]}}"}, false); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	d.waitMay(t, "HEAD", false, creates, permission{"govern", "departments", "kuota-department-" + d.names["RESEARCH"]}, permission{"govern", "departments", "kuota-department-" + d.names["VISION"]})
	t.Logf("an admin had their rights for %s after they were none", time.Since(start))
	for _, c := range []change{{"merge", "team", "ATOMS", "{spec: {activation: Hold}}"}, {"create", "team", "NEW", "{department: VISION, " + quota1 + "}"}} {
		if err := d.try(t, head, c, false); !apierrors.IsForbidden(err) {
			t.Errorf("%v by a former admin: got %v, want forbidden", c, err)
		}
	}
	d.waitMay(t, "OTHER", true, creates)

	// Without the binding of the policy. A change of a department probes at once.
	binding := &admission.ValidatingAdmissionPolicyBinding{}
	if err := d.Client.Get(t.Context(), client.ObjectKey{Name: reconcile.DepartmentsPolicy}, binding); err != nil {
		t.Fatal(err)
	}
	restore := func() {
		again := binding.DeepCopy()
		again.ObjectMeta = metav1.ObjectMeta{Name: binding.Name, Labels: binding.Labels, Annotations: binding.Annotations}
		if err := d.Client.Create(context.Background(), again); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Error(err)
		}
	}
	t.Cleanup(restore)
	if err := d.Client.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	weight := 0
	clustertest.Eventually(t, waitLimit, func(ctx context.Context) error {
		weight = weight%100 + 1
		if err := d.try(t, d.Client, change{"merge", "department", "SALES", fmt.Sprintf("{spec: {fairShareWeight: %d}}", weight)}, false); err != nil {
			return err
		}
		if err := d.Client.Get(ctx, client.ObjectKey{Name: desired.DelegatesName}, &rbacv1.ClusterRoleBinding{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the binding of delegates without the policy: got %v, want none", err)
		}
		return nil
	})
	d.waitMay(t, "OTHER", false, creates)
	d.delegationIs(t, "SALES", metav1.ConditionFalse, "PolicyMissing")
	restore()
	d.waitMay(t, "OTHER", true, creates)
	d.delegationIs(t, "SALES", metav1.ConditionTrue, "Delegated")
}

// delegationIs waits until a department has this condition.
func (d delegation) delegationIs(t *testing.T, name string, status metav1.ConditionStatus, reason string) {
	t.Helper()
	clustertest.Eventually(t, waitLimit, func(ctx context.Context) error {
		var department v1alpha1.Department
		if err := d.Client.Get(ctx, client.ObjectKey{Name: d.names[name]}, &department); err != nil {
			return err
		}
		if got := meta.FindStatusCondition(department.Status.Conditions, v1alpha1.ConditionDelegation); got == nil || got.Status != status || got.Reason != reason {
			return fmt.Errorf("Delegation of %s is %+v, want %s %s", name, got, status, reason)
		}
		return nil
	})
}

// TestDelegatesStayWithinTheQuota creates 20 teams at once that together exceed the quota of their
// department: no more than it has is applied.
func TestDelegatesStayWithinTheQuota(t *testing.T) {
	d := newDelegation(t)
	other := d.as(t, "OTHER") // SALES has 2, of which DEALS has 1
	names := make([]string, 20)
	t.Cleanup(func() {
		for _, name := range names {
			_ = d.Client.Delete(context.Background(), &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
	})
	var all sync.WaitGroup
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", d.names["NEW"], i)
		all.Go(func() {
			object := &v1alpha1.ComputeAllocation{}
			if err := yaml.Unmarshal([]byte(d.texts.Replace("{spec: {department: SALES, "+quota1+"}}")), object); err != nil {
				t.Error(err)
			}
			object.Name = names[i]
			if err := other.Create(t.Context(), object); err != nil {
				t.Errorf("create: %v", err)
			}
		})
	}
	all.Wait()
	clustertest.Eventually(t, waitLimit, func(ctx context.Context) error {
		ready, refused := 0, 0
		for _, name := range names {
			var a v1alpha1.ComputeAllocation
			if err := d.Client.Get(ctx, client.ObjectKey{Name: name}, &a); err != nil {
				return err
			}
			switch c := meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ConditionReady); {
			case c == nil:
			case c.Status == metav1.ConditionTrue:
				ready++
			case c.Reason == v1alpha1.ReasonDepartment && strings.Contains(c.Message, "left are"):
				refused++
			}
		}
		if ready > 1 {
			t.Errorf("%d teams are applied, the department has room for 1", ready)
		}
		if ready+refused < len(names) {
			return fmt.Errorf("%d teams are applied and %d refused, want all %d", ready, refused, len(names))
		}
		return nil
	})
}

// TestDepartmentCreatedAgain checks that nothing of a deleted department is of use in another one
// of its name: not to its former admins, and not to those of the new one.
func TestDepartmentCreatedAgain(t *testing.T) {
	d := newDelegation(t)
	head, other := d.as(t, "HEAD"), d.as(t, "OTHER")
	if err := d.try(t, head, change{"create", "department", "NEW", "{parent: RESEARCH, members: [{kind: User, name: STRANGER, role: Admin}]}"}, false); err != nil {
		t.Fatal(err)
	}
	govern := permission{"govern", "departments", "kuota-department-" + d.names["NEW"]}
	d.waitMay(t, "STRANGER", true, govern)
	if err := d.try(t, head, change{"delete", "department", "NEW", ""}, false); err != nil {
		t.Fatal(err)
	}
	clustertest.Eventually(t, waitLimit, func(ctx context.Context) error {
		if err := d.Client.Get(ctx, client.ObjectKey{Name: d.names["NEW"]}, &v1alpha1.Department{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the department exists: %v", err)
		}
		return nil
	})
	d.waitMay(t, "STRANGER", false, govern)
	d.waitMay(t, "HEAD", false, govern)
	if err := d.try(t, other, change{"create", "department", "NEW", "{parent: SALES, members: [{kind: User, name: CHIEF, role: Admin}]}"}, false); err != nil {
		t.Fatal(err)
	}
	d.waitMay(t, "OTHER", true, govern)
	d.waitMay(t, "STRANGER", false, govern)
	d.waitMay(t, "HEAD", false, govern)
	if err := d.try(t, head, change{"create", "team", "NONE", "{department: NEW, " + quota1 + "}"}, true); err == nil || !strings.Contains(err.Error(), notYours) {
		t.Errorf("a team in a department that another admin created again: got %v, want %q", err, notYours)
	}
}
