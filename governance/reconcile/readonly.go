package reconcile

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// readOnlyInterval is how often a controller checks whether the console is
// still read-only.
const readOnlyInterval = 5 * time.Second

// skipWhileReadOnly wraps a reconciler so that it requeues its requests while
// the console is read-only.
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
