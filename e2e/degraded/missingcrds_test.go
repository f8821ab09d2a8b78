package degraded_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/cluster/diagnostics"
	"kuota.dev/kuota/governance/controllers/reconcile"
	"kuota.dev/kuota/governance/policy"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/record/audit"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/queries"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestMain(m *testing.M) { clustertest.Main(m) }

const waitLimit = clustertest.Patience

// admin is an admin of Kuota; see bindAdmin.
var admin = governance.User{Name: "admin@example.com"}

// bindAdmin gives admin the role of an admin.
func bindAdmin(t *testing.T, c *clustertest.Cluster) {
	t.Helper()
	c.Apply(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: degraded-admin}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kuota-admin}, subjects: [{kind: User, name: admin@example.com, apiGroup: rbac.authorization.k8s.io}]}`)
}

// console consists of the services that the pages use.
type console struct {
	connection *cluster.Cluster
	teams      *allocations.Service
	policies   *policy.Service
	tasks      *queries.Service
	settings   *diagnostics.Service
}

// start runs a console until the test ends. manageKueue is the flag --manage-kueue.
func start(t *testing.T, c *clustertest.Cluster, manageKueue bool, with ...func(*cluster.Options)) console {
	t.Helper()
	bindAdmin(t, c)
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
	install.Manage = manageKueue
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
			t.Errorf("run the console: %v", err)
		}
	})
	permissions := &access.Service{Cluster: connection}
	recorder := &audit.Recorder{Cluster: connection, Log: log}
	policies := &policy.Service{Cluster: connection, Naming: desired.DefaultNaming, Access: permissions, Audit: recorder, Kueue: controllers.Kueue.Plan}
	return console{
		connection: connection, policies: policies,
		teams:    &allocations.Service{Cluster: connection, Naming: desired.DefaultNaming, Access: permissions, Audit: recorder, Pools: policies},
		tasks:    queries.New(connection, permissions),
		settings: &diagnostics.Service{Cluster: connection, Access: permissions, Naming: desired.DefaultNaming, Install: install, Kueue: controllers.Kueue.State},
	}
}

// finding waits until the settings page reports the finding with id, and returns it.
func (c console) finding(t *testing.T, id string) (found diagnostics.Finding) {
	t.Helper()
	clustertest.Eventually(t, waitLimit, func(ctx context.Context) error {
		state, err := c.settings.Report(ctx, admin)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(state.Findings, func(g diagnostics.Finding) bool { return g.ID == id })
		if i < 0 {
			return fmt.Errorf("got findings %+v, want %s", state.Findings, id)
		}
		found = state.Findings[i]
		return nil
	})
	return found
}

// reportsUncovered returns a check that returns nil once the finding about uncovered
// resources contains want.
func reportsUncovered(c console, want string) func(context.Context) error {
	return func(ctx context.Context) error {
		state, err := c.settings.Report(ctx, admin)
		if err != nil {
			return err
		}
		for _, finding := range state.Findings {
			if finding.ID == "uncovered" && strings.Contains(finding.Impact, want) {
				return nil
			}
		}
		return fmt.Errorf("got findings %+v, want an uncovered resource %q", state.Findings, want)
	}
}

// noFinding waits until the settings page no longer reports the finding with id.
func (c console) noFinding(t *testing.T, id string) {
	t.Helper()
	clustertest.Eventually(t, waitLimit, func(ctx context.Context) error {
		state, err := c.settings.Report(ctx, admin)
		if err != nil {
			return err
		}
		for _, finding := range state.Findings {
			if finding.ID == id {
				return fmt.Errorf("got finding %+v, want none", finding)
			}
		}
		return nil
	})
}

// deleteCRDs deletes CRDs of Kueue. restore creates them again with the same
// specification.
func deleteCRDs(t *testing.T, c *clustertest.Cluster, names ...string) (restore func()) {
	t.Helper()
	saved := c.Kubectl(t, "", append([]string{"get", "crd", "-o", "yaml"}, names...)...)
	c.Kubectl(t, "", append([]string{"delete", "crd"}, names...)...)
	served, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	clustertest.Eventually(t, waitLimit, func(context.Context) error { // discovery lists deleted kinds for a moment
		_, groups, err := served.ServerGroupsAndResources()
		if err != nil && !discovery.IsGroupDiscoveryFailedError(err) { // Kueue's visibility API may not respond
			return err
		}
		for _, group := range groups {
			for _, resource := range group.APIResources {
				if version, err := schema.ParseGroupVersion(group.GroupVersion); err == nil && slices.Contains(names, resource.Name+"."+version.Group) {
					return fmt.Errorf("%s is still served in %s", resource.Name, group.GroupVersion)
				}
			}
		}
		return nil
	})
	return func() {
		clustertest.Eventually(t, waitLimit, func(context.Context) error {
			out, err := c.TryKubectl(withoutServerFields(saved), "create", "-f", "-")
			if err != nil && !strings.Contains(out, "already exists") {
				return errors.New(out)
			}
			return nil
		})
		// Kueue exits when it starts before discovery has its kinds.
		clustertest.Eventually(t, waitLimit, func(context.Context) error {
			out, err := c.TryKubectl("", "get", strings.Join(names, ","), "-A", "-o", "name")
			if err != nil {
				return errors.New(out)
			}
			return nil
		})
	}
}

// withoutServerFields removes the fields that the API server sets and does not
// accept.
func withoutServerFields(yaml string) string {
	var lines []string
	for line := range strings.Lines(yaml) {
		if key := strings.TrimSpace(line); !strings.HasPrefix(key, "resourceVersion: \"") && !strings.HasPrefix(key, "uid: ") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// TestKueueNotInstalled checks that everything that does not need Kueue works without
// it, and that the rest reports why it does not work. Once Kueue is installed, the
// console continues without a restart.
func TestKueueNotInstalled(t *testing.T) {
	c := clustertest.Get(t)
	var names []string
	for name := range strings.FieldsSeq(c.Kubectl(t, "", "get", "crd", "-o", "name")) {
		if name = strings.TrimPrefix(name, "customresourcedefinition.apiextensions.k8s.io/"); strings.HasSuffix(name, ".kueue.x-k8s.io") {
			names = append(names, name)
		}
	}
	restore := deleteCRDs(t, c, names...) // while Kueue runs, which removes its finalizers
	c.Control(t, "stop", "kueue")
	console := start(t, c, true)

	clustertest.Eventually(t, waitLimit, func(context.Context) error { return console.teams.Ready() })
	if message := console.connection.MissingKinds().Message(); !strings.Contains(message, "Kueue is not installed") && !strings.Contains(message, "older") {
		t.Errorf("missing kinds: got %q, want Kueue not installed or older", message)
	}
	if finding := console.finding(t, "kueue-kinds"); !strings.Contains(finding.Fix, "manifests.yaml") || !strings.Contains(finding.Title, "ClusterQueue") {
		t.Errorf("unexpected finding %+v", finding)
	}
	items, err := console.tasks.List(t.Context(), admin, index.Query{}, nil)
	if err != nil || items.Total != 0 {
		t.Errorf("list tasks: got %+v, %v; want no tasks and no error", items, err)
	}
	state, err := console.teams.State(t.Context(), admin)
	if err != nil || len(state.Types.Pools()) == 0 {
		t.Errorf("state of allocations: got %d pools and error %v, want pools and no error", len(state.Types.Pools()), err)
	}
	if _, err := console.policies.State(t.Context(), admin); err != nil {
		t.Errorf("state of the policy: %v", err)
	}

	one := int64(1)
	team := &v1alpha1.ComputeAllocation{Spec: v1alpha1.ComputeAllocationSpec{Quota: []v1alpha1.QuotaRow{{InstanceType: "ml.g5.2xlarge", Quantities: v1alpha1.Quantities{Accelerators: &one}}}}}
	team.Name = clustertest.Name("early")
	review, err := console.teams.Review(t.Context(), admin, state, team, nil)
	if err != nil || review.Unknown == "" {
		t.Errorf("review: got %+v, %v; want Unknown set and no error", review, err)
	}
	if err := console.teams.Create(t.Context(), admin, state, team, nil, "r"); err != nil {
		t.Fatalf("create team: %v", err)
	}
	rules := &v1alpha1.ClusterPolicy{Spec: v1alpha1.ClusterPolicySpec{TaskPrioritization: v1alpha1.FirstComeFirstServe}}
	if _, err := console.policies.Review(t.Context(), admin, rules); err != nil {
		t.Errorf("review policy: %v", err)
	}

	restore()
	c.Control(t, "start", "kueue")
	clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
		var a v1alpha1.ComputeAllocation
		if err := c.Client.Get(ctx, client.ObjectKey{Name: team.Name}, &a); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(a.Status.Conditions, v1alpha1.ConditionReady) {
			return fmt.Errorf("missing kinds %q, conditions %+v; want Ready", console.connection.MissingKinds().Message(), a.Status.Conditions)
		}
		return nil
	})
	if message := console.connection.MissingKinds().Message(); message != "" {
		t.Errorf("missing kinds: got %q, want none", message)
	}
}

// TestCRDDeletedAndRestored checks that the console reports a CRD that is deleted
// while the console runs, and continues without a restart once it is restored.
func TestCRDDeletedAndRestored(t *testing.T) {
	c := clustertest.Get(t)
	console := start(t, c, true)
	clustertest.Eventually(t, waitLimit, func(context.Context) error { return console.teams.Ready() })
	restore := deleteCRDs(t, c, "workloadpriorityclasses.kueue.x-k8s.io")
	if finding := console.finding(t, "kueue-kinds"); !strings.Contains(finding.Title, "WorkloadPriorityClass") {
		t.Errorf("unexpected finding %+v", finding)
	}
	if message := console.connection.MissingKinds().Message(); !strings.Contains(message, "its CRD WorkloadPriorityClass is missing") {
		t.Errorf("missing kinds: got %q, want WorkloadPriorityClass", message)
	}
	if _, err := console.tasks.List(t.Context(), admin, index.Query{}, nil); err != nil {
		t.Errorf("list tasks: %v", err)
	}
	if _, err := console.teams.State(t.Context(), admin); err != nil {
		t.Errorf("state of allocations: %v", err)
	}
	restore()
	clustertest.Eventually(t, waitLimit, func(context.Context) error {
		if message := console.connection.MissingKinds().Message(); message != "" {
			return errors.New(message)
		}
		return nil
	})
}

// TestOlderVersionOnly checks that the console reports a Kueue that serves only an
// older version of its API, and that pages without tasks work.
func TestOlderVersionOnly(t *testing.T) {
	c := clustertest.Get(t)
	serve := func(version string, served bool) {
		for name := range strings.FieldsSeq(c.Kubectl(t, "", "get", "crd", "-o", "name")) {
			if !strings.HasSuffix(name, ".kueue.x-k8s.io") {
				continue
			}
			for i, v := range strings.Fields(c.Kubectl(t, "", "get", name, "-o", "jsonpath={.spec.versions[*].name}")) {
				if v == version {
					c.Kubectl(t, "", "patch", name, "--type=json", "--patch", fmt.Sprintf(`[{"op":"replace","path":"/spec/versions/%d/served","value":%t}]`, i, served))
				}
			}
		}
	}
	serve("v1beta2", false)
	defer serve("v1beta2", true)
	console := start(t, c, true)
	if finding := console.finding(t, "kueue-older"); !strings.Contains(finding.Title, "v1beta1") {
		t.Errorf("unexpected finding %+v", finding)
	}
	_, err := console.tasks.List(t.Context(), admin, index.Query{}, nil)
	if governance.KindOf(err) != governance.Unavailable || !strings.Contains(err.Error(), "v1beta1 only") {
		t.Errorf("list tasks: got %v, want Unavailable with v1beta1 only", err)
	}
	if _, err := console.teams.State(t.Context(), admin); err != nil {
		t.Errorf("state of allocations: %v", err)
	}
	if state, err := console.policies.State(t.Context(), admin); err != nil || state.Tasks != nil {
		t.Errorf("state of the policy: got tasks %v and error %v, want neither", state.Tasks, err)
	}
	if _, err := console.teams.State(t.Context(), member(t, c)); err != nil {
		t.Errorf("state of allocations for a member: %v", err)
	}
	team := &v1alpha1.ComputeAllocation{Spec: v1alpha1.ComputeAllocationSpec{Quota: []v1alpha1.QuotaRow{{InstanceType: "ml.g5.2xlarge", Quantities: v1alpha1.Quantities{Accelerators: new(int64)}}}}}
	*team.Spec.Quota[0].Accelerators = 1
	team.Name = clustertest.Name("early")
	allowed, err := console.teams.State(t.Context(), admin)
	if err != nil {
		t.Fatal(err)
	}
	if err := console.teams.Create(t.Context(), admin, allowed, team, nil, "r"); err != nil {
		t.Errorf("create team: %v", err)
	}
	_, err = console.teams.Review(t.Context(), admin, allowed, team, nil)
	t.Logf("review: %v", err)
}

// member creates a team and returns a user who may read its tasks.
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
