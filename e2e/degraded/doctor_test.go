package degraded_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/cluster/clustertest"
)

// diagnosis is what kuota doctor prints as JSON.
type diagnosis struct {
	Kubernetes, Kueue, Result string
	Findings                  []struct{ ID, Severity, Title, Impact, Fix string }
	Unchecked                 []string
}

// doctor runs the built kuota doctor with a kubeconfig of the cluster, and returns
// its output and its exit code.
func doctor(t *testing.T, c *clustertest.Cluster, kubeconfig string, args ...string) (out string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(t.Context(), filepath.Join(clustertest.Root(), ".local", "bin", "kuota"), append([]string{"doctor", "--kubeconfig", filepath.Join(c.Dir, kubeconfig)}, args...)...)
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil && command.ProcessState == nil {
		t.Fatalf("run kuota doctor: %v: run make kuota first", err)
	}
	t.Logf("kuota doctor %s: exit code %d\n%s%s", strings.Join(args, " "), command.ProcessState.ExitCode(), stdout.String(), stderr.String())
	return stdout.String(), command.ProcessState.ExitCode()
}

// diagnose returns the parsed output of kuota doctor.
func diagnose(t *testing.T, c *clustertest.Cluster, kubeconfig string, args ...string) (d diagnosis, code int) {
	t.Helper()
	out, code := doctor(t, c, kubeconfig, append(args, "--output=json")...)
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatalf("output of kuota doctor: %v\n%s", err, out)
	}
	return d, code
}

func (d diagnosis) severityOf(id string) string {
	for _, f := range d.Findings {
		if f.ID == id {
			return f.Severity
		}
	}
	return ""
}

// TestDoctor breaks the cluster and checks that kuota doctor finds it, as a cluster
// admin and as the console's own account.
func TestDoctor(t *testing.T) {
	c := clustertest.Get(t)
	const admin, account = "kubeconfig", "kubeconfigs/kuota"
	c.Configure(t, func(text string) string { return strings.Replace(text, "\n  - pod\n", "\n", 1) }) // which another test adds
	for _, kubeconfig := range []string{admin, account} {
		clustertest.Eventually(t, waitLimit, func(context.Context) error {
			if d, code := diagnose(t, c, kubeconfig); code != 0 || d.Result != "OK" || len(d.Unchecked) > 0 || d.severityOf("pods") != "Warning" || d.Kueue == "" {
				return fmt.Errorf("%s: got exit code %d and %+v, want 0 with a warning about pods", kubeconfig, code, d)
			}
			return nil
		})
	}
	if out, code := doctor(t, c, admin); code != 0 || !strings.Contains(out, "WARNING pods: ") || !strings.Contains(out, "\n0 errors, ") {
		t.Errorf("got exit code %d and\n%s\nwant 0 and a warning about pods", code, out)
	}

	members := filepath.Join(clustertest.Root(), "deploy", "rbac", "members.yaml")
	c.Kubectl(t, "", "delete", "validatingadmissionpolicybinding", "kuota-workloads")
	if d, code := diagnose(t, c, account); code != 1 || d.Result != "Problems" || d.severityOf("members") != "Error" {
		t.Errorf("without a binding: got exit code %d and %+v, want 1 and the finding members", code, d)
	}
	c.Kubectl(t, "", "apply", "--server-side", "--force-conflicts", "-f", members)

	c.Kubectl(t, "", "--namespace=kueue-system", "delete", "rolebinding", "kuota-kueue-configuration")
	if d, code := diagnose(t, c, account); code != 1 || d.severityOf("kueue-forbidden") != "Error" {
		t.Errorf("without permission on Kueue's configuration: got exit code %d and %+v, want 1 and the finding kueue-forbidden", code, d)
	}
	if d, code := diagnose(t, c, admin, "--as=system:serviceaccount:kuota-system:kuota"); code != 1 || d.severityOf("kueue-forbidden") != "Error" {
		t.Errorf("as the console's account: got exit code %d and %+v, want 1 and the finding kueue-forbidden", code, d)
	}
	if d, code := diagnose(t, c, admin); code != 0 {
		t.Errorf("as a cluster admin: got exit code %d and %+v, want 0", code, d)
	}
	c.Kubectl(t, "", "apply", "--server-side", "--force-conflicts", "-f", filepath.Join(clustertest.Root(), "deploy", "rbac", "console.yaml"))

	if d, code := diagnose(t, c, admin, "--kueue-deployment=other"); code != 1 || d.severityOf("kueue-not-found") != "Error" {
		t.Errorf("another Deployment: got exit code %d and %+v, want 1 and the finding kueue-not-found", code, d)
	}
	if d, code := diagnose(t, c, admin, "--as=system:serviceaccount:default:default"); code == 0 || len(d.Unchecked) == 0 {
		t.Errorf("as an account without permissions: got exit code %d and %+v, want parts that could not be read", code, d)
	}
}
