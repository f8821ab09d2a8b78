package cluster

import (
	"context"

	"kuota.dev/kuota/governance"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HyperPodPolicy is the name of an admission policy that only HyperPod's add-on
// creates. The add-on's labels on queues show nothing: Kuota sets the same
// ones, and queues outlive the add-on.
const HyperPodPolicy = "hyperpod-task-governance-admission-policy"

// addOnMissingLimit is how often in a row the add-on's policy must be missing
// before the add-on counts as removed.
const addOnMissingLimit = 2

const readOnlyMessage = "HyperPod task governance manages this cluster, so this console is read-only. To take over, remove the add-on or start the console with --take-over."

// ReadOnlyReason returns a sentence about why the console writes nothing; empty
// if it writes. It is set before anything can be read.
func (c *Cluster) ReadOnlyReason() string {
	if c.readOnly.Load() {
		return readOnlyMessage
	}
	return ""
}

// detectAddOn updates whether HyperPod's add-on manages the cluster. On an
// error this is unknown.
func (c *Cluster) detectAddOn(ctx context.Context) error {
	if c.takeOver {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, discoveryTimeout)
	defer cancel()
	_, err := c.clientset.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(ctx, HyperPodPolicy, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err): // the last result stays
		return nil
	case err == nil:
		c.addOnMissing = 0
	case !apierrors.IsNotFound(err):
		return err
	case c.readOnly.Load() && c.addOnMissing < addOnMissingLimit: // it may be in the middle of an update
		c.addOnMissing++
		return nil
	}
	if governed := err == nil; c.readOnly.Swap(governed) != governed {
		c.log.Warn("governing add-on changed", "readOnly", governed)
		c.AllocationChanges.Notify()
	}
	return nil
}

func (c *Cluster) writable(op string) error {
	if why := c.ReadOnlyReason(); why != "" {
		return &governance.Error{Kind: governance.Forbidden, Op: op, Message: why}
	}
	return nil
}
