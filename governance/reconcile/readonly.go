package reconcile

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// heldLook is how often a controller that is held looks whether it still is.
const readOnlyInterval = 5 * time.Second

// held is a controller that does nothing while it is held, and then what it was
// asked for meanwhile.
func (o Options) skipWhileReadOnly(controller reconcile.Reconciler) reconcile.Reconciler {
	if o.ReadOnly == nil {
		return controller
	}
	return reconcile.Func(func(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
		if o.ReadOnly() {
			return ctrl.Result{RequeueAfter: readOnlyInterval}, nil
		}
		return controller.Reconcile(ctx, request)
	})
}
