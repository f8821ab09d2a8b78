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
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kept are the revisions of a team, the oldest first.
func kept(ctx context.Context, c *clustertest.Cluster, team string) ([]appsv1.ControllerRevision, error) {
	var list appsv1.ControllerRevisionList
	err := c.Client.List(ctx, &list, client.InNamespace("kuota-system"), client.MatchingLabels{cluster.LabelRevisionOf: "allocation." + team})
	slices.SortFunc(list.Items, func(a, b appsv1.ControllerRevision) int { return int(a.Revision - b.Revision) })
	return list.Items, err
}

// story is what revisions tell: number, by whom, why, and how many accelerators.
func story(t *testing.T, all []appsv1.ControllerRevision) (lines []string) {
	t.Helper()
	for _, r := range all {
		var held struct {
			Metadata struct{ Name string }
			Spec     v1alpha1.ComputeAllocationSpec
		}
		if err := json.Unmarshal(r.Data.Raw, &held); err != nil {
			t.Fatal(err)
		}
		by := r.Annotations["kuota.dev/changed-by"] + r.Annotations["kuota.dev/changed-by-program"]
		line := fmt.Sprintf("%d: %d by %s", r.Revision, *held.Spec.Quota[0].Accelerators, by)
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

// tells waits until the revisions of a team tell a story.
func tells(t *testing.T, c *clustertest.Cluster, team string, want ...string) {
	t.Helper()
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		all, err := kept(ctx, c, team)
		if err != nil {
			return err
		}
		if diff := cmp.Diff(want, story(t, all)); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	})
}

// acting is a client that acts as somebody who may do anything.
func acting(t *testing.T, c *clustertest.Cluster, name string) client.Client {
	t.Helper()
	config := rest.CopyConfig(c.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:masters"}}
	writer, err := client.New(config, client.Options{Scheme: cluster.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return writer
}

// give has somebody write a number of accelerators, and what else change does.
func give(ctx context.Context, writer client.Client, team string, n int64, change func(*v1alpha1.ComputeAllocation), options ...client.PatchOption) error {
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

func gave(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func oneOf(team string) *v1alpha1.ComputeAllocation {
	return &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: team}, Spec: specOf(v1alpha1.QuotaRow{InstanceType: "ml.g5.2xlarge", Amounts: accelerators(1)})}
}

// A change by a person, by kubectl, by GitOps and by a controller each leaves a
// revision with the right name and reason, whatever stands in the request.
func TestRevisionsTellWho(t *testing.T) {
	c := setup(t)
	team := clustertest.Name("who")
	ada, bob := acting(t, c, "ada@example.com"), acting(t, c, "bob@example.com")
	robot := acting(t, c, "system:serviceaccount:flux-system:kustomize-controller")

	first := oneOf(team)
	first.Annotations = map[string]string{"kuota.dev/changed-by": "mallory", "kuota.dev/changed-generation": "1", "kuota.dev/changed-because": "forged"}
	gave(t, ada.Create(t.Context(), first))
	t.Cleanup(func() { _ = c.Client.Delete(context.Background(), oneOf(team)) })
	want := []string{"1: 1 by ada@example.com"}
	tells(t, c, team, want...)
	step := func(line string, err error) {
		t.Helper()
		gave(t, err)
		want = append(want, fmt.Sprintf("%d: %s", len(want)+1, line))
		tells(t, c, team, want...)
	}
	ctx := t.Context()
	step("2 by bob@example.com, more work", give(ctx, bob, team, 2, because("more work")))
	// The reason of an earlier change is not that of this one.
	step("3 by ada@example.com", give(ctx, ada, team, 3, nil))
	step("4 by ada@example.com, another", give(ctx, ada, team, 4, because("another")))
	// The console says the reason of each of its writes, also the same again.
	step("5 by bob@example.com, another", give(ctx, bob, team, 5, nil, client.FieldOwner("kuota-console")))
	step("6 by bob@example.com", give(ctx, bob, team, 6, because(""), client.FieldOwner("kuota-console")))
	// Nobody writes another's name.
	step("7 by bob@example.com", give(ctx, bob, team, 7, func(a *v1alpha1.ComputeAllocation) {
		a.Annotations["kuota.dev/changed-by"], a.Annotations["kuota.dev/changed-because"] = "mallory", "forged"
	}))

	// kubectl is kubernetes-admin here, and tells its name in no other way.
	_, err := c.TryKubectl("", "patch", "computeallocation", team, "--type=merge", "-p", `{"metadata":{"annotations":{"kuota.dev/change-reason":"by hand"}},"spec":{"quota":[{"instanceType":"ml.g5.2xlarge","accelerators":8}]}}`)
	step("8 by kubernetes-admin, by hand", err)
	// A manifest is applied twice, with the same reason: it counts once.
	apply := func(n int) error {
		out, err := c.TryKubectl(fmt.Sprintf("apiVersion: kuota.dev/v1alpha1\nkind: ComputeAllocation\nmetadata: {name: %s, annotations: {kuota.dev/change-reason: planned}}\nspec: {quota: [{instanceType: ml.g5.2xlarge, accelerators: %d}]}", team, n),
			"apply", "--server-side", "--force-conflicts", "-f", "-", "--as=gitops", "--as-group=system:masters")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
	step("9 by gitops, planned", apply(9))
	gave(t, apply(9))
	step("10 by gitops", apply(10))
	step("11 by system:serviceaccount:flux-system:kustomize-controller", give(ctx, robot, team, 11, nil, client.FieldOwner("kustomize-controller")))

	// What is no change of the spec leaves the name and the reason as they are.
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
		t.Errorf("by the status (%v, %s), (-before +after):\n%s", err, out, diff)
	}
	tells(t, c, team, want...)

	// Nobody says that somebody else is about to delete it.
	c.Kubectl(t, "", "patch", "computeallocation", team, "--type=merge", "-p", `{"metadata":{"annotations":{"kuota.dev/deleted-by":"mallory"}}}`)
	var last v1alpha1.ComputeAllocation
	gave(t, c.Client.Get(ctx, client.ObjectKey{Name: team}, &last))
	if by := last.Annotations["kuota.dev/deleted-by"]; by != "kubernetes-admin" {
		t.Errorf("it is about to be deleted by %q", by)
	}
}

// annotationsOf are who changed an allocation, why, and in which generation.
func annotationsOf(t *testing.T, c *clustertest.Cluster, team string) map[string]string {
	t.Helper()
	var a v1alpha1.ComputeAllocation
	gave(t, c.Client.Get(t.Context(), client.ObjectKey{Name: team}, &a))
	told := map[string]string{}
	for _, name := range []string{"kuota.dev/changed-by", "kuota.dev/changed-because", "kuota.dev/changed-generation"} {
		if value, ok := a.Annotations[name]; ok {
			told[name] = value
		}
	}
	return told
}

// Where the API server does not write who it was, the program is told, and not
// an older name.
func TestRevisionsWithoutThePolicy(t *testing.T) {
	c := setup(t)
	team := clustertest.Name("program")
	exempt := func(with string) {
		c.Kubectl(t, "", "patch", "mutatingadmissionpolicybinding", "kuota-changed-by", "--type=merge", "-p", with)
	}
	// Only for this team: other tests need the policy.
	exempt(fmt.Sprintf(`{"spec":{"matchResources":{"excludeResourceRules":[{"apiGroups":["kuota.dev"],"apiVersions":["*"],"operations":["*"],"resources":["computeallocations"],"resourceNames":[%q]}]}}}`, team))
	t.Cleanup(func() { exempt(`{"spec":{"matchResources":null}}`) })
	clustertest.Eventually(t, soon, func(ctx context.Context) error { // it counts a moment later
		probe := oneOf(team)
		if err := c.Client.Create(ctx, probe, client.DryRunAll); err != nil {
			return err
		}
		if probe.Annotations["kuota.dev/changed-by"] != "" {
			return fmt.Errorf("the policy still counts")
		}
		return nil
	})
	ada := acting(t, c, "ada@example.com")
	first := oneOf(team)
	first.Annotations = map[string]string{"kuota.dev/changed-by": "somebody-long-ago", "kuota.dev/changed-generation": "7", "kuota.dev/change-reason": "a start"}
	gave(t, ada.Create(t.Context(), first, client.FieldOwner("my-tool")))
	t.Cleanup(func() { _ = c.Client.Delete(context.Background(), oneOf(team)) })
	tells(t, c, team, "1: 1 by my-tool, a start")
	time.Sleep(1100 * time.Millisecond) // the times of field managers count seconds
	gave(t, give(t.Context(), ada, team, 2, nil, client.FieldOwner("other-tool")))
	tells(t, c, team, "1: 1 by my-tool, a start", "2: 2 by other-tool")
}

// Changes of two people at once all leave their revision, with the right name,
// in the order in which the API server took them; two consoles keep each once.
func TestRevisionsOfTwoAtOnce(t *testing.T) {
	c := setup(t)
	second := others(t, c)
	team := clustertest.Name("both")
	gave(t, acting(t, c, "ada").Create(t.Context(), oneOf(team)))
	t.Cleanup(func() { _ = c.Client.Delete(context.Background(), oneOf(team)) })
	tells(t, c, team, "1: 1 by ada") // the first console watches
	failed := make(chan error)
	for i, name := range []string{"ada", "bob"} {
		writer := acting(t, c, name)
		go func() {
			for n := range int64(10) {
				if err := give(t.Context(), writer, team, 10*int64(i+1)+n, nil); err != nil {
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
		all, err := kept(ctx, c, team)
		if err != nil || len(all) != 21 {
			return fmt.Errorf("there are %d revisions, want 21 (%v)", len(all), err)
		}
		for i, line := range story(t, all) {
			by := "ada"
			if strings.Contains(line, ": 2") {
				by = "bob"
			}
			if !strings.HasPrefix(line, fmt.Sprintf("%d: ", i+1)) || !strings.HasSuffix(line, " by "+by) {
				t.Fatalf("revision %d tells %q", i+1, line)
			}
			if got := all[i].Annotations["kuota.dev/of-generation"]; got != fmt.Sprint(i+1) {
				t.Fatalf("revision %d is of generation %s", i+1, got)
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
		t.Errorf("a console that starts writes %s", restarted.seen[i])
	}
}

// Fifty are kept of each name, also over a deletion, and the oldest goes first.
func TestRevisionsArePruned(t *testing.T) {
	c := setup(t)
	team := clustertest.Name("many")
	create(t, c, team, oneOf(team).Spec)
	for n := int64(2); n <= 48; n++ { // and the deletion
		gave(t, give(t.Context(), c.Client, team, n, nil))
	}
	gave(t, c.Client.Delete(t.Context(), oneOf(team)))
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		if err := c.Client.Get(ctx, client.ObjectKey{Name: team}, &v1alpha1.ComputeAllocation{}); client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("it is still there: %w", err)
		}
		return nil
	})
	create(t, c, team, oneOf(team).Spec)
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		all, err := kept(ctx, c, team)
		if err != nil || len(all) != 50 || all[0].Revision != 1 || all[49].Revision != 50 {
			return fmt.Errorf("there are %d revisions (%v)", len(all), err)
		}
		return nil
	})
	for n := int64(2); n <= 4; n++ {
		gave(t, give(t.Context(), c.Client, team, n, nil))
	}
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		all, err := kept(ctx, c, team)
		if err != nil || len(all) != 50 || all[0].Revision != 4 || all[49].Revision != 53 {
			return fmt.Errorf("there are %d revisions (%v)", len(all), err)
		}
		return nil
	})
}
