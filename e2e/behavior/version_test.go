package behavior_test

import (
	"context"

	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/kueue/kueueconfig"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// older reports whether Kueue predates 0.19, which introduced exact reasons for
// pending workloads. make older runs these scenarios on Kueue 0.16.
var older bool

// detectVersion sets older from the image of Kueue's Deployment.
func detectVersion(c *clustertest.Cluster) error {
	var manager appsv1.Deployment
	if err := c.Client.Get(context.Background(), client.ObjectKey{Namespace: "kueue-system", Name: "kueue-controller-manager"}, &manager); err != nil {
		return err
	}
	_, older = kueueconfig.Version(manager.Spec.Template.Spec.Containers[0].Image, 19)
	return nil
}

// acceptedReasons returns the reasons that the running Kueue may set where Kueue
// 0.19 sets reason. An older Kueue sets Pending on every workload that it could
// not admit, and does not distinguish reclamation from fair sharing.
func acceptedReasons(reason string) []string {
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
