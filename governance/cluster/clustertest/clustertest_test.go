package clustertest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/cluster/clustertest"
)

func TestMain(m *testing.M) { clustertest.Main(m) }

func TestConfigureRestartsKueueWithNewConfiguration(t *testing.T) {
	c := clustertest.Get(t)
	const fair = "\nfairSharing: {preemptionStrategies: [LessThanInitialShare]}\n"
	for _, on := range []bool{true, false} {
		c.Configure(t, func(text string) string {
			if on {
				return text + fair
			}
			return strings.Replace(text, fair, "", 1)
		})
		running, err := os.ReadFile(filepath.Join(c.Dir, "run", "kueue-config.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(running), "LessThanInitialShare"); got != on {
			t.Errorf("fair sharing enabled: got %t, want %t", got, on)
		}
	}
}

// What is answered in process is what kubectl prints. TestParse has which calls are. A ~ is
// a space in an argument.
func TestAnswersAsKubectl(t *testing.T) {
	t.Parallel()
	c := clustertest.Get(t)
	namespace := clustertest.Name("get")
	c.Apply(t, fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", namespace))
	for _, name := range []string{"a", "b"} {
		c.Apply(t, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: %s, labels: {is: %[1]s}}, data: {k.v: x%[1]s}}", name, namespace))
	}
	for _, args := range []string{
		"get configmaps -l is -o name",
		"get configmap a b -o name",
		"get cm a -o jsonpath={.data}",
		`get configmap a -o jsonpath={.data.k\.v}/{.missing}`,
		`get configmaps,secrets -l is -o jsonpath={range~.items[*]}{.kind}~{.metadata.name}{"\n"}{end}`,
		"get configmaps -l is=none -o jsonpath={.items[*].metadata.name}",
		"get configmaps -l is=none -o jsonpath={.items[0].metadata.name}",
		"get configmaps -A -l is=a --field-selector metadata.namespace=" + namespace + " -o jsonpath={.items[*].data}",
		"get configmap none -o name",
		"get configmap none --ignore-not-found -o jsonpath={.data}",
		"get clusterroles.rbac.authorization.k8s.io cluster-admin -o name",
		"get clusterrole/cluster-admin -o jsonpath={.metadata.name}",
		"get what -o name",
	} {
		args := append(strings.Split(args, " "), "-n", namespace)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "~", " ")
		}
		got, err := c.TryKubectl("", args...)
		want, wantErr := c.TryKubectl("", append(args, "--request-timeout=1m")...) // a flag that only kubectl knows
		if strings.TrimSpace(got) != strings.TrimSpace(want) || (err == nil) != (wantErr == nil) {
			t.Errorf("%s: got %q (%v), kubectl prints %q (%v)", strings.Join(args, " "), got, err, want, wantErr)
		}
	}

	of := []string{"-n", namespace}
	if out, err := c.TryKubectl("", append([]string{"patch", "configmap", "a", "--type=merge", "-p", `{"data": {"more": "x"}}`}, of...)...); err != nil {
		t.Errorf("patch: %v %s", err, out)
	}
	if got := c.Kubectl(t, "", append([]string{"get", "configmap", "a", "-o", "jsonpath={.data}"}, of...)...); got != `{"k.v":"xa","more":"x"}` {
		t.Errorf("the patched data is %s", got)
	}
	if out, err := c.TryKubectl("", append([]string{"patch", "configmap", "a", "--type=merge", "-p", `{"data": {"more": 1}}`}, of...)...); err == nil || !strings.Contains(out, "error: ") && !strings.Contains(out, "Error from server") && !strings.Contains(out, "invalid") {
		t.Errorf("a wrong patch: %v %s", err, out)
	}
	c.Kubectl(t, "", append([]string{"delete", "configmap,secret", "a", "--ignore-not-found", "--wait=false"}, of...)...)
	if out, err := c.TryKubectl("", append([]string{"delete", "configmap", "a", "--wait=false"}, of...)...); err == nil || !strings.Contains(out, "NotFound") {
		t.Errorf("a second deletion: %v %s", err, out)
	}
}
