package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"kuota.dev/kuota/static"
	"kuota.dev/kuota/views"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
)

// maxForm is the largest body a request may have.
const maxForm = "1M"

// Options configure a Server.
type Options struct {
	Listen string                          // host:port; only a loopback host while there is no sign-in
	User   User                            // who every request acts as while there is no sign-in
	Chrome func(echo.Context) views.Chrome // the frame of error pages
	Log    *slog.Logger
}

// Server answers HTTP.
type Server struct {
	Echo *echo.Echo // where handlers register their routes

	listener net.Listener
	http     *http.Server
	closing  chan struct{}
	close    sync.Once
}

// New opens the listening socket; nothing is answered before Run.
func New(options Options) (*Server, error) {
	host, _, err := net.SplitHostPort(options.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen address %q: write it as host:port, such as 127.0.0.1:8080", options.Listen)
	}
	if !isLoopback(host) {
		return nil, fmt.Errorf("listen address %q: without sign-in the console listens on this machine only; use 127.0.0.1", options.Listen)
	}
	pages, err := newErrorPages(options.Chrome, options.Log)
	if err != nil {
		return nil, fmt.Errorf("rendering the error page: %w", err)
	}
	listener, err := net.Listen("tcp", options.Listen)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", options.Listen, err)
	}

	e := echo.New()
	e.HTTPErrorHandler = pages.handle
	e.Use(
		middleware.Recover(),
		secureHeaders,
		loopbackHost,
		sameOrigin(),
		middleware.BodyLimit(maxForm),
		actAs(options.User),
		middleware.GzipWithConfig(middleware.GzipConfig{MinLength: 1024}), // streams too: each update is flushed through
	)
	files := echo.WrapHandler(static.Handler())
	e.GET("/static/*", files)
	e.HEAD("/static/*", files)

	s := &Server{Echo: e, listener: listener, closing: make(chan struct{})}
	s.http = &http.Server{
		Handler:           e,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      30 * time.Second, // streams set their own
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(options.Log.Handler(), slog.LevelWarn),
	}
	// Shutdown waits for open connections, and streams never end by themselves.
	s.http.RegisterOnShutdown(func() { s.close.Do(func() { close(s.closing) }) })
	return s, nil
}

// Address is the host:port it listens on.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Run answers until ctx ends, then lets open requests finish.
func (s *Server) Run(ctx context.Context) error {
	stopped := make(chan error, 1)
	go func() { stopped <- s.http.Serve(s.listener) }()
	select {
	case err := <-stopped:
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := s.http.Shutdown(end); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("stopping the server: %w", err)
	}
	return nil
}
