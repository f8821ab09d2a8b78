package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	visibility "sigs.k8s.io/kueue/apis/visibility/v1beta2"
)

// PendingWorkloads returns the pending Workloads of a LocalQueue in their
// order, by Kueue's visibility API, as the console: at most limit of them, from
// the position offset, which counts from 0. Kueue sorts the whole ClusterQueue
// for each request (0.19), so do not call it for every page. It returns
// governance.NotFound if the queue or the API does not exist, and
// governance.Forbidden without permission.
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
		return nil, Translate(op, fmt.Errorf("decode Kueue's response: %w", err))
	}
	return summary.Items, nil
}
