package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"kuota.dev/kuota/governance/record/audit/events"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/handlers/auditevents"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

// auditTimeout bounds a request with audit events.
const auditTimeout = 15 * time.Second

// auditReceiver is the server that API servers send audit events to.
type auditReceiver struct {
	http.Server
	listener     net.Listener
	certificates *certwatcher.CertWatcher
}

// newAuditReceiver listens, and does not serve yet.
func newAuditReceiver(c config, add func(history.Activity), log *slog.Logger) (*auditReceiver, error) {
	certificates, err := certwatcher.New(c.audit.cert, c.audit.key)
	if err != nil {
		return nil, fmt.Errorf("read the certificate for API servers: %w", err)
	}
	listener, err := net.Listen("tcp", c.audit.listen)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", c.audit.listen, err)
	}
	controllers := append(list(c.jobControllers), "system:serviceaccount:"+c.kueue.Namespace+":*")
	return &auditReceiver{listener: listener, certificates: certificates, Server: http.Server{
		ReadTimeout: auditTimeout, WriteTimeout: auditTimeout, MaxHeaderBytes: 16 << 10,
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificates.GetCertificate},
		ErrorLog:  slog.NewLogLogger(log.Handler(), slog.LevelDebug), // mistakes of clients
		Handler: &auditevents.Handler{
			Token: func() (string, error) {
				token, err := readFile(c.audit.tokenFile)
				return strings.TrimSpace(string(token)), err
			},
			Add: add, Reader: events.Reader{Console: c.naming.Console, Controllers: controllers}, Log: log,
		},
	}}, nil
}

// run serves until ctx ends.
func (r *auditReceiver) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return r.certificates.Start(ctx) })
	group.Go(func() error {
		if err := r.ServeTLS(r.listener, "", ""); ctx.Err() == nil {
			return fmt.Errorf("receive audit events: %w", err)
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		return r.Close() // API servers send again what got no answer
	})
	return group.Wait()
}
