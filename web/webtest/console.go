package webtest

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"log/slog"
	"math/big"
	"net"
	"net/netip"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kuota.dev/kuota/views"
	"kuota.dev/kuota/web"
	"kuota.dev/kuota/web/session"
	"kuota.dev/kuota/web/signin"
	"kuota.dev/kuota/web/signin/signintest"

	"github.com/labstack/echo/v4"
)

// Limits are the session limits of all consoles of this package.
var Limits = session.Limits{Idle: time.Hour, Absolute: 12 * time.Hour}

// Setup configures a console. The zero value is a console without pages.
type Setup struct {
	Register func(*web.Server)               // adds the routes
	Chrome   func(echo.Context) views.Chrome // nil: only the name of the user
	Proxies  []netip.Prefix
	Tokens   web.Tokens
	TLS      bool
	Base     string   // base path
	Replica  *Console // another replica, whose provider, store, keys and clock are shared
}

// Console is a running console with everything that it uses.
type Console struct {
	*web.Server
	URL      string // scheme, host, port and base path
	Provider *signintest.Provider
	Store    *Store
	Ring     *session.Ring
	Key      string // of the ring, as in the key file
	Clock    *Clock // of the console; the provider uses the real time
	Log      *Log

	certificate atomic.Pointer[tls.Certificate]
	stop        func() time.Duration
}

// Start starts a console that runs until the test ends.
func Start(t testing.TB, setup Setup) *Console {
	t.Helper()
	c := &Console{Log: &Log{}}
	if r := setup.Replica; r != nil {
		c.Provider, c.Store, c.Ring, c.Key, c.Clock = r.Provider, r.Store, r.Ring, r.Key, r.Clock
	} else {
		c.Provider, c.Store, c.Clock, c.Key = signintest.New(t), &Store{}, &Clock{}, NewKey()
		c.Ring = NewRing(t, c.Key)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	address := &url.URL{Scheme: "http", Host: listener.Addr().String(), Path: setup.Base}
	options := web.Options{Listener: listener, Base: setup.Base, TrustedProxies: setup.Proxies, Chrome: setup.Chrome, Tokens: setup.Tokens, Now: c.Clock.Now}
	if setup.TLS {
		address.Scheme = "https"
		c.SetCertificate(NewCertificate(t, 1))
		options.Certificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.certificate.Load(), nil }
	}
	if options.Chrome == nil {
		options.Chrome = func(e echo.Context) views.Chrome { return views.Chrome{User: web.UserOf(e).Name} }
	}
	options.Log = slog.New(slog.NewTextHandler(c.Log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	c.URL = address.String()
	provider := signin.New(signin.Config{
		Issuer: c.Provider.Issuer, ClientID: signintest.ClientID, ClientSecret: func() (string, error) { return signintest.ClientSecret, nil },
		RedirectURL: c.URL + "/auth/callback", SignedOutURL: c.URL + "/auth/signed-out",
		Claims: signin.Claims{Username: "email", Groups: "groups"},
	})
	options.SignIn = &web.SignIn{URL: address, Provider: provider, Ring: c.Ring, Sessions: &session.Sessions{
		Store: c.Store, Ring: c.Ring, Provider: provider, Limits: Limits, Now: c.Clock.Now, Log: options.Log,
	}}
	if c.Server, err = web.New(options); err != nil {
		t.Fatal(err)
	}
	if setup.Register != nil {
		setup.Register(c.Server)
	}
	c.run(t)
	return c
}

func (c *Console) run(t testing.TB) {
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- c.Run(ctx) }()
	c.stop = sync.OnceValue(func() time.Duration {
		began := time.Now()
		cancel()
		if err := <-stopped; err != nil {
			t.Errorf("stop: %v", err)
		}
		return time.Since(began)
	})
	t.Cleanup(func() { c.stop() })
}

// Stop stops the console and returns how long that took.
func (c *Console) Stop() time.Duration { return c.stop() }

// NewKey returns a line of a key file.
func NewKey() string {
	key := make([]byte, 32)
	rand.Read(key)
	return base64.StdEncoding.EncodeToString(key)
}

// NewRing returns a ring of one key.
func NewRing(t testing.TB, key string) *session.Ring {
	t.Helper()
	ring, err := session.NewRing([]byte(key))
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

// Clock is the real time plus what Advance added.
type Clock struct{ ahead atomic.Int64 }

// Now returns the time of the clock.
func (c *Clock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// Advance moves the clock forward.
func (c *Clock) Advance(by time.Duration) { c.ahead.Add(int64(by)) }

// Log records what is written to it.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

// String returns everything that was written.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// NewCertificate returns a self-signed certificate for 127.0.0.1.
func NewCertificate(t testing.TB, serial int64) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// SetCertificate sets the certificate for new connections.
func (c *Console) SetCertificate(certificate *tls.Certificate) { c.certificate.Store(certificate) }
