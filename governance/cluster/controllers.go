package cluster

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// ControllerOptions returns the options of a controller that reconciles atOnce requests at
// once. A request that fails is tried again after maxDelay at most, so that controllers
// recover soon after the API server does: the default is up to a quarter of an hour. Several
// managers may run in one process, as in tests, so names need not be unique.
func ControllerOptions(atOnce int, maxDelay time.Duration) controller.Options {
	unnamed := true
	return controller.Options{
		MaxConcurrentReconciles: atOnce, SkipNameValidation: &unnamed,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](20*time.Millisecond, maxDelay),
	}
}
