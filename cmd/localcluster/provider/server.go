package provider

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/zitadel/oidc/v3/pkg/op"
)

// Config configures a provider.
type Config struct {
	Listen string        // 127.0.0.1:PORT; the issuer is http://127.0.0.1:PORT
	Users  string        // file of users, read at each request
	Dir    string        // has client-id and client-secret; the provider writes its keys and grants there
	Life   time.Duration // of access and ID tokens
	Log    *slog.Logger
}

// Run serves the provider until ctx ends.
func Run(ctx context.Context, c Config) error {
	h, err := handler(c)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(listener) }()
	c.Log.Info("serving", "issuer", c.issuer())
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		// Responses in flight complete: the client would lose its refresh token
		// with one.
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := srv.Shutdown(ctx); err != nil {
			return srv.Close()
		}
		return nil
	}
}

func (c Config) issuer() string { return "http://" + c.Listen }

// handler returns the provider: the library's endpoints and the pages.
func handler(c Config) (http.Handler, error) {
	st, err := newStorage(c)
	if err != nil {
		return nil, err
	}
	provider, err := op.NewProvider(&op.Config{
		CryptoKey:                st.keys.Crypto,
		DefaultLogoutRedirectURI: signedOutPath,
		CodeMethodS256:           true,
		GrantTypeRefreshToken:    true,
		SupportedScopes:          supportedScopes,
		SupportedClaims:          supportedClaims,
		DeviceAuthorization: op.DeviceAuthorizationConfig{
			Lifetime: deviceLife, PollInterval: devicePoll, UserFormPath: devicePath, UserCode: op.UserCodeBase20,
		},
	}, st, op.StaticIssuer(c.issuer()),
		op.WithAllowInsecure(), // loopback only
		op.WithCORSOptions(nil),
		op.WithLogger(c.Log),
		op.WithCustomEndSessionEndpoint(op.NewEndpoint(endSessionPath)),
	)
	if err != nil {
		return nil, fmt.Errorf("create provider: %w", err)
	}
	_, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return nil, fmt.Errorf("address %s: %w", c.Listen, err)
	}
	callback := op.AuthCallbackURL(provider)
	page := &signIn{storage: st, op: provider, cookie: "sample-provider-" + port, finish: func(r *http.Request, id string) string {
		return callback(op.ContextWithIssuer(r.Context(), c.issuer()), id)
	}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+signInPath, page.show)
	mux.HandleFunc("POST "+signInPath, page.submit)
	mux.HandleFunc("GET "+devicePath, page.showDevice)
	// A user code is known to who starts kuota login, unlike the id of the sign-in form.
	// SameSite does not keep pages of other ports from posting it.
	mux.Handle("POST "+devicePath, http.NewCrossOriginProtection().Handler(http.HandlerFunc(page.submitDevice)))
	mux.HandleFunc("GET /page.css", serveCSS)
	mux.HandleFunc("GET "+signedOutPath, func(w http.ResponseWriter, _ *http.Request) {
		renderMessage(w, http.StatusOK, "Signed out", "You are signed out here. You can close this page.")
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		renderMessage(w, http.StatusOK, "Sign in", "This is the sample provider of a local Kuota. Start at the console: it redirects here.")
	})
	mux.Handle(endSessionPath, page.forget(provider))
	mux.Handle("/", provider)
	return mux, nil
}

func newStorage(c Config) (*storage, error) {
	id, err := readLine(filepath.Join(c.Dir, "client-id"))
	if err != nil {
		return nil, err
	}
	secret, err := readLine(filepath.Join(c.Dir, "client-secret"))
	if err != nil {
		return nil, err
	}
	users, err := newDirectory(c.Users, c.Log)
	if err != nil {
		return nil, err
	}
	keys, err := loadKeys(filepath.Join(c.Dir, "provider-keys.json"))
	if err != nil {
		return nil, err
	}
	memory, err := loadMemory(filepath.Join(c.Dir, "provider-memory.json"), c.Log)
	if err != nil {
		return nil, err
	}
	return &storage{
		client: &client{id: id, secret: secret, life: c.Life}, commandLine: &commandLine{client{id: CommandLineID, life: c.Life}},
		users: users, keys: keys, memory: memory, requests: &requests{byID: map[string]*request{}},
		devices: &devices{byUser: map[string]*device{}}, life: c.Life,
	}, nil
}

func readLine(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read client credentials: %w", err)
	}
	line := strings.TrimSpace(string(b))
	if line == "" {
		return "", fmt.Errorf("%s is empty", path)
	}
	return line, nil
}
