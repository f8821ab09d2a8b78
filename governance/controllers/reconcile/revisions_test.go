package reconcile_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// listRevisions returns the revisions of a team, the oldest first.
func listRevisions(ctx context.Context, c *clustertest.Cluster, team string) ([]appsv1.ControllerRevision, error) {
	var list appsv1.ControllerRevisionList
	err := c.Client.List(ctx, &list, client.InNamespace("kuota-system"), client.MatchingLabels{cluster.LabelRevisionOf: "allocation." + team})
	slices.SortFunc(list.Items, func(a, b appsv1.ControllerRevision) int { return int(a.Revision - b.Revision) })
	return list.Items, err
}

// describe returns a line for each revision: its number, accelerators, author and
// reason.
func describe(t *testing.T, all []appsv1.ControllerRevision) (lines []string) {
	t.Helper()
	for _, r := range all {
		var stored struct {
			Metadata struct{ Name string }
			Spec     v1alpha1.ComputeAllocationSpec
		}
		if err := json.Unmarshal(r.Data.Raw, &stored); err != nil {
			t.Fatal(err)
		}
		by := r.Annotations["kuota.dev/changed-by"] + r.Annotations["kuota.dev/changed-by-program"]
		line := fmt.Sprintf("%d: %d by %s", r.Revision, *stored.Spec.Quota[0].Accelerators, by)
		if why := r.Annotations["kuota.dev/changed-because"]; why != "" {
			line += ", " + why
		}
		if missing := r.Annotations["kuota.dev/missing"]; missing != "" {
			line += ", after " + missing
		}
		lines = append(lines, line)
	}
	return lines
}

// waitRevisions waits until the revisions of a team are those that want describes.
func waitRevisions(t *testing.T, c *clustertest.Cluster, team string, want ...string) {
	t.Helper()
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		all, err := listRevisions(ctx, c, team)
		if err != nil {
			return err
		}
		if diff := cmp.Diff(want, describe(t, all)); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	})
}

// adminClient returns a client that impersonates a cluster admin of this name.
func adminClient(t *testing.T, c *clustertest.Cluster, name string) client.Client {
	t.Helper()
	config := rest.CopyConfig(c.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:masters"}}
	writer, err := client.New(config, client.Options{Scheme: cluster.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return writer
}

// setAccelerators patches the number of accelerators, and what change changes.
func setAccelerators(ctx context.Context, writer client.Client, team string, n int64, change func(*v1alpha1.ComputeAllocation), options ...client.PatchOption) error {
	before := &v1alpha1.ComputeAllocation{}
	if err := writer.Get(ctx, client.ObjectKey{Name: team}, before); err != nil {
		return err
	}
	after := before.DeepCopy()
	after.Spec.Quota[0].Accelerators = &n
	if change != nil {
		change(after)
	}
	return writer.Patch(ctx, after, client.MergeFrom(before), options...)
}

func because(reason string) func(*v1alpha1.ComputeAllocation) {
	return func(a *v1alpha1.ComputeAllocation) { v1alpha1.SetReason(a, reason) }
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func oneOf(team string) *v1alpha1.ComputeAllocation {
	return &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: team}, Spec: specOf(v1alpha1.QuotaRow{InstanceType: "ml.g5.2xlarge", Quantities: accelerators(1)})}
}

// recordsUsers reports whether the API server has mutating admission policies, which
// record users: from Kubernetes 1.36 on.
func recordsUsers(t *testing.T, c *clustertest.Cluster) bool {
	t.Helper()
	err := c.Client.List(t.Context(), &admissionv1.MutatingAdmissionPolicyList{})
	if err != nil && !meta.IsNoMatchError(err) {
		t.Fatal(err)
	}
	return err == nil
}

// Where the API server does not record users, everyone who may change an allocation can
// write the annotations that name one: revisions have the program.
func TestRevisionsBeforeMutatingPolicies(t *testing.T) {
	c := setup(t)
	if recordsUsers(t, c) {
		t.Skip("this API server records users; make oldest runs this test")
	}
	team := clustertest.Name("old")
	first := oneOf(team)
	first.Annotations = map[string]string{"kuota.dev/changed-by": "mallory", "kuota.dev/changed-generation": "1", "kuota.dev/changed-because": "forged", "kuota.dev/change-reason": "a start"}
	must(t, c.Client.Create(t.Context(), first, client.FieldOwner("my-tool")))
	t.Cleanup(func() { _ = c.Client.Delete(context.Background(), oneOf(team)) })
	waitRevisions(t, c, team, "1: 1 by my-tool, a start")
	time.Sleep(1100 * time.Millisecond) // field managers have times in seconds
	forge := func(a *v1alpha1.ComputeAllocation) {
		a.Annotations["kuota.dev/changed-by"], a.Annotations["kuota.dev/changed-generation"] = "mallory", "2"
	}
	must(t, setAccelerators(t.Context(), c.Client, team, 2, forge, client.FieldOwner("other-tool")))
	waitRevisions(t, c, team, "1: 1 by my-tool, a start", "2: 2 by other-tool")
}

// A change by a user, kubectl, GitOps or a controller records a revision with its
// author and reason, which a request cannot forge.
func TestRevisionsHaveAuthor(t *testing.T) {
	c := setup(t)
	if !recordsUsers(t, c) {
		t.Skip("this API server does not record users")
	}
	team := clustertest.Name("who")
	ada, bob := adminClient(t, c, "ada@example.com"), adminClient(t, c, "bob@example.com")
	robot := adminClient(t, c, "system:serviceaccount:flux-system:kustomize-controller")

	first := oneOf(team)
	first.Annotations = map[string]string{"kuota.dev/changed-by": "mallory", "kuota.dev/changed-generation": "1", "kuota.dev/changed-because": "forged"}
	must(t, ada.Create(t.Context(), first))
	t.Cleanup(func() { _ = c.Client.Delete(context.Background(), oneOf(team)) })
	want := []string{"1: 1 by ada@example.com"}
	waitRevisions(t, c, team, want...)
	step := func(line string, err error) {
		t.Helper()
		must(t, err)
		want = append(want, fmt.Sprintf("%d: %s", len(want)+1, line))
		waitRevisions(t, c, team, want...)
	}
	ctx := t.Context()
	step("2 by bob@example.com, more work", setAccelerators(ctx, bob, team, 2, because("more work")))
	// The reason of an earlier change does not apply to this one.
	step("3 by ada@example.com", setAccelerators(ctx, ada, team, 3, nil))
	step("4 by ada@example.com, another", setAccelerators(ctx, ada, team, 4, because("another")))
	// The console sends a reason with each write, also if it is the same as before.
	step("5 by bob@example.com, another", setAccelerators(ctx, bob, team, 5, nil, client.FieldOwner("kuota-console")))
	step("6 by bob@example.com", setAccelerators(ctx, bob, team, 6, because(""), client.FieldOwner("kuota-console")))
	// A request cannot set the author.
	step("7 by bob@example.com", setAccelerators(ctx, bob, team, 7, func(a *v1alpha1.ComputeAllocation) {
		a.Annotations["kuota.dev/changed-by"], a.Annotations["kuota.dev/changed-because"] = "mallory", "forged"
	}))

	// kubectl is authenticated as kubernetes-admin and does not send its name.
	_, err := c.TryKubectl("", "patch", "computeallocation", team, "--type=merge", "-p", `{"metadata":{"annotations":{"kuota.dev/change-reason":"by hand"}},"spec":{"quota":[{"instanceType":"ml.g5.2xlarge","accelerators":8}]}}`)
	step("8 by kubernetes-admin, by hand", err)
	// The reason of a manifest counts for one change, also if it is applied again.
	apply := func(n int) error {
		out, err := c.TryKubectl(fmt.Sprintf("apiVersion: kuota.dev/v1alpha1\nkind: ComputeAllocation\nmetadata: {name: %s, annotations: {kuota.dev/change-reason: planned}}\nspec: {quota: [{instanceType: ml.g5.2xlarge, accelerators: %d}]}", team, n),
			"apply", "--server-side", "--force-conflicts", "-f", "-", "--as=gitops", "--as-group=system:masters")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
	step("9 by gitops, planned", apply(9))
	must(t, apply(9))
	step("10 by gitops", apply(10))
	step("11 by system:serviceaccount:flux-system:kustomize-controller", setAccelerators(ctx, robot, team, 11, nil, client.FieldOwner("kustomize-controller")))

	// Changes outside the spec keep author and reason.
	before := annotationsOf(t, c, team)
	for _, change := range []string{
		`{"metadata":{"annotations":{"kuota.dev/changed-by":"mallory","kuota.dev/changed-because":"forged","kuota.dev/changed-generation":"99"}}}`,
		`{"metadata":{"annotations":{"kuota.dev/changed-by":null}}}`,
		`{"metadata":{"annotations":null}}`,
		`{"metadata":{"labels":{"x":"y"}}}`,
	} {
		c.Kubectl(t, "", "patch", "computeallocation", team, "--type=merge", "-p", change)
		if diff := cmp.Diff(before, annotationsOf(t, c, team)); diff != "" {
			t.Errorf("%s changes (-before +after):\n%s", change, diff)
		}
	}
	out, err := c.TryKubectl("", "patch", "computeallocation", team, "--subresource=status", "--type=merge", "-p", `{"metadata":{"annotations":{"kuota.dev/changed-by":"mallory"}},"status":{"namespace":"x"}}`)
	if diff := cmp.Diff(before, annotationsOf(t, c, team)); diff != "" {
		t.Errorf("patching the status (%v, %s) changes (-before +after):\n%s", err, out, diff)
	}
	waitRevisions(t, c, team, want...)

	// A request cannot set who deletes the allocation.
	c.Kubectl(t, "", "patch", "computeallocation", team, "--type=merge", "-p", `{"metadata":{"annotations":{"kuota.dev/deleted-by":"mallory"}}}`)
	var last v1alpha1.ComputeAllocation
	must(t, c.Client.Get(ctx, client.ObjectKey{Name: team}, &last))
	if by := last.Annotations["kuota.dev/deleted-by"]; by != "kubernetes-admin" {
		t.Errorf("deleted-by is %q, want kubernetes-admin", by)
	}
}

// annotationsOf returns the annotations with the author, reason and generation of the
// last change.
func annotationsOf(t *testing.T, c *clustertest.Cluster, team string) map[string]string {
	t.Helper()
	var a v1alpha1.ComputeAllocation
	must(t, c.Client.Get(t.Context(), client.ObjectKey{Name: team}, &a))
	found := map[string]string{}
	for _, name := range []string{"kuota.dev/changed-by", "kuota.dev/changed-because", "kuota.dev/changed-generation"} {
		if value, ok := a.Annotations[name]; ok {
			found[name] = value
		}
	}
	return found
}

// If the API server does not record the user, the revision has the program, and not
// the user of an earlier change.
func TestRevisionsWithoutAdmissionPolicy(t *testing.T) {
	c := setup(t)
	if !recordsUsers(t, c) {
		t.Skip("this API server has no such policy")
	}
	team := clustertest.Name("program")
	exempt := func(with string) {
		c.Kubectl(t, "", "patch", "mutatingadmissionpolicybinding", "kuota-changed-by", "--type=merge", "-p", with)
	}
	// Only this team, because other tests need the policy.
	exempt(fmt.Sprintf(`{"spec":{"matchResources":{"excludeResourceRules":[{"apiGroups":["kuota.dev"],"apiVersions":["*"],"operations":["*"],"resources":["computeallocations"],"resourceNames":[%q]}]}}}`, team))
	t.Cleanup(func() { exempt(`{"spec":{"matchResources":null}}`) })
	clustertest.Eventually(t, soon, func(ctx context.Context) error { // the API server applies it after a moment
		probe := oneOf(team)
		if err := c.Client.Create(ctx, probe, client.DryRunAll); err != nil {
			return err
		}
		if probe.Annotations["kuota.dev/changed-by"] != "" {
			return fmt.Errorf("the policy still applies")
		}
		return nil
	})
	ada := adminClient(t, c, "ada@example.com")
	first := oneOf(team)
	first.Annotations = map[string]string{"kuota.dev/changed-by": "eve", "kuota.dev/changed-generation": "7", "kuota.dev/change-reason": "a start"}
	must(t, ada.Create(t.Context(), first, client.FieldOwner("my-tool")))
	t.Cleanup(func() { _ = c.Client.Delete(context.Background(), oneOf(team)) })
	waitRevisions(t, c, team, "1: 1 by my-tool, a start")
	time.Sleep(1100 * time.Millisecond) // field managers have times in seconds
	must(t, setAccelerators(t.Context(), ada, team, 2, nil, client.FieldOwner("other-tool")))
	waitRevisions(t, c, team, "1: 1 by my-tool, a start", "2: 2 by other-tool")
}

// Concurrent changes by two users are all recorded with their author in the order of
// the API server, each once, although two consoles run.
func TestRevisionsOfConcurrentChanges(t *testing.T) {
	c := setup(t)
	if !recordsUsers(t, c) {
		t.Skip("this API server does not record users")
	}
	second := others(t, c)
	team := clustertest.Name("both")
	must(t, adminClient(t, c, "ada").Create(t.Context(), oneOf(team)))
	t.Cleanup(func() { _ = c.Client.Delete(context.Background(), oneOf(team)) })
	waitRevisions(t, c, team, "1: 1 by ada") // the first console watches
	failed := make(chan error)
	for i, name := range []string{"ada", "bob"} {
		writer := adminClient(t, c, name)
		go func() {
			for n := range int64(10) {
				if err := setAccelerators(t.Context(), writer, team, 10*int64(i+1)+n, nil); err != nil {
					failed <- err
					return
				}
			}
			failed <- nil
		}()
	}
	for range 2 {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		all, err := listRevisions(ctx, c, team)
		if err != nil || len(all) != 21 {
			return fmt.Errorf("got %d revisions, want 21 (%v)", len(all), err)
		}
		for i, line := range describe(t, all) {
			by := "ada"
			if strings.Contains(line, ": 2") {
				by = "bob"
			}
			if !strings.HasPrefix(line, fmt.Sprintf("%d: ", i+1)) || !strings.HasSuffix(line, " by "+by) {
				t.Fatalf("revision %d is %q", i+1, line)
			}
			if got := all[i].Annotations["kuota.dev/of-generation"]; got != fmt.Sprint(i+1) {
				t.Fatalf("revision %d has generation %s", i+1, got)
			}
		}
		return nil
	})
	second.quiet(t, time.Second, soon)
	before := second.n.Load()
	second.quiet(t, 3*time.Second, soon)
	if n := second.n.Load(); n != before {
		t.Errorf("an idle console wrote %d times", n-before)
	}
	restarted := others(t, c)
	restarted.quiet(t, 3*time.Second, soon)
	if i := slices.IndexFunc(restarted.seen, func(call string) bool { return strings.Contains(call, "controllerrevisions") }); i >= 0 {
		t.Errorf("a console that just started writes %s", restarted.seen[i])
	}
}

// Fifty revisions of each name are stored, across deletions, and the oldest is deleted
// first.
func TestRevisionsArePruned(t *testing.T) {
	c := setup(t)
	team := clustertest.Name("many")
	create(t, c, team, oneOf(team).Spec)
	for n := int64(2); n <= 48; n++ { // and the deletion
		must(t, setAccelerators(t.Context(), c.Client, team, n, nil))
	}
	must(t, c.Client.Delete(t.Context(), oneOf(team)))
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		if err := c.Client.Get(ctx, client.ObjectKey{Name: team}, &v1alpha1.ComputeAllocation{}); client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("the allocation still exists: %w", err)
		}
		return nil
	})
	create(t, c, team, oneOf(team).Spec)
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		all, err := listRevisions(ctx, c, team)
		if err != nil || len(all) != 50 || all[0].Revision != 1 || all[49].Revision != 50 {
			return fmt.Errorf("got %d revisions, want 50 in order (%v)", len(all), err)
		}
		return nil
	})
	for n := int64(2); n <= 4; n++ {
		must(t, setAccelerators(t.Context(), c.Client, team, n, nil))
	}
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		all, err := listRevisions(ctx, c, team)
		if err != nil || len(all) != 50 || all[0].Revision != 4 || all[49].Revision != 53 {
			return fmt.Errorf("got %d revisions, want 50 in order (%v)", len(all), err)
		}
		return nil
	})
}
