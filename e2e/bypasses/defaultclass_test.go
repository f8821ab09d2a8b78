package bypasses_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/cluster/clustertest"
)

// TestAcceptsTheClassThatKueueSets checks that jobs to which Kueue gives its default
// priority class are accepted, as long as that class exists. Kueue 0.20 does so, and
// 0.18 and 0.19 if the gate is on.
func TestAcceptsTheClassThatKueueSets(t *testing.T) {
	ns := newNamespace(t)
	var before string
	ns.Configure(t, func(text string) string {
		before = text
		return strings.Replace(text, "featureGates:\n", "featureGates:\n  WorkloadPriorityClassDefaulting: true\n", 1)
	})
	defer ns.Configure(t, func(string) string { return before })

	unclassed := jobOf("unclassed", onlyQueue, ``, ``)
	classed := jobOf("classed", `labels: {kueue.x-k8s.io/queue-name: QUEUE, kueue.x-k8s.io/priority-class: default}`, ``, ``)
	create := func(manifest string) (string, error) {
		return ns.TryKubectl(ns.fill(manifest), "create", "--dry-run=server", "-o", "jsonpath={.metadata.labels}", "-f", "-")
	}
	rejectsDefault := func(context.Context) error {
		if out, err := create(classed); err == nil || !strings.Contains(out, "unknown priority class default") {
			return fmt.Errorf("a job of the class default: got %s, %v, want a rejection", out, err)
		}
		return nil
	}
	clustertest.Eventually(t, waitLimit, rejectsDefault)

	ns.Apply(t, `{apiVersion: kueue.x-k8s.io/v1beta2, kind: WorkloadPriorityClass, metadata: {name: default}, value: 0}`)
	remove := func() {
		_, _ = ns.TryKubectl("", "delete", "workloadpriorityclass", "default", "--ignore-not-found")
	}
	defer remove()
	clustertest.Eventually(t, waitLimit, func(context.Context) error {
		out, err := create(unclassed)
		if err != nil || !strings.Contains(out, `"kueue.x-k8s.io/priority-class":"default"`) {
			return fmt.Errorf("a job without a class: got %s, %v, want Kueue's default class", out, err)
		}
		return nil
	})

	remove()
	clustertest.Eventually(t, waitLimit, rejectsDefault)
}
