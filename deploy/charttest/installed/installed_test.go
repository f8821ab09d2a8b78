// Package installed tests the chart on a real API server, with Helm's own actions.
package installed

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/deploy/charttest"
	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/cli"
	"helm.sh/helm/v4/pkg/kube"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

const limit = 2 * time.Minute

const policy = `
apiVersion: kuota.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: default}
spec:
  taskPrioritization: TaskRanking
  priorityClasses: [{name: training, weight: 60}]
---
`

const team = `
apiVersion: kuota.dev/v1alpha1
kind: ComputeAllocation
metadata: {name: charted}
spec:
  members: [{kind: User, name: mia@example.com}]
  quota: [{instanceType: ml.p5.48xlarge, accelerators: 2}]
`

const values = `
url: https://kuota.example.com
signIn: {issuer: "https://login.example.com", clientID: kuota}
sessions: {keys: {name: kuota}}
history: {type: postgresql, postgresql: {url: {name: kuota}}}
ingress: {enabled: true}
metrics: {enabled: true, dashboard: {enabled: true}}
admins: {groups: [admins]}
podAnnotations: {pod-complete.stage.kwok.x-k8s.io/delay: 1s}
`

// installation is a release of the chart in the cluster of the test.
type installation struct {
	*clustertest.Cluster
	name, namespace string
	config          *action.Configuration
}

// newInstallation returns an installation in a namespace that rejects pods which are
// not restricted.
func newInstallation(t *testing.T, name, namespace string) *installation {
	t.Helper()
	c := clustertest.Get(t)
	t.Setenv("KUBECACHEDIR", t.TempDir()) // Helm's cache is by address: another cluster may have had this one's port
	c.Kubectl(t, fmt.Sprintf(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": %q, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}`, namespace), "apply", "-f", "-")
	settings := cli.New()
	settings.KubeConfig = filepath.Join(c.Dir, "kubeconfig")
	settings.SetNamespace(namespace)
	i := &installation{Cluster: c, name: name, namespace: namespace, config: action.NewConfiguration()}
	if err := i.config.Init(settings.RESTClientGetter(), namespace, "secret"); err != nil {
		t.Fatal(err)
	}
	return i
}

func parse(t *testing.T, text string) (parsed map[string]any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &parsed); err != nil {
		t.Fatal(err)
	}
	return parsed
}

func (i *installation) install(t *testing.T, values string, takeOwnership, force bool) (*releasev1.Release, error) {
	t.Helper()
	chart, err := charttest.Load()
	if err != nil {
		t.Fatal(err)
	}
	install := action.NewInstall(i.config)
	install.ReleaseName, install.Namespace, install.TakeOwnership, install.ForceConflicts = i.name, i.namespace, takeOwnership, force
	install.WaitStrategy, install.Timeout = kube.HookOnlyStrategy, limit
	release, err := install.RunWithContext(t.Context(), chart, parse(t, values))
	if err != nil {
		return nil, err
	}
	return release.(*releasev1.Release), nil
}

func (i *installation) upgrade(t *testing.T, values string) {
	t.Helper()
	chart, err := charttest.Load()
	if err != nil {
		t.Fatal(err)
	}
	upgrade := action.NewUpgrade(i.config)
	upgrade.Namespace, upgrade.WaitStrategy, upgrade.Timeout = i.namespace, kube.HookOnlyStrategy, limit
	if _, err := upgrade.RunWithContext(t.Context(), i.name, chart, parse(t, values)); err != nil {
		t.Fatal(err)
	}
}

// uninstall runs the hook's command with the hook's account, because KWOK only pretends
// that the Job's pod ran it. Then it uninstalls the release with all hooks.
func (i *installation) uninstall(t *testing.T, release *releasev1.Release, kuota string) (output string) {
	t.Helper()
	var account string
	var args []string
	var permissions strings.Builder
	for _, hook := range release.Hooks {
		if !slices.Contains(hook.Events, releasev1.HookPreDelete) {
			continue
		}
		object := parse(t, hook.Manifest)
		switch hook.Kind {
		case "ServiceAccount":
			account = hook.Name
		case "Job":
			pod := object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
			for _, arg := range pod["containers"].([]any)[0].(map[string]any)["args"].([]any) {
				args = append(args, arg.(string))
			}
			continue
		}
		permissions.WriteString("---\n" + hook.Manifest + "\n")
	}
	i.Kubectl(t, permissions.String(), "apply", "-f", "-")
	command := exec.Command(kuota, append(args, "--kubeconfig", i.kubeconfig(t, account))...)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("kuota %s: %v\n%s", args, err, out)
	}
	i.Kubectl(t, permissions.String(), "delete", "-f", "-")
	uninstall := action.NewUninstall(i.config)
	uninstall.WaitStrategy, uninstall.Timeout = kube.HookOnlyStrategy, limit
	if _, err := uninstall.Run(i.name); err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// kubeconfig returns the path of a kubeconfig of a service account.
func (i *installation) kubeconfig(t *testing.T, account string) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](3600)}}
	if err := i.Client.SubResource("token").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account, Namespace: i.namespace}}, request); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "a",
		"contexts": []any{map[string]any{"name": "a", "context": map[string]any{"cluster": "a", "user": "a"}}},
		"clusters": []any{map[string]any{"name": "a", "cluster": map[string]any{"server": i.Config.Host, "certificate-authority": i.Config.CAFile, "certificate-authority-data": i.Config.CAData}}},
		"users":    []any{map[string]any{"name": "a", "user": map[string]any{"token": request.Status.Token}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), account)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// console runs the console with the account of the release.
func (i *installation) console(t *testing.T, kuota string) *process {
	t.Helper()
	a := i.fromRelease(t)
	p := i.start(t, kuota, a, "none")
	// The controllers write with the permissions of the release, in its namespace.
	i.Kubectl(t, policy+team, "apply", "-f", "-")
	i.Kubectl(t, "", "wait", "--for=condition=Ready", "computeallocation/charted", "--timeout=180s")
	clustertest.Eventually(t, limit, func(context.Context) error {
		if out := i.Kubectl(t, "", "get", "controllerrevisions", "-n", i.namespace, "-l", "kuota.dev/revision-of=allocation.charted", "-o", "name"); out == "" {
			return fmt.Errorf("no version in namespace %s", i.namespace)
		}
		return nil
	})
	// The doctor probes the parameters of the admission policies, which the console creates.
	i.Kubectl(t, "", "wait", "--for=create", "configmap/kuota-enforcement", "-n", i.namespace, "--timeout=180s")
	doctor := exec.Command(kuota, append([]string{"doctor", "--output=json"}, a.args[1:]...)...)
	doctor.Env = i.env(a, "none")
	var diagnosis struct{ Result string }
	out, _ := doctor.Output() // its exit code depends on the cluster
	if err := json.Unmarshal(out, &diagnosis); err != nil || diagnosis.Result != "OK" && diagnosis.Result != "Problems" {
		t.Errorf("kuota doctor cannot check the cluster with the console's permissions: %v\n%s", err, out)
	}
	p.checkPermissions(t)
	return p
}

// restoreManifests applies deploy/crds and deploy/rbac again when the test ends.
func restoreManifests(t *testing.T) {
	t.Helper()
	c, deploy := clustertest.Get(t), filepath.Join(clustertest.Root(), "deploy")
	t.Cleanup(func() {
		c.Kubectl(t, "", "apply", "--server-side", "--force-conflicts", "-f", filepath.Join(deploy, "crds"), "-f", filepath.Join(deploy, "rbac"))
	})
}

// teamObjects returns what must not change while the console is installed, upgraded and
// removed.
func (i *installation) teamObjects(t *testing.T) string {
	t.Helper()
	return i.Kubectl(t, "", "get", "computeallocation/charted", "-o", `jsonpath={.kind} {.metadata.uid} {.spec}{"\n"}`) + i.queueObjects(t)
}

// queueObjects returns those of teamObjects that Kueue and Kubernetes have without Kuota.
func (i *installation) queueObjects(t *testing.T) string {
	t.Helper()
	return i.Kubectl(t, "", "get", "clusterqueue/hyperpod-ns-charted-clusterqueue", "namespace/hyperpod-ns-charted", "-o", `jsonpath={range .items[*]}{.kind} {.metadata.uid} {.spec}{"\n"}{end}`) +
		i.Kubectl(t, "", "get", "localqueues,rolebindings", "-n", "hyperpod-ns-charted", "-o", `jsonpath={range .items[*]}{.kind} {.metadata.uid} {.spec}{"\n"}{end}`)
}

// The chart takes over the raw manifests, is upgraded and uninstalled, and installed
// again under another name in another namespace. The console works with exactly the
// permissions of the release, and objects of teams do not change.
func TestChart(t *testing.T) {
	if onNode() {
		t.Skip("runs without a real node")
	}
	c := clustertest.Get(t)
	restoreManifests(t)
	kuota := filepath.Join(clustertest.Root(), ".local", "bin", "kuota") // by make kuota

	first := newInstallation(t, "kuota", "kuota-system")
	if _, err := first.install(t, values, false, false); err == nil || !strings.Contains(err.Error(), "cannot be imported") {
		t.Fatalf("the chart silently takes over objects of others: %v", err)
	}
	release, err := first.install(t, values, true, true)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(release.Info.Notes, "/auth/callback") {
		t.Errorf("the notes do not say what to do next:\n%s", release.Info.Notes)
	}
	first.Kubectl(t, "", "rollout", "status", "deployment/kuota", "-n", "kuota-system", "--timeout=180s")
	console := first.console(t, kuota)
	first.runTasks(t)
	before, tasks := first.teamObjects(t), first.tasks(t)
	console.stop()

	first.upgrade(t, strings.Replace(values, "url:", "replicas: 3\nurl:", 1))
	first.Kubectl(t, "", "wait", "--for=jsonpath={.status.readyReplicas}=3", "deployment/kuota", "-n", "kuota-system", "--timeout=180s")
	if diff := cmp.Diff(before, first.teamObjects(t)); diff != "" {
		t.Errorf("the upgrade changes (-before +after):\n%s", diff)
	}
	first.check(t, tasks, "the upgrade")

	second := newInstallation(t, "gpu", "platform")
	if _, err := second.install(t, values, false, false); err == nil {
		t.Fatal("a second console is installed beside the first")
	}

	out := first.uninstall(t, release, kuota)
	for _, want := range []string{"delete ValidatingAdmissionPolicy kuota-workloads", "delete ClusterRoleBinding kuota-console", "remove the finalizers of charted"} {
		if !strings.Contains(out, want) {
			t.Errorf("kuota uninstall does not %s:\n%s", want, out)
		}
	}
	if diff := cmp.Diff(before, first.teamObjects(t)); diff != "" {
		t.Errorf("uninstalling changes (-before +after):\n%s", diff)
	}
	first.check(t, tasks, "uninstalling")
	if left := c.Kubectl(t, "", "get", "clusterroles,clusterrolebindings,validatingadmissionpolicies,mutatingadmissionpolicies", "-o", "name"); true {
		var ours []string
		for line := range strings.Lines(left) {
			if strings.Contains(line, "/kuota-") && !strings.Contains(line, "/kuota-team-member-") { // these are its parts
				ours = append(ours, strings.TrimSpace(line))
			}
		}
		if diff := cmp.Diff([]string{"clusterrole.rbac.authorization.k8s.io/kuota-admin", "clusterrole.rbac.authorization.k8s.io/kuota-department-admin", "clusterrole.rbac.authorization.k8s.io/kuota-department-viewer", "clusterrole.rbac.authorization.k8s.io/kuota-team-member"}, ours); diff != "" {
			t.Errorf("objects that remain (-want +got):\n%s", diff)
		}
	}

	if release, err = second.install(t, values, true, false); err != nil {
		t.Fatal(err)
	}
	second.console(t, kuota)
	// A team cannot use the console's namespace, whatever its name.
	stolen := strings.NewReplacer("name: charted", "name: stolen", "spec:\n", "spec:\n  namespace: platform\n").Replace(team)
	if out, err := c.TryKubectl(stolen, "apply", "-f", "-"); err == nil || !strings.Contains(out, "reserved for the cluster") {
		t.Errorf("an allocation in the console's namespace: %v %s", err, out)
	}
	if diff := cmp.Diff(before, second.teamObjects(t)); diff != "" {
		t.Errorf("installing again changes (-before +after):\n%s", diff)
	}
	second.check(t, tasks, "installing again")

	second.deleteNamespace(t)
	second.check(t, tasks, "deleting the namespace of another team")
	second.deleteCRDs(t)
	if diff := cmp.Diff(before[strings.Index(before, "\n")+1:], second.queueObjects(t)); diff != "" {
		t.Errorf("deleting the CRDs changes (-before +after):\n%s", diff)
	}
	second.check(t, tasks, "deleting the CRDs")
	second.uninstall(t, release, kuota)
	second.check(t, tasks, "uninstalling without CRDs")
}

// deleteNamespace deletes the namespace of another team: it is deleted with its tasks,
// the console creates it again, and then the team can be deleted.
func (i *installation) deleteNamespace(t *testing.T) {
	t.Helper()
	const namespace = "hyperpod-ns-leaves"
	i.Kubectl(t, strings.Replace(team, "name: charted", "name: leaves", 1), "apply", "-f", "-")
	i.Kubectl(t, "", "wait", "--for=condition=Ready", "computeallocation/leaves", "--timeout=180s")
	i.Kubectl(t, strings.ReplaceAll(task("ends", 1, "1h"), "charted", "leaves"), "apply", "-f", "-")
	i.Kubectl(t, "", "delete", "namespace", namespace, "--timeout=90s")
	clustertest.Eventually(t, limit, func(context.Context) error {
		if out, err := i.TryKubectl("", "get", "localqueues,rolebindings", "-n", namespace, "-o", "name"); err != nil || !strings.Contains(out, "hyperpod-ns-leaves-localqueue") || !strings.Contains(out, "kuota-members") {
			return fmt.Errorf("the namespace has %q (%v), want the team's objects", out, err)
		}
		return nil
	})
	i.Kubectl(t, "", "wait", "--for=condition=Ready", "computeallocation/leaves", "--timeout=180s")
	i.Kubectl(t, "", "delete", "computeallocation", "leaves", "--timeout=90s")
	i.Kubectl(t, "", "delete", "namespace", namespace, "--timeout=90s")
}

// deleteCRDs deletes Kuota's CRDs while the console runs.
func (i *installation) deleteCRDs(t *testing.T) {
	t.Helper()
	i.Kubectl(t, "", "delete", "crd", "elasticjobs.kuota.dev", "computeallocations.kuota.dev", "clusterpolicies.kuota.dev", "--timeout=90s")
}
