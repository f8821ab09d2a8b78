package bypasses_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
)

// matrixVerbs are the verbs of the table of docs/privileges.md, each by its letter there.
var matrixVerbs = []struct{ letter, verb string }{
	{"g", "get"}, {"l", "list"}, {"w", "watch"}, {"c", "create"}, {"u", "update"}, {"p", "patch"}, {"d", "delete"}, {"D", "deletecollection"}, {"b", "bind"}, {"e", "escalate"}, {"G", "govern"},
}

// matrixRoles are the users of the columns of the table.
var matrixRoles = []struct{ column, user string }{
	{"admin of the cluster", "BOSS"}, {"admin of the parent", "HEAD"}, {"admin of the department", "CHIEF"}, {"viewer of the parent", "VIEWER"}, {"member of the team", "MEMBER"}, {"others", "STRANGER"},
}

// matrixObjects are the rows. The team is in the department VISION, below RESEARCH.
var matrixObjects = []struct{ row, group, resource, subresource, namespace, name string }{
	{row: "`computeallocations`", group: "kuota.dev", resource: "computeallocations"},
	{row: "`computeallocations/status`", group: "kuota.dev", resource: "computeallocations", subresource: "status"},
	{row: "`departments`", group: "kuota.dev", resource: "departments"},
	{row: "`departments/status`", group: "kuota.dev", resource: "departments", subresource: "status"},
	{row: "`departments`, in the namespace of the department", group: "kuota.dev", resource: "departments", namespace: "department"},
	{row: "`rolebindings`, there", group: "rbac.authorization.k8s.io", resource: "rolebindings", namespace: "department"},
	{row: "`rolebindings` of the team", group: "rbac.authorization.k8s.io", resource: "rolebindings", namespace: "team"},
	{row: "`clusterrolebindings`", group: "rbac.authorization.k8s.io", resource: "clusterrolebindings"},
	{row: "`clusterroles/kuota-department-admin`", group: "rbac.authorization.k8s.io", resource: "clusterroles", name: "kuota-department-admin"},
	{row: "`clusterpolicies`", group: "kuota.dev", resource: "clusterpolicies"},
	{row: "`cohorts`", group: "kueue.x-k8s.io", resource: "cohorts"},
	{row: "`clusterqueues`", group: "kueue.x-k8s.io", resource: "clusterqueues"},
	{row: "`workloads` of the team", group: "kueue.x-k8s.io", resource: "workloads", namespace: "team"},
	{row: "`localqueues` of the team", group: "kueue.x-k8s.io", resource: "localqueues", namespace: "team"},
	{row: "`pods` of the team", resource: "pods", namespace: "team"},
	{row: "`pods/log` of the team", resource: "pods", subresource: "log", namespace: "team"},
	{row: "`secrets` of the team", resource: "secrets", namespace: "team"},
	{row: "`configmaps` of the team", resource: "configmaps", namespace: "team"},
	{row: "`jobs` of the team", group: "batch", resource: "jobs", namespace: "team"},
	{row: "`workloads` of a team elsewhere", group: "kueue.x-k8s.io", resource: "workloads", namespace: "elsewhere"},
	{row: "`secrets` of a team elsewhere", resource: "secrets", namespace: "elsewhere"},
}

const (
	matrixBegin = "<!-- departments: KUOTA_UPDATE=1 go test ./e2e/bypasses -run TestDepartmentsMatrix -->\n"
	matrixEnd   = "<!-- departments end -->\n"
)

// TestDepartmentsMatrix asks the API server about each role, object and verb, and compares the
// answers with the table of docs/privileges.md.
func TestDepartmentsMatrix(t *testing.T) {
	d := newDelegation(t)
	namespaces := map[string]string{"": "", "department": "kuota-department-" + d.names["VISION"], "team": "hyperpod-ns-" + d.names["PIXELS"], "elsewhere": "hyperpod-ns-" + d.names["DEALS"]}
	ask := func(ctx context.Context, user string, attributes authorizationv1.ResourceAttributes) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: d.names[user], ResourceAttributes: &attributes}}
		err := d.Client.Create(ctx, review)
		return review.Status.Allowed, err
	}
	for _, user := range []string{"VIEWER", "MEMBER", "CHIEF"} { // until the bindings of the team apply
		clustertest.Eventually(t, waitLimit, func(ctx context.Context) error {
			if may, err := ask(ctx, user, authorizationv1.ResourceAttributes{Verb: "list", Group: "kueue.x-k8s.io", Resource: "workloads", Namespace: namespaces["team"]}); err != nil || !may {
				return fmt.Errorf("%s may list workloads: %v (%v)", user, may, err)
			}
			return nil
		})
	}
	var table strings.Builder
	table.WriteString("| object |")
	for _, role := range matrixRoles {
		table.WriteString(" " + role.column + " |")
	}
	table.WriteString("\n|---|" + strings.Repeat("---|", len(matrixRoles)) + "\n")
	for _, o := range matrixObjects {
		table.WriteString("| " + o.row + " |")
		for _, role := range matrixRoles {
			letters := ""
			for _, v := range matrixVerbs {
				if (v.verb == "bind" || v.verb == "escalate") && o.resource != "clusterroles" || v.verb == "govern" && o.resource != "departments" {
					continue
				}
				may, err := ask(t.Context(), role.user, authorizationv1.ResourceAttributes{Verb: v.verb, Group: o.group, Resource: o.resource, Subresource: o.subresource, Namespace: namespaces[o.namespace], Name: o.name})
				if err != nil {
					t.Fatal(err)
				}
				if may {
					letters += v.letter
				}
			}
			table.WriteString(" " + letters + " |")
		}
		table.WriteString("\n")
	}
	file := filepath.Join(clustertest.Root(), "docs", "privileges.md")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), matrixBegin)
	has, after, ends := strings.Cut(rest, matrixEnd)
	if !found || !ends {
		t.Fatalf("%s has no table of departments", file)
	}
	if os.Getenv("KUOTA_UPDATE") != "" {
		if err := os.WriteFile(file, []byte(before+matrixBegin+table.String()+matrixEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(slices.Collect(strings.Lines(has)), slices.Collect(strings.Lines(table.String()))); diff != "" {
		t.Errorf("the table of docs/privileges.md (-has +the API server answers):\n%s", diff)
	}
}
