package uninstall_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/controllers/elastic"
	"kuota.dev/kuota/governance/controllers/reconcile"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/tasks/queries"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// startConsole starts the controllers of a console, and returns a function that stops them.
func startConsole(t *testing.T, c *clustertest.Cluster) (stop func()) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
	connection, err := cluster.New(c.Console, cluster.Options{Log: log})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reconcile.SetupWithManager(connection.Manager, reconcile.Options{Naming: desired.DefaultNaming, Kueue: reconcile.DefaultKueueInstall}); err != nil {
		t.Fatal(err)
	}
	tasks := queries.New(connection, &access.Service{Cluster: connection})
	if _, err := elastic.SetupWithManager(connection.Manager, elastic.Options{Rooms: tasks.Rooms, Claims: tasks.Claims, Sources: tasks.IdleSources}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		_ = connection.Run(ctx)
	}()
	return func() {
		cancel()
		<-stopped
	}
}

// grow creates an ElasticJob, and waits until both of its pods run.
func grow(t *testing.T, c *clustertest.Cluster, name string) {
	t.Helper()
	manifest := fmt.Sprintf(`
apiVersion: kuota.dev/v1alpha1
kind: ElasticJob
metadata: {name: %s, namespace: hyperpod-ns-stays, labels: {kueue.x-k8s.io/queue-name: hyperpod-ns-stays-localqueue}}
spec:
  elasticPolicy: {minReplicas: 1, maxReplicas: 2, replicaIncrementStep: 1, gracefulShutdownTimeoutInSeconds: 0, scalingTimeoutInSeconds: 1}
  template:
    metadata: {annotations: {pod-complete.stage.kwok.x-k8s.io/delay: 1h}}
    spec: {containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: 1}}}]}
`, name)
	clustertest.Eventually(t, soon, func(context.Context) error { // the CRD may not be served yet
		out, err := c.TryKubectl(manifest, "apply", "-f", "-")
		if err == nil {
			out, err = c.TryKubectl("", "get", "pods", "-n", "hyperpod-ns-stays", "-l", "kuota.dev/elastic-job="+name, "-o", "jsonpath={.items[*].status.phase}")
		}
		if err != nil || out != "Running Running" {
			return fmt.Errorf("pods of %s: %s (%w)", name, out, err)
		}
		return nil
	})
}

// podsOf returns the pods of an ElasticJob with their UIDs and phases.
func podsOf(t *testing.T, c *clustertest.Cluster, name string) string {
	t.Helper()
	return c.Kubectl(t, "", "get", "pods", "-n", "hyperpod-ns-stays", "-l", "kuota.dev/elastic-job="+name, "-o", `jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} {.status.phase} {.metadata.deletionTimestamp}{"\n"}{end}`)
}

const elasticCRD = "elasticjobs.kuota.dev"

func waitNoCRD(t *testing.T, c *clustertest.Cluster) {
	t.Helper()
	clustertest.Eventually(t, soon, func(context.Context) error {
		if out, err := c.TryKubectl("", "get", "crd", elasticCRD); err == nil || !strings.Contains(out, "NotFound") {
			return fmt.Errorf("the CRD exists: %s", out)
		}
		return nil
	})
}

// Without a console the CRD of ElasticJobs stays until their finalizers are removed, as that
// of allocations does, and their pods run on. TestUninstall covers a console that runs, and
// kuota uninstall.
func TestElasticJobsWithoutAConsole(t *testing.T) {
	clustertest.OnlyVerify(t)
	c := clustertest.Get(t)
	stop := startConsole(t, c)
	waitInstalled(t, c)
	t.Cleanup(func() {
		c.Kubectl(t, "", "apply", "--server-side", "-f", filepath.Join(clustertest.Root(), "deploy", "crds"))
		deleteParts(t, c)
	})
	grow(t, c, "orphan")
	before := podsOf(t, c, "orphan")
	stop()
	c.Kubectl(t, "", "delete", "crd", elasticCRD, "--wait=false")
	time.Sleep(3 * time.Second)
	if out := c.Kubectl(t, "", "get", "crd", elasticCRD, "-o", "jsonpath={.metadata.deletionTimestamp}"); out == "" {
		t.Error("the CRD is not being deleted")
	}
	if now := podsOf(t, c, "orphan"); now != before {
		t.Errorf("deleting the CRD changed pods from\n%sto\n%s", before, now)
	}
	c.Kubectl(t, "", "patch", "elasticjob", "orphan", "-n", "hyperpod-ns-stays", "--type=merge", "-p", `{"metadata": {"finalizers": null}}`)
	waitNoCRD(t, c)
	if now := podsOf(t, c, "orphan"); now != before {
		t.Errorf("removing the finalizer changed pods from\n%sto\n%s", before, now)
	}
}

// deleteParts deletes the Jobs and Services of ElasticJobs that do not exist any more.
func deleteParts(t *testing.T, c *clustertest.Cluster) {
	t.Helper()
	c.Kubectl(t, "", "delete", "jobs,services", "-n", "hyperpod-ns-stays", "-l", "kuota.dev/elastic-job", "--cascade=foreground")
}
