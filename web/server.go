package web

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"kuota.dev/kuota/static"
	"kuota.dev/kuota/views"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"github.com/prometheus/client_golang/prometheus"
)

// shutdownLimit is how long requests under way may take once the server stops.
const shutdownTimeout = 1500 * time.Millisecond

// The largest body and header that a request may have.
const (
	maxForm   = "1M"
	maxHeader = 32 << 10
)

// Options configure a Server.
type Options struct {
	Listener       net.Listener                                         // on a loopback address only while there is no sign-in
	Certificate    func(*tls.ClientHelloInfo) (*tls.Certificate, error) // nil: without TLS
	SignIn         *SignIn                                              // nil: every request acts as User
	User           User                                                 // the one identity of a console without sign-in
	TrustedProxies []netip.Prefix                                       // whose X-Forwarded-For is believed; no other forwarded header is
	Chrome         func(echo.Context) views.Chrome                      // the frame of error pages
	Now            func() time.Time                                     // the clock; nil takes the real one
	Metrics        prometheus.Registerer                                // where what is answered is counted; nil for nowhere
	Log            *slog.Logger
}

// Server answers HTTP.
type Server struct {
	echo       *echo.Echo
	forms      map[string]bool // addresses that are forms, and where these are sent
	listener   net.Listener
	http       *http.Server
	protection *http.CrossOriginProtection
	signIn     *SignIn
	user       User
	now        func() time.Time
	log        *slog.Logger
	closing    chan struct{}
	feeds      feeds
	metrics    *metrics
	close      sync.Once
}

// New prepares a server; nothing is answered before Run.
func New(options Options) (*Server, error) {
	if options.SignIn == nil && !isLoopbackHost(options.Listener.Addr().String()) {
		return nil, fmt.Errorf("listen address %s: without sign-in the console listens on loopback only; use 127.0.0.1, or set an OpenID Connect issuer", options.Listener.Addr())
	}
	pages, err := newErrorPages(options.Chrome, options.Log)
	if err != nil {
		return nil, fmt.Errorf("rendering the error page: %w", err)
	}
	counts, err := newMetrics(options.Metrics)
	if err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	s := &Server{
		echo: echo.New(), forms: map[string]bool{}, listener: options.Listener, protection: http.NewCrossOriginProtection(),
		signIn: options.SignIn, user: options.User, now: options.Now, log: options.Log, closing: make(chan struct{}), feeds: feeds{log: options.Log, metrics: counts}, metrics: counts,
	}
	if s.now == nil {
		s.now = time.Now
	}
	ours := isLoopbackHost
	if s.signIn != nil {
		ours = func(host string) bool { return strings.EqualFold(host, s.signIn.URL.Host) }
	}
	s.echo.HTTPErrorHandler = pages.handle
	s.echo.IPExtractor = clientAddress(options.TrustedProxies)
	s.echo.Use(
		counts.measure,
		middleware.RecoverWithConfig(middleware.RecoverConfig{DisableStackAll: true, LogErrorFunc: func(_ echo.Context, err error, stack []byte) error {
			options.Log.Error("panic", "error", err, "stack", string(stack))
			return err
		}}),
		s.secureHeaders,
		requireHost(ours),
		s.rejectCrossSite,
		middleware.BodyLimit(maxForm),
		middleware.GzipWithConfig(middleware.GzipConfig{MinLength: 1024}), // streams too: each update is flushed through
	)
	s.Public("/static/*", echo.WrapHandler(static.Handler()))
	s.echo.RouteNotFound("/*", s.signedIn(func(echo.Context) error { return echo.ErrNotFound }))
	if s.signIn != nil {
		s.registerSignIn()
	}
	s.http = &http.Server{
		Handler:           s.echo,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      30 * time.Second, // streams set their own
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    maxHeader,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: 100},
		ErrorLog:          slog.NewLogLogger(options.Log.Handler(), slog.LevelDebug), // what browsers do wrong
	}
	if options.Certificate != nil {
		s.http.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: options.Certificate}
	}
	// Shutdown waits for open connections, and streams never end by themselves.
	s.http.RegisterOnShutdown(func() { s.close.Do(func() { close(s.closing) }) })
	return s, nil
}

// Address is the host:port it listens on.
func (s *Server) Address() string { return s.listener.Addr().String() }

// serve answers until the server is shut down.
func (s *Server) serve() error {
	if s.http.TLSConfig != nil {
		return s.http.ServeTLS(s.listener, "", "")
	}
	return s.http.Serve(s.listener)
}

// Run answers until ctx ends, then lets open requests finish.
func (s *Server) Run(ctx context.Context) error {
	stopped := make(chan error, 1)
	go func() { stopped <- s.serve() }()
	select {
	case err := <-stopped:
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := s.http.Shutdown(end); errors.Is(err, context.DeadlineExceeded) {
		return s.http.Close() // a client that neither reads nor leaves
	} else if err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("stopping the server: %w", err)
	}
	return nil
}
