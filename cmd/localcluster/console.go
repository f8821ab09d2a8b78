package main

import (
	"path/filepath"
	"time"
)

// consoleNamespace is where the console keeps what is its own; --rbac makes it.
const consoleNamespace = "kuota-system"

// consoleComponent is the product itself, started as anybody would start it.
func consoleComponent(l layout, binary string, port int, issuer string) (*component, error) {
	path, err := filepath.Abs(binary)
	if err != nil {
		return nil, err
	}
	return &component{
		name:  consoleName,
		spec:  spec{path: path, env: consoleEnv(l, port, issuer)},
		ready: httpOK(healthClient, consoleURL(port)+"/readyz"),
		grace: 3 * time.Second,
		limit: time.Minute,
		ports: []namedPort{{"http", port}},
	}, nil
}

// consoleEnv is the whole configuration of the console. Without an issuer there
// is no provider, and nothing is said about signing in.
func consoleEnv(l layout, port int, issuer string) []string {
	env := []string{
		"KUBECONFIG=" + l.componentConfig(consoleName),
		"KUOTA_LISTEN=" + loopback(port),
		"KUOTA_URL=" + consoleURL(port),
		"KUOTA_NAMESPACE=" + consoleNamespace,
		"KUOTA_HISTORY=" + l.data("history.db"),
	}
	if issuer == "" {
		return env
	}
	return append(env,
		"KUOTA_OIDC_ISSUER="+issuer,
		"KUOTA_OIDC_CLIENT_ID="+clientID,
		"KUOTA_OIDC_CLIENT_SECRET_FILE="+l.signin("client-secret"),
		"KUOTA_SESSION_KEYS_FILE="+l.signin("session-keys"),
		"KUOTA_OIDC_USERNAME_CLAIM=email",
		"KUOTA_OIDC_USERNAME_PREFIX=-", // none: users are called what their address says
		"KUOTA_OIDC_GROUPS_CLAIM=groups",
	)
}

func consoleURL(port int) string { return "http://" + loopback(port) }
