package clusterstate

import (
	"context"
	"maps"
	"sync"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/quota/catalog"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Policy returns the cluster policy, or nil if there is none. A policy that is
// being deleted counts until it no longer exists.
func Policy(ctx context.Context, reader client.Reader) (*v1alpha1.ClusterPolicy, error) {
	var policy v1alpha1.ClusterPolicy
	err := reader.Get(ctx, client.ObjectKey{Name: v1alpha1.ClusterPolicyName}, &policy)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return nil, cluster.Translate("read the cluster policy", err)
	case err != nil:
		return nil, nil
	}
	return &policy, nil
}

// CRDsDeleted reports whether one of Kuota's CRDs is deleted or being deleted. The
// reader reads from the API server, because an erroneous deletion cannot be undone.
func CRDsDeleted(ctx context.Context, live client.Reader, plurals ...string) (bool, error) {
	for _, plural := range plurals {
		var crd metav1.PartialObjectMetadata
		crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
		switch err := live.Get(ctx, client.ObjectKey{Name: plural + "." + v1alpha1.GroupVersion.Group}, &crd); {
		case apierrors.IsNotFound(err):
			return true, nil
		case err != nil:
			return false, err
		case crd.DeletionTimestamp != nil:
			return true, nil
		}
	}
	return false, nil
}

// Catalog returns the catalog of the nodes and of the pools that the policy's
// status lists. The pools of its spec may not be applied yet.
func Catalog(ctx context.Context, reader client.Reader, instanceTypeLabel string) (catalog.Catalog, error) {
	return new(Catalogs).Get(ctx, reader, instanceTypeLabel)
}

// Catalogs returns the catalog again and again, and computes it only after a change of the
// nodes or the policy. It is safe for concurrent use.
type Catalogs struct {
	mu       sync.Mutex
	versions map[string]string // of the nodes that last was computed from, by name; of the policy without a name
	last     catalog.Catalog
}

// Get returns the catalog as Catalog does. The label is the same in all calls.
func (c *Catalogs) Get(ctx context.Context, reader client.Reader, instanceTypeLabel string) (catalog.Catalog, error) {
	var nodes corev1.NodeList
	if err := cluster.List(ctx, reader, &nodes); err != nil {
		return catalog.Catalog{}, err
	}
	policy, err := Policy(ctx, reader)
	if err != nil {
		return catalog.Catalog{}, err
	}
	input := catalog.Input{Nodes: nodes.Items, InstanceTypeLabel: instanceTypeLabel}
	versions := make(map[string]string, 1+len(nodes.Items))
	if policy != nil {
		input.Pools, input.ReportedTypes = policy.Status.Pools, policy.Status.ReportedTypes
		versions[""] = string(policy.UID) + policy.ResourceVersion
	}
	for i := range nodes.Items {
		node := &nodes.Items[i]
		versions[node.Name] = string(node.UID) + node.ResourceVersion
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.versions == nil || !maps.Equal(c.versions, versions) {
		c.last, c.versions = catalog.New(input), versions
	}
	return c.last, nil
}
