package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// FieldManager is the name under which Kuota's controllers own fields.
const FieldManager = "kuota"

// Options configure the connection.
type Options struct {
	QPS        float32 // requests a second to the API server; 0 takes 200
	Burst      int     // requests at once; 0 takes 400
	Namespace  string  // the console's own, where it keeps sessions and revisions; empty for neither
	NoSessions bool    // nobody signs in
	Metrics    string  // address that /metrics is served on; empty or 0 for nowhere
	TakeOver   bool    // write even where HyperPod's own add-on governs
	Log        *slog.Logger
}

// Cluster is the connection to one Kubernetes cluster.
type Cluster struct {
	// Manager runs the controllers, and holds the cache.
	Manager ctrl.Manager
	// Contact tells how long ago the API server answered.
	Contact *Contact
	// Allocations and Tasks tell of changes of what those pages show.
	AllocationChanges, TaskChanges *Notifier
	// Sessions keeps who is signed in; nil without a namespace of the console's
	// own, or where nobody signs in.
	Sessions *Sessions
	// Revisions keeps what policies and allocations were; nil without a
	// namespace of the console's own.
	Revisions *Revisions

	log       *slog.Logger
	watches   *watches
	clientset kubernetes.Interface // as the console itself

	discovery discovery.DiscoveryInterface // the same, which gives up after a while

	reviewClientset kubernetes.Interface // the same, with limits of its own: people wait for these calls
	synced          atomic.Bool
	missingKinds    atomic.Pointer[MissingKinds]
	noMatches       noMatchCache

	handlersSynced    []toolscache.InformerSynced
	workloadHandler   toolscache.ResourceEventHandler // see OnWorkloads
	workloadTransform func(*kueue.Workload)
	onWorkloadsSynced func()                          // see OnWorkloads
	namespaceHandler  toolscache.ResourceEventHandler // see OnNamespaces
	watched           []WatchedResource

	readOnly     atomic.Bool // by somebody else
	addOnMissing int         // how often in a row its sign was missed; for one goroutine
	takeOver     bool
}

// New prepares the connection; nothing is asked of the cluster yet.
func New(config *rest.Config, options Options) (*Cluster, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = options.QPS, options.Burst
	if config.QPS == 0 {
		config.QPS = 200
	}
	if config.Burst == 0 {
		config.Burst = 400
	}
	config.UserAgent = FieldManager
	c := &Cluster{log: options.Log, watches: newWatches(), takeOver: options.TakeOver, Contact: &Contact{}, AllocationChanges: &Notifier{}, TaskChanges: &Notifier{}}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:   Scheme,
		Metrics:  server.Options{BindAddress: cmp.Or(options.Metrics, "0")},
		Logger:   logr.FromSlogHandler(options.Log.Handler()),
		NewCache: newRedialingCache,
		Cache: cache.Options{
			// By type here rather than by ByObject, which would ask the cluster
			// about the types at once.
			DefaultTransform: c.transform,
			NewInformer:      c.watches.informer,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	reviews, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	patience := rest.CopyConfig(config)
	patience.Timeout = discoveryTimeout
	kinds, err := discovery.NewDiscoveryClientForConfig(patience)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	c.Manager, c.discovery, c.clientset, c.reviewClientset = manager, kinds, clients, reviews
	if options.Namespace != "" {
		if c.Revisions, err = newRevisions(config, clients, options.Namespace, c.watches); err != nil {
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

// RegisterMetrics has it told how the connection and its watches fare.
func (c *Cluster) RegisterMetrics(with prometheus.Registerer) error {
	if err := errors.Join(with.Register(c.Contact), with.Register(c.watches)); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	return nil
}

// slim takes what nobody reads off the objects that there are many of, before
// the cache keeps them.
func (c *Cluster) transform(object any) (any, error) {
	switch o := object.(type) {
	case *kueue.Workload:
		o.ManagedFields = nil
		if c.workloadTransform != nil {
			c.workloadTransform(o)
		}
	case *corev1.Node:
		o.ManagedFields = nil
	case *rbacv1.RoleBinding:
		if !strings.HasPrefix(o.Name, FieldManager+"-") { // who set the fields of our own tells that they are ours
			o.ManagedFields = nil
		}
	}
	return object, nil
}

// Run keeps the cache and runs the controllers until ctx ends. It waits for a
// cluster that is not there yet.
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
		}
	}()
	return c.Manager.Start(ctx)
}

// watch has the cache hold every kind that pages show, and pages told of
// their changes.
func (c *Cluster) startInformers(ctx context.Context) error {
	for object, changes := range map[client.Object][]*Notifier{
		&v1alpha1.ClusterPolicy{}:     {c.AllocationChanges},
		&v1alpha1.ComputeAllocation{}: {c.AllocationChanges, c.TaskChanges},
		&kueue.ClusterQueue{}:         {c.AllocationChanges},
		&kueue.LocalQueue{}:           {c.TaskChanges},
		&corev1.Node{}:                {c.AllocationChanges},
		&corev1.Namespace{}:           nil, // whoever OnNamespaces named
		&rbacv1.RoleBinding{}:         {c.AllocationChanges, c.TaskChanges},
		&kueue.Workload{}:             nil, // whoever OnWorkloads named comes first
	} {
		informer, err := c.Manager.GetCache().GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watching %T: %w", object, err)
		}
		for _, change := range changes {
			if _, err := informer.AddEventHandler(change.eventHandler()); err != nil {
				return fmt.Errorf("watching %T: %w", object, err)
			}
		}
	}
	for object, handler := range map[client.Object]toolscache.ResourceEventHandler{&kueue.Workload{}: c.workloadHandler, &corev1.Namespace{}: c.namespaceHandler} {
		informer, err := c.Manager.GetCache().GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watching %T: %w", object, err)
		}
		told, err := informer.AddEventHandler(chainHandlers(handler, c.TaskChanges.Notify))
		if err != nil {
			return fmt.Errorf("watching %T: %w", object, err)
		}
		c.handlersSynced = append(c.handlersSynced, told.HasSynced)
	}
	return nil
}

// OnWorkloads names who is told of every change of a Workload, before those who
// listen to Tasks, and who takes off it what nobody reads before it is kept. all
// is called once those were told of that there were at the start. It is called
// before Run.
func (c *Cluster) HandleWorkloads(slim func(*kueue.Workload), handler toolscache.ResourceEventHandler, all func()) {
	c.workloadTransform, c.workloadHandler, c.onWorkloadsSynced = slim, handler, all
}

// OnNamespaces names who is told of every change of a namespace. It is called
// before Run.
func (c *Cluster) HandleNamespaces(handler toolscache.ResourceEventHandler) {
	c.namespaceHandler = handler
}

// Workloads tells whether there can be any. It answers governance.Unavailable
// where there may be some that the console cannot read.
func (c *Cluster) ServesWorkloads() (bool, error) {
	kinds := c.MissingKinds()
	if len(kinds.KueueVersions) > 0 {
		return false, kinds.unavailable()
	}
	return !kinds.absent(kueue.SchemeGroupVersion.WithKind("Workload")), nil
}

// Reader reads from the cache. Where kinds of Kueue's are missing, it finds what
// there is without them. It answers governance.Unavailable until the cluster has
// answered for the first time, and where Kuota's own kinds are missing.
func (c *Cluster) Reader() (client.Reader, error) {
	kinds := c.MissingKinds()
	switch synced := c.synced.Load(); {
	case len(kinds.Own) > 0:
		return nil, kinds.unavailable()
	case len(kinds.Kueue) > 0 && synced:
		return partialReader{c.Manager.GetCache(), kinds}, nil
	case len(kinds.Kueue) > 0: // the cache starts with the controllers, once Kueue is there
		return partialReader{c.Manager.GetAPIReader(), kinds}, nil
	case !synced:
		return nil, &governance.Error{Kind: governance.Unavailable, Op: "read", Message: "The cluster cannot be reached yet. Try again in a moment."}
	}
	return c.Manager.GetCache(), nil
}

// Live reads from the API server itself. Kinds of Kueue's that are missing are
// found empty.
func (c *Cluster) APIReader() client.Reader {
	if kinds := c.MissingKinds(); len(kinds.Kueue) > 0 {
		return partialReader{c.Manager.GetAPIReader(), kinds}
	}
	return c.Manager.GetAPIReader()
}

// Clients asks the API server itself, as the console, for what is not in the
// cache.
func (c *Cluster) Clientset() kubernetes.Interface { return c.clientset }

// Discovery asks the API server for its kinds, and gives up after some seconds.
func (c *Cluster) Discovery() discovery.DiscoveryInterface { return c.discovery }
