package behavior_test

import (
	"context"

	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/kueueconfig"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// older says whether the Kueue here has no exact reasons yet, which came with
// 0.19: make older runs these stories on a 0.16.
var older bool

// lookAtVersion fills older.
func lookAtVersion(c *clustertest.Cluster) error {
	var manager appsv1.Deployment
	if err := c.Client.Get(context.Background(), client.ObjectKey{Namespace: "kueue-system", Name: "kueue-controller-manager"}, &manager); err != nil {
		return err
	}
	_, older = kueueconfig.Version(manager.Spec.Template.Spec.Containers[0].Image, 19)
	return nil
}

// reasonsHere are those that the Kueue here may give where a current one gives
// reason. An older one calls whatever it looked at Pending, and does not tell
// what a queue takes back from what sharing fairly costs.
func reasonsHere(reason string) []string {
	if older {
		switch reason {
		case "WaitingForQuota", "ExceedsMaxQuota":
			return []string{"Pending"}
		case "Suspended":
			return []string{"Inadmissible"}
		case "InCohortReclamation":
			return []string{reason, "InCohortFairSharing"}
		}
	}
	return []string{reason}
}
