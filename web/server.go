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
	"regexp"
	"strings"
	"sync"
	"time"

	"kuota.dev/kuota/static"
	"kuota.dev/kuota/views"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"github.com/prometheus/client_golang/prometheus"
)

// shutdownTimeout is how long open requests may take once the server stops.
const shutdownTimeout = 1500 * time.Millisecond

// Limits of a request.
const (
	maxForm         = "1M"
	maxHeader       = 32 << 10
	responseTimeout = 30 * time.Second // of a response, but not of a stream
)

// Options configure a Server.
type Options struct {
	Listener       net.Listener                                         // must be on a loopback address without SignIn
	Certificate    func(*tls.ClientHelloInfo) (*tls.Certificate, error) // nil: without TLS
	Base           string                                               // base path, as of IsBase; empty for the root of the host
	SignIn         *SignIn                                              // nil: every request is sent by User
	User           User                                                 // the user of a console without sign-in
	Tokens         Tokens                                               // nil: no bearer tokens
	TrustedProxies []netip.Prefix                                       // their X-Forwarded-For is trusted, and no other forwarding header
	Chrome         func(echo.Context) views.Chrome                      // the header of error pages
	Now            func() time.Time                                     // nil means time.Now
	Metrics        prometheus.Registerer                                // nil: no metrics
	Log            *slog.Logger
}

// Server serves the console over HTTP.
type Server struct {
	echo       *echo.Echo
	forms      map[string]bool // paths registered with Form
	endpoints  []Endpoint
	requests   userLimits // of the API
	base       string
	listener   net.Listener
	http       *http.Server
	protection *http.CrossOriginProtection
	signIn     *SignIn
	user       User
	tokens     Tokens
	now        func() time.Time
	log        *slog.Logger
	rejections *rejections
	closing    chan struct{}
	feeds      feeds
	metrics    *metrics
	close      sync.Once
}

// New returns a server without pages. It serves nothing before Run.
func New(options Options) (*Server, error) {
	if options.SignIn == nil && !isLoopbackHost(options.Listener.Addr().String()) {
		return nil, fmt.Errorf("listen address %s: without sign-in the console listens on loopback only; use 127.0.0.1, or set an OpenID Connect issuer", options.Listener.Addr())
	}
	pages, err := newErrorPages(options.Base, options.Chrome, options.Log)
	if err != nil {
		return nil, fmt.Errorf("render the error page: %w", err)
	}
	counts, err := newMetrics(options.Metrics)
	if err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	s := &Server{
		echo: echo.New(), forms: map[string]bool{}, base: options.Base, listener: options.Listener, protection: http.NewCrossOriginProtection(),
		signIn: options.SignIn, user: options.User, tokens: options.Tokens, now: options.Now, log: options.Log, closing: make(chan struct{}), feeds: feeds{base: options.Base, log: options.Log, metrics: counts}, metrics: counts,
	}
	if s.now == nil {
		s.now = time.Now
	}
	s.rejections = newRejections(s.now, s.log)
	isOwnHost := isLoopbackHost
	if s.signIn != nil {
		isOwnHost = func(host string) bool {
			return strings.EqualFold(withoutDefaultPort(host, s.signIn.URL.Scheme), s.signIn.URL.Host)
		}
	}
	s.echo.HTTPErrorHandler = pages.handle
	s.echo.IPExtractor = clientAddress(options.TrustedProxies)
	s.echo.Use(
		counts.measure,
		middleware.RecoverWithConfig(middleware.RecoverConfig{DisableStackAll: true, LogErrorFunc: func(_ echo.Context, err error, stack []byte) error {
			options.Log.Error("panic", "error", err, "stack", string(stack))
			return err
		}}),
		s.addBase,
		s.secureHeaders,
		s.requireHost(isOwnHost),
		s.rejectCrossSite,
		middleware.BodyLimit(maxForm),
		refuseGzip,
		middleware.GzipWithConfig(middleware.GzipConfig{MinLength: 1024}), // streams too: each event is flushed
	)
	s.Public("/static/*", echo.WrapHandler(static.Handler()))
	s.echo.RouteNotFound("/*", s.signedIn(s.noRoute))
	if s.signIn != nil {
		s.registerSignIn()
	}
	s.http = &http.Server{
		Handler: s.underBase(s.echo),
		// Both begin with the connection. Browsers open some ahead, and show an error for the
		// first request on one that was closed meanwhile: Chromium keeps them for 10 s.
		ReadHeaderTimeout: 15 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      responseTimeout, // streams set their own deadlines
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    maxHeader,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: 100},
		ErrorLog:          slog.NewLogLogger(options.Log.Handler(), slog.LevelDebug), // mistakes of clients
	}
	if options.Certificate != nil {
		s.http.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: options.Certificate}
	}
	// Shutdown waits for open connections, and streams do not end otherwise.
	s.http.RegisterOnShutdown(func() { s.close.Do(func() { close(s.closing) }) })
	return s, nil
}

// withoutDefaultPort returns a host without a port that its scheme implies: proxies and
// scripts may write it, and browsers do not.
func withoutDefaultPort(host, scheme string) string {
	return strings.TrimSuffix(host, map[string]string{"https": ":443", "http": ":80"}[scheme])
}

// Address returns the host:port that the server listens on.
func (s *Server) Address() string { return s.listener.Addr().String() }

// serve blocks until the server is shut down.
func (s *Server) serve() error {
	if s.http.TLSConfig != nil {
		return s.http.ServeTLS(s.listener, "", "")
	}
	return s.http.Serve(s.listener)
}

// Run serves until ctx ends, then lets open requests finish.
func (s *Server) Run(ctx context.Context) error {
	stopped := make(chan error, 1)
	go func() { stopped <- s.serve() }()
	select {
	case err := <-stopped:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := s.http.Shutdown(end); errors.Is(err, context.DeadlineExceeded) {
		return s.http.Close() // a client neither reads nor disconnects
	} else if err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("shut down the server: %w", err)
	}
	return nil
}

// contentSecurityPolicy allows only what pages use: files, streams and forms of
// this console, nothing inline, and HTML in scripts only through the one Trusted
// Types policy.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types kuota"

// secureHeaders sets the security headers of every response.
func (s *Server) secureHeaders(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		header := c.Response().Header()
		header.Set("Content-Security-Policy", contentSecurityPolicy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "same-origin")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		if s.overTLS() {
			header.Set("Strict-Transport-Security", "max-age=31536000")
		}
		return next(c)
	}
}

// noGzip matches an Accept-Encoding that refuses gzip.
var noGzip = regexp.MustCompile(`(?i)(^|,)\s*gzip\s*;\s*q\s*=\s*0(\.0*)?\s*(,|$)`)

// refuseGzip keeps a response uncompressed whose client refuses gzip: Echo only looks for its
// name in Accept-Encoding.
func refuseGzip(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if header := c.Request().Header; noGzip.MatchString(header.Get(echo.HeaderAcceptEncoding)) {
			header.Del(echo.HeaderAcceptEncoding)
		}
		return next(c)
	}
}
