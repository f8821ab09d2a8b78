package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"runtime/debug"
	"time"

	"kuota.dev/kuota/governance/access"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/audit"
	"kuota.dev/kuota/governance/capacity"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/diagnostics"
	"kuota.dev/kuota/governance/history"
	"kuota.dev/kuota/governance/history/recorder"
	"kuota.dev/kuota/governance/loopguard"
	"kuota.dev/kuota/governance/policy"
	"kuota.dev/kuota/governance/reconcile"
	"kuota.dev/kuota/governance/revisions"
	"kuota.dev/kuota/governance/submit"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/actions"
	"kuota.dev/kuota/governance/utilization"
	"kuota.dev/kuota/handlers"
	"kuota.dev/kuota/web"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// drainLimit is how long answers of the sign-in provider may take once all else
// has ended; with the server's own limit the whole stays below two seconds.
const drainLimit = 400 * time.Millisecond

// setup is how the console was started, for its own page.
func (c config) setup() handlers.Setup {
	setup := handlers.Setup{Namespace: c.namespace, ClientID: c.oidc.clientID, UserClaim: c.oidc.usernameClaim}
	if issuer, err := url.Parse(c.oidc.issuer); err == nil {
		setup.Issuer = issuer.Host
	}
	if build, ok := debug.ReadBuildInfo(); ok && build.Main.Version != "(devel)" {
		setup.Version = build.Main.Version
	}
	return setup
}

// noHistory is what --history is to keep nothing.
const noHistory = "none"

// record is the history, and who writes it; nil for both where there is none.
func (c config) record(kubernetes *cluster.Cluster, workloads *tasks.Service, holders *capacity.Service, log *slog.Logger) (*history.Store, *recorder.Recorder, error) {
	if c.history == noHistory {
		return nil, nil, nil
	}
	store, err := history.New(c.history, history.Options{Retention: c.historyKeep, Log: log})
	if err != nil {
		return nil, nil, err
	}
	workloads.Record()
	return store, &recorder.Recorder{Store: store, Cluster: kubernetes, Tasks: workloads, Capacity: holders, Log: log}, nil
}

// identity returns a name that no other process has, not even an earlier one on
// the same host.
func identity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "console"
	}
	return host + "-" + string(uuid.NewUUID())
}

// run starts the web server and the controllers, and ends both together.
func run(ctx context.Context, c config, out io.Writer) error {
	log := slog.New(slog.NewJSONHandler(out, &slog.HandlerOptions{Level: c.logLevel}))
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))

	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	rest, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	kubernetes, err := cluster.New(rest, cluster.Options{QPS: float32(c.qps), Burst: c.burst, Namespace: c.namespace, NoSessions: c.oidc.issuer == "", TakeOver: c.takeOver, Metrics: c.metrics, Log: log})
	if err != nil {
		return err
	}
	controllers, err := reconcile.SetupWithManager(kubernetes.Manager, reconcile.Options{
		Naming: c.naming, Kueue: c.kueue, Revisions: kubernetes.Revisions, Namespace: c.namespace, JobControllers: list(c.jobControllers),
		ReadOnly: func() bool { return kubernetes.ReadOnlyReason() != "" },
	})
	if err != nil {
		return fmt.Errorf("setting up the controllers: %w", err)
	}

	permission := &access.Service{Cluster: kubernetes}
	record := &audit.Recorder{Cluster: kubernetes, Log: log}
	policies := &policy.Service{Cluster: kubernetes, Naming: c.naming, Access: permission, Audit: record, Kueue: controllers.Kueue.Plan}
	teams := &allocations.Service{Cluster: kubernetes, Naming: c.naming, Access: permission, Audit: record, Pools: policies}
	workloads := tasks.New(kubernetes, permission)
	guard := &loopguard.Guard{
		Audit: record, Watcher: workloads.Watcher(), Find: workloads.Workload, Log: log, Identity: identity(), Now: time.Now,
		Paused: func() bool { return kubernetes.ReadOnlyReason() != "" },
	}
	if err := guard.Setup(kubernetes.Manager); err != nil {
		return err
	}
	workloads.Guard = guard
	if err := errors.Join(kubernetes.RegisterMetrics(metrics.Registry), workloads.RegisterMetrics(metrics.Registry), metrics.Registry.Register(guard)); err != nil {
		return err
	}
	holders := &capacity.Service{Cluster: kubernetes, Tasks: workloads, Naming: c.naming}
	past, recording, err := c.record(kubernetes, workloads, holders, log)
	if err != nil {
		return err
	}
	h := &handlers.Handlers{
		Allocations:       teams,
		Revisions:         &revisions.Service{Store: kubernetes.Revisions, Access: permission, Allocations: teams},
		Policy:            policies,
		Settings:          &diagnostics.Service{Cluster: kubernetes, Access: permission, Naming: c.naming, Install: c.kueue, Kueue: controllers.Kueue.State},
		Trouble:           func() string { return kubernetes.MissingKinds().Message() },
		ReadOnly:          kubernetes.ReadOnlyReason,
		Setup:             c.setup(),
		Tasks:             workloads,
		Submit:            &submit.Service{Cluster: kubernetes, Access: permission, Audit: record, Tasks: workloads, Naming: c.naming},
		Actions:           &actions.Service{Cluster: kubernetes, Access: permission, Tasks: workloads, Audit: record},
		Contact:           kubernetes.Contact,
		Capacity:          holders,
		CapacityChanges:   holders,
		AllocationChanges: kubernetes.AllocationChanges,
		TaskChanges:       kubernetes.TaskChanges,
		Naming:            c.naming,
		ClusterName:       c.clusterName,
		PodOwners:         workloads,
		IdleBelow:         c.hardware.idleBelow,
		Now:               time.Now,
	}
	var devices *utilization.Service
	if c.hardware.url != "" {
		options := c.hardware.options(log)
		options.OnChange = kubernetes.AllocationChanges.Notify // pages of figures are made anew
		if devices, err = utilization.New(options); err != nil {
			return fmt.Errorf("asking Prometheus: %w", err)
		}
		h.Hardware = devices
	}
	if past != nil { // a nil *Store would not be nil there
		h.History, h.Recording, h.Setup.Database = past, recording.State, past.Dialect()
	}
	listener, err := net.Listen("tcp", c.listen)
	if err != nil {
		return fmt.Errorf("listening on %s: %w", c.listen, err)
	}
	defer listener.Close()
	signIn, err := c.signIn(listener.Addr(), kubernetes.Sessions, log)
	if err != nil {
		return err
	}
	proxies, err := c.proxies()
	if err != nil {
		return err
	}
	options := web.Options{
		Listener: listener, SignIn: signIn, User: web.User{Name: "local admin", Local: true},
		TrustedProxies: proxies, Chrome: h.Chrome, Metrics: metrics.Registry, Log: log,
	}
	group, ctx := errgroup.WithContext(ctx)
	address := "http://" + listener.Addr().String()
	if c.tlsCert != "" {
		certificates, err := certwatcher.New(c.tlsCert, c.tlsKey)
		if err != nil {
			return fmt.Errorf("reading the certificate: %w", err)
		}
		options.Certificate = certificates.GetCertificate
		address = "https://" + listener.Addr().String()
		group.Go(func() error { return certificates.Start(ctx) })
	}
	server, err := web.New(options)
	if err != nil {
		return err
	}
	h.Register(server)
	log.Info("listening", "address", address, "issuer", c.oidc.issuer)

	if signIn != nil {
		group.Go(func() error {
			c.watchKeys(ctx, signIn.Ring, log)
			return nil
		})
	}
	if devices != nil {
		group.Go(func() error { return devices.Run(ctx) })
	}
	if recording != nil {
		defer past.Close()
		group.Go(func() error { return recording.Run(ctx) })
	}
	group.Go(func() error { return server.Run(ctx) })
	group.Go(func() error { return kubernetes.Run(ctx) })
	err = group.Wait()
	if signIn != nil { // what the provider is answering now is kept, or people sign in again
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainLimit)
		defer cancel()
		signIn.Sessions.Drain(ending)
	}
	return err
}
