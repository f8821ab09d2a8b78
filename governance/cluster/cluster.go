package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/resources"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// FieldManager is the field manager of Kuota's controllers.
const FieldManager = "kuota"

// Options configure the connection.
type Options struct {
	Namespace  string // of the console, which stores sessions and revisions in it; empty for neither
	NoSessions bool   // the console has no sign-in
	Metrics    string // address to serve /metrics on; empty or 0 serves none
	TakeOver   bool   // write also where HyperPod's add-on manages the cluster
	// Fence wraps the transport of the controllers' client and of Revisions; nil does not.
	Fence func(http.RoundTripper) http.RoundTripper
	Log   *slog.Logger
}

// Cluster is the connection to one Kubernetes cluster.
type Cluster struct {
	// Manager runs the controllers and owns the cache.
	Manager ctrl.Manager
	// Contact measures when the API server last answered.
	Contact *Contact
	// AllocationChanges and TaskChanges notify the pages of their data's changes.
	AllocationChanges, TaskChanges *Notifier
	// Sessions stores sessions; nil without a namespace or without sign-in.
	Sessions *Sessions
	// Revisions stores versions of policies and allocations; nil without a namespace.
	Revisions *Revisions

	log       *slog.Logger
	watches   *watches
	clientset kubernetes.Interface // acts as the console

	discovery discovery.DiscoveryInterface // acts as the console, with a timeout

	reviewClientset kubernetes.Interface // acts as the console, with its own rate limit, because readers wait for these calls
	// mapper finds kinds that the API server may not serve. A RESTMapper locks out all
	// its users during discovery, and the network may drop that request: saves use
	// that of the manager, which knows their kinds from the start.
	mapper       meta.RESTMapper
	synced       atomic.Bool
	ready        chan struct{} // closed when everything that pages need has synced
	missingKinds atomic.Pointer[MissingKinds]
	noMatches    noMatchCache

	handlersSynced    []toolscache.InformerSynced
	workloadHandler   toolscache.ResourceEventHandler // see HandleWorkloads
	workloadTransform func(*kueue.Workload)
	onWorkloadsSynced func()                            // see HandleWorkloads
	namespaceHandler  toolscache.ResourceEventHandler   // see HandleNamespaces
	elasticHandlers   []toolscache.ResourceEventHandler // see HandleElasticJobs
	watched           []WatchedResource

	readOnly     atomic.Bool // HyperPod's add-on manages the cluster
	addOnMissing int         // how often in a row the add-on was not found; used by one goroutine
	takeOver     bool
}

// New returns a connection that has sent no request yet.
func New(config *rest.Config, options Options) (*Cluster, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 200, 400 // requests per second
	config.UserAgent = FieldManager
	fenced := rest.CopyConfig(config)
	if options.Fence != nil {
		fenced.Wrap(options.Fence)
	}
	c := &Cluster{log: options.Log, ready: make(chan struct{}), watches: newWatches(), takeOver: options.TakeOver, noMatches: newNoMatchCache(systemClock{}), Contact: &Contact{}, AllocationChanges: &Notifier{}, TaskChanges: &Notifier{}}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:   Scheme,
		Metrics:  server.Options{BindAddress: cmp.Or(options.Metrics, "0")},
		Logger:   logr.FromSlogHandler(options.Log.Handler()),
		NewCache: newRedialingCache,
		NewClient: func(_ *rest.Config, of client.Options) (client.Client, error) {
			of.HTTPClient = nil // that of the manager is not fenced
			return client.New(fenced, of)
		},
		Cache: cache.Options{
			// By type here rather than by ByObject, which would request the types of the
			// API server at once.
			DefaultTransform: c.transform,
			NewInformer:      c.watches.informer,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	reviews, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	patience := rest.CopyConfig(config)
	patience.Timeout = discoveryTimeout
	kinds, err := discovery.NewDiscoveryClientForConfig(patience)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	http, err := rest.HTTPClientFor(patience)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	if c.mapper, err = apiutil.NewDynamicRESTMapper(patience, http); err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	c.Manager, c.discovery, c.clientset, c.reviewClientset = manager, kinds, clients, reviews
	if options.Namespace != "" {
		writes, err := kubernetes.NewForConfig(fenced)
		if err != nil {
			return nil, fmt.Errorf("connect to the cluster: %w", err)
		}
		if c.Revisions, err = newRevisions(config, writes, options.Namespace, c.watches); err != nil {
			return nil, err
		}
	}
	if options.Namespace != "" && !options.NoSessions {
		if c.Sessions, err = newSessions(config, manager.GetRESTMapper(), clients, options.Namespace, c.watches, options.Log); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// RegisterMetrics registers the metrics of the connection and its watches.
func (c *Cluster) RegisterMetrics(with prometheus.Registerer) error {
	if err := errors.Join(with.Register(c.Contact.metric()), with.Register(c.watches)); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	return nil
}

// transform removes fields that no code reads from objects of which there are
// many, before the cache stores them, and names the resources that the policy lists.
func (c *Cluster) transform(object any) (any, error) {
	switch o := object.(type) {
	case *kueue.Workload:
		o.ManagedFields = nil
		if c.workloadTransform != nil {
			c.workloadTransform(o)
		}
	case *v1alpha1.ClusterPolicy:
		resources.List(o.Spec.Resources) // before a reader can see this policy
	case *corev1.Node:
		o.ManagedFields = nil
	case *rbacv1.RoleBinding:
		if !strings.HasPrefix(o.Name, FieldManager+"-") { // the managers of Kuota's own RoleBindings are read
			o.ManagedFields = nil
		}
	}
	return object, nil
}

// Run runs the cache and the controllers until ctx ends. It waits until the
// cluster is reachable and serves all kinds.
func (c *Cluster) Run(ctx context.Context) error {
	go c.Contact.run(ctx, c.clientset)
	if c.Sessions != nil {
		go c.Sessions.run(ctx)
	}
	if c.Revisions != nil {
		go c.Revisions.run(ctx, c.AllocationChanges, c.log)
	}
	if err := c.waitForKinds(ctx); err != nil {
		return nil //nolint:nilerr // ctx ended while waiting
	}
	if err := c.startInformers(ctx); err != nil {
		return err
	}
	go c.pollKinds(ctx)
	for _, f := range c.watched {
		go c.watchResource(ctx, f)
	}
	go func() {
		if c.Manager.GetCache().WaitForCacheSync(ctx) && toolscache.WaitForCacheSync(ctx.Done(), c.handlersSynced...) {
			if c.onWorkloadsSynced != nil {
				c.onWorkloadsSynced()
			}
			c.synced.Store(true)
			c.AllocationChanges.Notify()
			c.TaskChanges.Notify()
			if c.waitForNamespace(ctx) {
				close(c.ready)
			}
		}
	}()
	return c.startManager(ctx)
}

// startManager runs the manager until ctx ends. A manager of controller-runtime 0.24
// whose caches have not synced does not return then, but spins.
func (c *Cluster) startManager(ctx context.Context) error {
	ended := make(chan error, 1)
	go func() { ended <- c.Manager.Start(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	if !c.synced.Load() {
		return nil
	}
	return <-ended
}

// revisionsPatience is how long readiness waits for the cache of revisions. Without
// permission to read them, their pages report that.
const revisionsPatience = 10 * time.Second

// waitForNamespace waits for the caches of what the console stores in its namespace.
// It returns false if ctx ends before.
func (c *Cluster) waitForNamespace(ctx context.Context) bool {
	if c.Sessions != nil {
		if _, err := c.Sessions.cache.GetInformer(ctx, &corev1.Secret{}); err != nil { // blocks until it has synced
			c.log.Error("sessions cannot be read", "error", err)
			return false
		}
	}
	if c.Revisions != nil {
		patience, cancel := context.WithTimeout(ctx, revisionsPatience)
		defer cancel()
		toolscache.WaitForCacheSync(patience.Done(), c.Revisions.informer.HasSynced)
	}
	return ctx.Err() == nil
}

// AllSynced returns governance.Unavailable until Ready is closed. While kinds of Kueue
// are missing at the start, there are no caches to wait for.
func (c *Cluster) AllSynced() error {
	if kinds := c.MissingKinds(); len(kinds.Kueue) > 0 && !c.synced.Load() {
		return nil
	}
	select {
	case <-c.ready:
		return nil
	default:
		return &governance.Error{Kind: governance.Unavailable, Op: "read", Message: "The cluster cannot be reached yet. Try again in a moment."}
	}
}

// Ready returns a channel that is closed when all caches have synced once.
func (c *Cluster) Ready() <-chan struct{} { return c.ready }

// startInformers starts the informers of all kinds that pages read, with their
// handlers. Another kind would block its first reader until its informer has
// synced, which is never while the network drops packets.
func (c *Cluster) startInformers(ctx context.Context) error {
	allocations, tasks := chainHandlers(c.log, nil, c.AllocationChanges.Notify), chainHandlers(c.log, nil, c.TaskChanges.Notify)
	var elastic []toolscache.ResourceEventHandler
	for _, handler := range c.elasticHandlers {
		elastic = append(elastic, chainHandlers(c.log, handler, c.TaskChanges.Notify))
	}
	for object, handlers := range map[client.Object][]toolscache.ResourceEventHandler{
		&v1alpha1.ClusterPolicy{}:      {allocations},
		&v1alpha1.ComputeAllocation{}:  {allocations, tasks},
		&v1alpha1.Department{}:         {allocations, tasks},
		&kueue.ClusterQueue{}:          {allocations},
		&kueue.LocalQueue{}:            {tasks},
		&corev1.Node{}:                 {allocations},
		&corev1.Namespace{}:            {chainHandlers(c.log, c.namespaceHandler, c.TaskChanges.Notify)},
		&v1alpha1.ElasticJob{}:         elastic,
		&rbacv1.RoleBinding{}:          {allocations, tasks},
		&kueue.Workload{}:              {chainHandlers(c.log, c.workloadHandler, c.TaskChanges.Notify)},
		&kueue.ResourceFlavor{}:        nil, // this and the following: controllers handle their events
		&kueue.Cohort{}:                nil,
		&kueue.WorkloadPriorityClass{}: nil,
		&corev1.ResourceQuota{}:        nil,
		&corev1.LimitRange{}:           nil,
	} {
		informer, err := c.Manager.GetCache().GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch %T: %w", object, err)
		}
		for _, handler := range handlers {
			registration, err := informer.AddEventHandler(handler)
			if err != nil {
				return fmt.Errorf("watch %T: %w", object, err)
			}
			c.handlersSynced = append(c.handlersSynced, registration.HasSynced)
		}
	}
	return nil
}

// HandleWorkloads sets the handler of Workload events, which runs before
// TaskChanges notifies, and the function that removes fields from Workloads
// before they are cached. all is called after the handler received the initial
// list. It must be called before Run.
func (c *Cluster) HandleWorkloads(slim func(*kueue.Workload), handler toolscache.ResourceEventHandler, all func()) {
	c.workloadTransform, c.workloadHandler, c.onWorkloadsSynced = slim, handler, all
}

// HandleNamespaces sets the handler of namespace events. It must be called
// before Run.
func (c *Cluster) HandleNamespaces(handler toolscache.ResourceEventHandler) {
	c.namespaceHandler = handler
}

// HandleElasticJobs adds a handler of ElasticJob events, which runs before TaskChanges
// notifies. It must be called before Run.
func (c *Cluster) HandleElasticJobs(handler toolscache.ResourceEventHandler) {
	c.elasticHandlers = append(c.elasticHandlers, handler)
}

// ServesWorkloads reports whether the API server serves Workloads. It returns
// governance.Unavailable if it serves them only in another version, which the
// console cannot read.
func (c *Cluster) ServesWorkloads() (bool, error) {
	kinds := c.MissingKinds()
	if len(kinds.KueueVersions) > 0 {
		return false, kinds.unavailable()
	}
	return !kinds.absent(kueue.SchemeGroupVersion.WithKind("Workload")), nil
}

// Reader returns the cache. If kinds of Kueue are missing, it returns a reader
// that finds no objects of them. It returns governance.Unavailable until the
// cache has synced, and while Kuota's own CRDs are missing.
func (c *Cluster) Reader() (client.Reader, error) {
	kinds := c.MissingKinds()
	switch synced := c.synced.Load(); {
	case len(kinds.Own) > 0:
		return nil, kinds.unavailable()
	case len(kinds.Kueue) > 0 && synced:
		return partialReader{c.Manager.GetCache(), kinds}, nil
	case len(kinds.Kueue) > 0: // the cache starts with the controllers, once Kueue is installed
		return partialReader{c.Manager.GetAPIReader(), kinds}, nil
	case !synced:
		return nil, &governance.Error{Kind: governance.Unavailable, Op: "read", Message: "The cluster cannot be reached yet. Try again in a moment."}
	}
	return c.Manager.GetCache(), nil
}

// APIReader reads from the API server. It finds no objects of kinds of Kueue
// that are missing.
func (c *Cluster) APIReader() client.Reader {
	if kinds := c.MissingKinds(); len(kinds.Kueue) > 0 {
		return partialReader{c.Manager.GetAPIReader(), kinds}
	}
	return c.Manager.GetAPIReader()
}

// Clientset returns a client of the API server that acts as the console, for
// objects that are not cached.
func (c *Cluster) Clientset() kubernetes.Interface { return c.clientset }

// Discovery returns a discovery client with a timeout of some seconds.
func (c *Cluster) Discovery() discovery.DiscoveryInterface { return c.discovery }
