package reconcile

import (
	"context"
	"sync/atomic"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/clusterstate"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// leaving tells whether Kuota's kinds are being taken out of the cluster. Their
// objects are then deleted too, which is not what somebody means who deletes a
// team: queues, pools and what is lent stay as they are. It asks the API server
// itself each time, since what is deleted wrongly does not come back.
func crdsDeleted(ctx context.Context, live client.Reader) (bool, error) {
	for _, plural := range []string{"computeallocations", "clusterpolicies"} {
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

// presence reads the policy for controllers that undo something when there is
// none.
type policyReader struct {
	existed atomic.Bool // a policy was seen since it was last known that Kuota stays
}

// policy is the policy. When it is gone, it tells whether that is because Kuota
// leaves the cluster; who never had one is asked nothing.
func (p *policyReader) get(ctx context.Context, cached, live client.Reader) (policy *v1alpha1.ClusterPolicy, leaves bool, err error) {
	if policy, err = clusterstate.Policy(ctx, cached); err != nil {
		return nil, false, err
	}
	if policy != nil {
		p.existed.Store(true)
		return policy, false, nil
	}
	if !p.existed.Load() {
		return nil, false, nil
	}
	if leaves, err = crdsDeleted(ctx, live); !leaves && err == nil {
		p.existed.Store(false)
	}
	return nil, leaves, err
}
