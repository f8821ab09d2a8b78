package degraded_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/access"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/audit"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/desired"
	"kuota.dev/kuota/governance/diagnostics"
	"kuota.dev/kuota/governance/policy"
	"kuota.dev/kuota/governance/reconcile"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/queries"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestMain(m *testing.M) { clustertest.Main(m) }

const soon = 30 * time.Second

// boss is an admin: see admin.
var boss = governance.User{Name: "boss@example.com"}

// admin makes boss one.
func admin(t *testing.T, c *clustertest.Cluster) {
	t.Helper()
	c.Apply(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: boss}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kuota-admin}, subjects: [{kind: User, name: boss@example.com, apiGroup: rbac.authorization.k8s.io}]}`)
}

// console is what stands behind the pages.
type console struct {
	connection *cluster.Cluster
	teams      *allocations.Service
	policies   *policy.Service
	tasks      *queries.Service
	settings   *diagnostics.Service
}

// start runs a console until the test ends, which manages Kueue or does not.
func start(t *testing.T, c *clustertest.Cluster, manages bool, with ...func(*cluster.Options)) console {
	t.Helper()
	admin(t, c)
	log := slog.New(slog.DiscardHandler)
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
	options := cluster.Options{Log: log, NoSessions: true}
	for _, change := range with {
		change(&options)
	}
	connection, err := cluster.New(c.Console, options)
	if err != nil {
		t.Fatal(err)
	}
	install := reconcile.DefaultKueueInstall
	install.Manage = manages
	controllers, err := reconcile.SetupWithManager(connection.Manager, reconcile.Options{Naming: desired.DefaultNaming, Kueue: install, ReadOnly: func() bool { return connection.ReadOnlyReason() != "" }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- connection.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the console ended: %v", err)
		}
	})
	permission := &access.Service{Cluster: connection}
	record := &audit.Recorder{Cluster: connection, Log: log}
	policies := &policy.Service{Cluster: connection, Naming: desired.DefaultNaming, Access: permission, Audit: record, Kueue: controllers.Kueue.Plan}
	return console{
		connection: connection, policies: policies,
		teams:    &allocations.Service{Cluster: connection, Naming: desired.DefaultNaming, Access: permission, Audit: record, Pools: policies},
		tasks:    queries.New(connection, permission),
		settings: &diagnostics.Service{Cluster: connection, Access: permission, Naming: desired.DefaultNaming, Install: install, Kueue: controllers.Kueue.State},
	}
}

// gap waits until the settings name a gap.
func (c console) gap(t *testing.T, id string) (found diagnostics.Finding) {
	t.Helper()
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		state, err := c.settings.Report(ctx, boss)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(state.Findings, func(g diagnostics.Finding) bool { return g.ID == id })
		if i < 0 {
			return fmt.Errorf("gap %s is not among %+v", id, state.Findings)
		}
		found = state.Findings[i]
		return nil
	})
	return found
}

// told finds nothing wrong once the gap about resources names this.
func told(c console, want string) func(context.Context) error {
	return func(ctx context.Context) error {
		state, err := c.settings.Report(ctx, boss)
		if err != nil {
			return err
		}
		for _, gap := range state.Findings {
			if gap.ID == "uncovered" && strings.Contains(gap.Impact, want) {
				return nil
			}
		}
		return fmt.Errorf("%q is not told in %+v", want, state.Findings)
	}
}

// closed waits until the settings do not name a gap any more.
func (c console) closed(t *testing.T, id string) {
	t.Helper()
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		state, err := c.settings.Report(ctx, boss)
		if err != nil {
			return err
		}
		for _, gap := range state.Findings {
			if gap.ID == id {
				return fmt.Errorf("there still is %+v", gap)
			}
		}
		return nil
	})
}

// take takes definitions of Kueue's away, and gives them back as they were.
func take(t *testing.T, c *clustertest.Cluster, names ...string) (giveBack func()) {
	t.Helper()
	saved := c.Kubectl(t, "", append([]string{"get", "crd", "-o", "yaml"}, names...)...)
	c.Kubectl(t, "", append([]string{"delete", "crd"}, names...)...)
	return func() {
		clustertest.Eventually(t, soon, func(context.Context) error {
			out, err := c.TryKubectl(bare(saved), "create", "-f", "-")
			if err != nil && !strings.Contains(out, "already exists") {
				return errors.New(out)
			}
			return nil
		})
		// A Kueue that starts before discovery has its kinds exits.
		clustertest.Eventually(t, soon, func(context.Context) error {
			out, err := c.TryKubectl("", "get", strings.Join(names, ","), "-A", "-o", "name")
			if err != nil {
				return errors.New(out)
			}
			return nil
		})
	}
}

// bare leaves out what the API server wrote and does not take back.
func bare(yaml string) string {
	var lines []string
	for line := range strings.Lines(yaml) {
		if key := strings.TrimSpace(line); !strings.HasPrefix(key, "resourceVersion: \"") && !strings.HasPrefix(key, "uid: ") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// Without Kueue, what can work works, and the rest says why not. Once Kueue is
// there, the console goes on by itself.
func TestKueueAbsent(t *testing.T) {
	c := clustertest.Get(t)
	var names []string
	for name := range strings.FieldsSeq(c.Kubectl(t, "", "get", "crd", "-o", "name")) {
		if name = strings.TrimPrefix(name, "customresourcedefinition.apiextensions.k8s.io/"); strings.HasSuffix(name, ".kueue.x-k8s.io") {
			names = append(names, name)
		}
	}
	giveBack := take(t, c, names...) // Kueue lets go of its objects
	c.Control(t, "stop", "kueue")
	console := start(t, c, true)

	clustertest.Eventually(t, soon, func(context.Context) error { return console.teams.Ready() })
	if trouble := console.connection.MissingKinds().Message(); !strings.Contains(trouble, "Kueue is not installed") && !strings.Contains(trouble, "older") {
		t.Errorf("it says %q", trouble)
	}
	if gap := console.gap(t, "kueue-kinds"); !strings.Contains(gap.Fix, "manifests.yaml") || !strings.Contains(gap.Title, "ClusterQueue") {
		t.Errorf("the gap is %+v", gap)
	}
	items, err := console.tasks.List(t.Context(), boss, index.Query{}, nil)
	if err != nil || items.Total != 0 {
		t.Errorf("tasks are %+v, %v", items, err)
	}
	state, err := console.teams.State(t.Context(), boss)
	if err != nil || len(state.Types.Pools()) == 0 {
		t.Errorf("policies cannot be shown: %v, %d pools", err, len(state.Types.Pools()))
	}
	if _, err := console.policies.State(t.Context(), boss); err != nil {
		t.Errorf("the policy cannot be shown: %v", err)
	}

	one := int64(1)
	team := &v1alpha1.ComputeAllocation{Spec: v1alpha1.ComputeAllocationSpec{Quota: []v1alpha1.QuotaRow{{InstanceType: "ml.g5.2xlarge", Amounts: v1alpha1.Amounts{Accelerators: &one}}}}}
	team.Name = clustertest.Name("early")
	review, err := console.teams.Review(t.Context(), boss, team, nil)
	if err != nil || review.Unknown == "" {
		t.Errorf("the review is %+v, %v", review, err)
	}
	if err := console.teams.Create(t.Context(), boss, team, nil, "r"); err != nil {
		t.Fatalf("a team cannot be made: %v", err)
	}
	rules := &v1alpha1.ClusterPolicy{Spec: v1alpha1.ClusterPolicySpec{TaskPrioritization: v1alpha1.FirstComeFirstServe}}
	if _, err := console.policies.Review(t.Context(), boss, rules); err != nil {
		t.Errorf("a policy cannot be reviewed: %v", err)
	}

	giveBack()
	c.Control(t, "start", "kueue")
	clustertest.Eventually(t, time.Minute, func(ctx context.Context) error {
		var a v1alpha1.ComputeAllocation
		if err := c.Client.Get(ctx, client.ObjectKey{Name: team.Name}, &a); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(a.Status.Conditions, v1alpha1.ConditionReady) {
			return fmt.Errorf("trouble %q, conditions %+v", console.connection.MissingKinds().Message(), a.Status.Conditions)
		}
		return nil
	})
	if trouble := console.connection.MissingKinds().Message(); trouble != "" {
		t.Errorf("it still says %q", trouble)
	}
}

// One definition that goes while the console runs is named, and the console
// goes on when it is back.
func TestKindGoesAndComes(t *testing.T) {
	c := clustertest.Get(t)
	console := start(t, c, true)
	clustertest.Eventually(t, soon, func(context.Context) error { return console.teams.Ready() })
	giveBack := take(t, c, "workloadpriorityclasses.kueue.x-k8s.io")
	if gap := console.gap(t, "kueue-kinds"); !strings.Contains(gap.Title, "WorkloadPriorityClass") {
		t.Errorf("the gap is %+v", gap)
	}
	if trouble := console.connection.MissingKinds().Message(); !strings.Contains(trouble, "its CRD WorkloadPriorityClass is missing") {
		t.Errorf("it says %q", trouble)
	}
	if _, err := console.tasks.List(t.Context(), boss, index.Query{}, nil); err != nil {
		t.Errorf("tasks cannot be shown: %v", err)
	}
	if _, err := console.teams.State(t.Context(), boss); err != nil {
		t.Errorf("policies cannot be shown: %v", err)
	}
	giveBack()
	clustertest.Eventually(t, soon, func(context.Context) error {
		if trouble := console.connection.MissingKinds().Message(); trouble != "" {
			return errors.New(trouble)
		}
		return nil
	})
}

// A Kueue that has its kinds in an older version only is named.
func TestOlderVersionOnly(t *testing.T) {
	c := clustertest.Get(t)
	served := func(version string, yes bool) {
		for name := range strings.FieldsSeq(c.Kubectl(t, "", "get", "crd", "-o", "name")) {
			if !strings.HasSuffix(name, ".kueue.x-k8s.io") {
				continue
			}
			for i, v := range strings.Fields(c.Kubectl(t, "", "get", name, "-o", "jsonpath={.spec.versions[*].name}")) {
				if v == version {
					c.Kubectl(t, "", "patch", name, "--type=json", "--patch", fmt.Sprintf(`[{"op":"replace","path":"/spec/versions/%d/served","value":%t}]`, i, yes))
				}
			}
		}
	}
	served("v1beta2", false)
	defer served("v1beta2", true)
	console := start(t, c, true)
	if gap := console.gap(t, "kueue-older"); !strings.Contains(gap.Title, "v1beta1") {
		t.Errorf("the gap is %+v", gap)
	}
	_, err := console.tasks.List(t.Context(), boss, index.Query{}, nil)
	if governance.KindOf(err) != governance.Unavailable || !strings.Contains(err.Error(), "v1beta1 only") {
		t.Errorf("tasks: %v", err)
	}
	if _, err := console.teams.State(t.Context(), boss); err != nil {
		t.Errorf("allocations cannot be shown: %v", err)
	}
	if state, err := console.policies.State(t.Context(), boss); err != nil || state.Tasks != nil {
		t.Errorf("the policy cannot be shown: %v, or counts tasks: %v", err, state.Tasks)
	}
	if _, err := console.teams.State(t.Context(), member(t, c)); err != nil {
		t.Errorf("a member is shown nothing: %v", err)
	}
	team := &v1alpha1.ComputeAllocation{Spec: v1alpha1.ComputeAllocationSpec{Quota: []v1alpha1.QuotaRow{{InstanceType: "ml.g5.2xlarge", Amounts: v1alpha1.Amounts{Accelerators: new(int64)}}}}}
	*team.Spec.Quota[0].Accelerators = 1
	team.Name = clustertest.Name("early")
	if err := console.teams.Create(t.Context(), boss, team, nil, "r"); err != nil {
		t.Errorf("a team cannot be made: %v", err)
	}
	_, err = console.teams.Review(t.Context(), boss, team, nil)
	t.Logf("a review says: %v", err)
}

// member is somebody who may see one team's tasks.
func member(t *testing.T, c *clustertest.Cluster) governance.User {
	t.Helper()
	team := clustertest.Name("theirs")
	c.Apply(t, fmt.Sprintf(`
apiVersion: kuota.dev/v1alpha1
kind: ComputeAllocation
metadata: {name: %[1]s}
spec: {members: [{kind: User, name: %[1]s}], quota: [{instanceType: ml.g5.2xlarge, accelerators: 1}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: member, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kuota-team-member}
subjects: [{kind: User, name: %[1]s, apiGroup: rbac.authorization.k8s.io}]
`, team))
	c.Kubectl(t, "", "patch", "computeallocation", team, "--subresource=status", "--type=merge", "-p", fmt.Sprintf(`{"status":{"namespace":%q}}`, team))
	return governance.User{Name: team}
}
