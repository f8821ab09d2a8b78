package elastic

import (
	"context"
	"fmt"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/leader"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Options configure the controller.
type Options struct {
	Rooms   Rooms
	Claims  Claims
	Sources Sources
	// Leader elects the replica whose controller reconciles; nil means that there is
	// only one replica.
	Leader *leader.Leader
	// RecordsUsers reports whether the API server records who changes a spec; nil means
	// that it does.
	RecordsUsers func() bool
	// Paused reports whether Kuota writes nothing now; nil is never.
	Paused func() bool
}

// SetupWithManager adds the controller of ElasticJobs to a manager.
func SetupWithManager(manager ctrl.Manager, options Options) (*Reconciler, error) {
	labeled, err := labels.NewRequirement(v1alpha1.LabelElasticJobUID, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("set up elastic jobs: %w", err)
	}
	parts, err := cache.New(manager.GetConfig(), cache.Options{
		Scheme: cluster.Scheme, Mapper: manager.GetRESTMapper(), HTTPClient: manager.GetHTTPClient(),
		DefaultLabelSelector: labels.NewSelector().Add(*labeled), DefaultTransform: slim,
	})
	if err != nil {
		return nil, fmt.Errorf("set up elastic jobs: %w", err)
	}
	if err := manager.Add(parts); err != nil {
		return nil, fmt.Errorf("set up elastic jobs: %w", err)
	}
	r := NewReconciler(manager.GetClient(), manager.GetAPIReader(), parts, options)
	return r, ctrl.NewControllerManagedBy(manager).Named("elastic").
		For(&v1alpha1.ElasticJob{}).
		WatchesRawSource(source.Kind(parts, &batchv1.Job{}, handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, job *batchv1.Job) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: job.Namespace, Name: job.Labels[v1alpha1.LabelElasticJob]}}}
		}))).
		Watches(&kueue.Workload{}, handler.EnqueueRequestsFromMapFunc(r.ofWorkload)).
		WatchesRawSource(source.Channel(options.Leader.Events(), handler.EnqueueRequestsFromMapFunc(r.all))).
		WithOptions(cluster.ControllerOptions(1, 5*time.Second)).
		Complete(options.Leader.Reconciler(r, options.Paused))
}

// ofWorkload returns the ElasticJob that a Workload belongs to.
func (r *Reconciler) ofWorkload(ctx context.Context, object client.Object) []reconcile.Request {
	owner := jobOf(object)
	if owner == nil {
		return nil
	}
	var job batchv1.Job
	if err := r.Parts.Get(ctx, client.ObjectKey{Namespace: object.GetNamespace(), Name: owner.Name}, &job, client.UnsafeDisableDeepCopy); err != nil {
		return nil // not a part of an ElasticJob
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: job.Namespace, Name: job.Labels[v1alpha1.LabelElasticJob]}}}
}

// all returns all ElasticJobs.
func (r *Reconciler) all(ctx context.Context, _ client.Object) (requests []reconcile.Request) {
	var list v1alpha1.ElasticJobList
	if err := r.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache has not synced: an event follows for each
	}
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}
