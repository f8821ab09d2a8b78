package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	visibility "sigs.k8s.io/kueue/apis/visibility/v1beta2"
)

// Pending asks Kueue's visibility API, as the console itself, which Workloads
// wait in a LocalQueue, in order: at most limit of them, from the place offset,
// which counts from 0. Kueue sorts the whole ClusterQueue for each answer (0.19),
// so this is not for every request. It answers governance.NotFound where there
// is no such queue or no such API, and governance.Forbidden where the console
// may not ask.
func (c *Cluster) PendingWorkloads(ctx context.Context, namespace, queue string, offset, limit int) ([]visibility.PendingWorkload, error) {
	const op = "ask for the order of a queue"
	text, err := c.reviewClientset.Discovery().RESTClient().Get().
		Prefix("apis", visibility.SchemeGroupVersion.Group, visibility.SchemeGroupVersion.Version).
		Namespace(namespace).Resource("localqueues").Name(queue).SubResource("pendingworkloads").
		Param("offset", strconv.Itoa(offset)).Param("limit", strconv.Itoa(limit)).
		SetHeader("Accept", "application/json").
		Do(ctx).Raw()
	if err != nil {
		return nil, Translate(op, err)
	}
	var summary visibility.PendingWorkloadsSummary
	if err := json.Unmarshal(text, &summary); err != nil {
		return nil, Translate(op, fmt.Errorf("reading what Kueue answered: %w", err))
	}
	return summary.Items, nil
}
