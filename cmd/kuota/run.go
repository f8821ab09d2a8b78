package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/reconcile"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/handlers"
	"kuota.dev/kuota/web"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
)

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
	kubernetes, err := cluster.New(rest, cluster.Options{QPS: float32(c.qps), Burst: c.burst, Log: log})
	if err != nil {
		return err
	}
	if err := reconcile.Setup(kubernetes.Manager, c.naming); err != nil {
		return fmt.Errorf("setting up the controllers: %w", err)
	}

	h := &handlers.Handlers{
		Allocations:       &allocations.Service{Cluster: kubernetes, Naming: c.naming},
		Tasks:             &tasks.Service{Cluster: kubernetes},
		Contact:           kubernetes.Contact,
		AllocationChanges: kubernetes.Allocations,
		TaskChanges:       kubernetes.Tasks,
		Naming:            c.naming,
		ClusterName:       c.clusterName,
		Now:               time.Now,
	}
	server, err := web.New(web.Options{
		Listen: c.listen,
		User:   web.User{Name: "local admin", Local: true},
		Chrome: h.Chrome,
		Log:    log,
	})
	if err != nil {
		return err
	}
	h.Register(server)
	log.Info("listening", "address", "http://"+server.Address())

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return server.Run(ctx) })
	group.Go(func() error { return kubernetes.Run(ctx) })
	return group.Wait()
}
