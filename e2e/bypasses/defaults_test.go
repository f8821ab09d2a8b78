package bypasses_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/cluster/clustertest"
)

// TestDefaults checks that a task that names no queue or no class gets those that its team set, and
// that one that names them keeps them.
func TestDefaults(t *testing.T) {
	ns := newNamespace(t)
	defer ns.clear(t)
	if _, err := ns.TryKubectl("", "get", "mutatingadmissionpolicy", "kuota-defaults"); err != nil {
		t.Skip("the API server has no mutating policies")
	}
	const read = `jsonpath={.metadata.labels.kueue\.x-k8s\.io/queue-name} {.metadata.labels.kueue\.x-k8s\.io/priority-class}`
	create := func(manifest string) (string, error) {
		out, err := ns.TryKubectl(ns.fill(manifest), "create", "--dry-run=server", "-f", "-", "-o", read)
		return out[strings.LastIndex(out, "\n")+1:], err // after warnings
	}
	ns.Kubectl(t, "", "annotate", "namespace", ns.name, "--overwrite", ns.fill("kuota.dev/defaults=queue Job QUEUE\nclass QUEUE dev-priority\nclass default training-priority"))
	defer ns.Kubectl(t, "", "annotate", "namespace", ns.name, "kuota.dev/defaults-")
	const class = `, kueue.x-k8s.io/priority-class: training-priority`
	queue := ns.fill("QUEUE")
	for name, tc := range map[string]struct{ manifest, want string }{
		"names nothing":                {jobOf("a", `annotations: {a: b}`, ``, ``), queue + " dev-priority"},
		"names its queue":              {jobOf("a", onlyQueue, ``, ``), queue + " dev-priority"},
		"names its class":              {jobOf("a", `labels: {a: b`+class+`}`, ``, ``), queue + " training-priority"},
		"names both":                   {jobOf("a", labeled(class), ``, ``), queue + " training-priority"},
		"a label of pods":              {jobOf("a", onlyQueue, `labels: {kueue.x-k8s.io/priority-class: training-priority}`, ``), queue + " training-priority"},
		"a kind without a default":     {elasticFor("a", onlyQueue, ""), queue + " dev-priority"},
		"a CronJob, which is for Jobs": {cronJobOf(onlyQueue), " "},
	} {
		clustertest.Eventually(t, waitLimit, func(context.Context) error { // until the API server has the annotation
			if out, err := create(tc.manifest); err != nil || out != tc.want {
				return fmt.Errorf("%s: got %q, %v, want %q", name, out, err, tc.want)
			}
			return nil
		})
	}
}
