package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"kuota.dev/kuota/web"
	"kuota.dev/kuota/web/session"

	"k8s.io/apimachinery/pkg/util/validation"
)

// checkWeb returns what is invalid about the web server.
func (c *config) checkWeb() (invalid []error) {
	report := func(format string, args ...any) { invalid = append(invalid, fmt.Errorf(format, args...)) }
	host, _, err := net.SplitHostPort(c.listen)
	switch {
	case err != nil:
		report("listen %q: write it as host:port, such as 127.0.0.1:8080", c.listen)
	case !web.IsLoopback(host) && c.oidc.issuer == "":
		report("listen %q: without an issuer (oidc-issuer) everyone who can reach the console acts with its permissions, so it listens on loopback only; use 127.0.0.1", c.listen)
	case !web.IsLoopback(host) && c.url == "":
		report("url: set the external URL of the console, such as https://kuota.example.com")
	}
	if c.url != "" {
		parsed, err := url.Parse(c.url)
		switch {
		case err != nil || parsed.Host == "" || parsed.Scheme != "https" && parsed.Scheme != "http" || strings.ContainsAny(c.url, "?#") || parsed.User != nil:
			report("url %q: write scheme, host and base path if any, such as https://kuota.example.com or https://apps.example.com/kuota, and nothing else", c.url)
		case !web.IsBase(basePath(c.url)):
			report("url %q: write the base path without a slash at its end, and of letters, digits, hyphens, dots, underscores and tildes only, such as https://apps.example.com/kuota", c.url)
		case !isHostname(parsed.Hostname()) || !isPort(parsed.Port()):
			report("url %q: write the name of one host, and a port from 1 to 65535 if any", c.url)
		case parsed.Scheme == "http" && !web.IsLoopback(parsed.Hostname()):
			report("url %q: use https, or sessions are sent unencrypted; set tls-cert-file, or put a TLS proxy in front", c.url)
		case parsed.Scheme == "https" && parsed.Port() == "443" || parsed.Scheme == "http" && parsed.Port() == "80":
			report("url %q: remove the default port, as browsers do", c.url)
		case web.IsLoopback(parsed.Hostname()) && !web.IsLoopback(host):
			report("url %q: this is a loopback address, but listen is not", c.url)
		case parsed.Scheme == "http" && c.tlsCert != "":
			report("url %q: use https with tls-cert-file", c.url)
		}
	}
	if (c.tlsCert == "") != (c.tlsKey == "") {
		report("tls-cert-file and tls-key-file: set both or neither")
	}
	if c.tlsCert != "" && c.tlsKey != "" {
		if _, err := tls.LoadX509KeyPair(c.tlsCert, c.tlsKey); err != nil {
			report("tls-cert-file and tls-key-file: %w", err)
		}
	}
	if _, err := c.proxies(); err != nil {
		invalid = append(invalid, err)
	}
	return invalid
}

// basePath returns the path of a URL as it is written there; empty for / alone.
func basePath(address string) string {
	parsed, err := url.Parse(address)
	if err != nil || parsed.EscapedPath() == "/" {
		return ""
	}
	return parsed.EscapedPath()
}

// isHostname reports whether a host of a URL is one that a browser can open: an address, or
// a name of DNS.
func isHostname(host string) bool {
	return net.ParseIP(host) != nil || len(validation.IsDNS1123Subdomain(strings.ToLower(host))) == 0
}

// isPort reports whether a port of a URL is valid; empty is the default.
func isPort(port string) bool {
	n, err := strconv.Atoi(port)
	return port == "" || err == nil && n > 0 && n < 1<<16
}

// checkAudit returns what is invalid about the receiver of audit events.
func (c *config) checkAudit() (invalid []error) {
	report := func(format string, args ...any) { invalid = append(invalid, fmt.Errorf(format, args...)) }
	if c.audit.listen == noAddress {
		if c.audit.tokenFile != "" || c.audit.cert != "" || c.audit.key != "" {
			report("audit-webhook-token-file, audit-webhook-cert-file and audit-webhook-key-file: set audit-webhook-address, too")
		}
		return invalid
	}
	if c.audit.cert == "" && c.audit.key == "" {
		c.audit.cert, c.audit.key = c.tlsCert, c.tlsKey
	}
	_, _, err := net.SplitHostPort(c.audit.listen)
	switch {
	case err != nil:
		report("audit-webhook-address %q: write it as host:port, such as :8444", c.audit.listen)
	case c.audit.cert == "" || c.audit.key == "":
		report("audit-webhook-cert-file and audit-webhook-key-file: set both; without TLS API servers send no token")
	case c.history == noHistory:
		report("audit-webhook-address %q: who did what is recorded in history, and history is none", c.audit.listen)
	}
	if c.audit.cert != "" && c.audit.key != "" {
		if _, err := tls.LoadX509KeyPair(c.audit.cert, c.audit.key); err != nil {
			report("audit-webhook-cert-file and audit-webhook-key-file: %w", err)
		}
	}
	if token, err := readFile(c.audit.tokenFile); err != nil {
		report("audit-webhook-token-file: %w", err)
	} else if len(strings.TrimSpace(string(token))) < minToken {
		report("audit-webhook-token-file %s: use a random token of at least %d characters, such as the output of `head -c 32 /dev/urandom | base64`", c.audit.tokenFile, minToken)
	}
	return invalid
}

const (
	noAddress = "0" // value of an address that disables what listens there
	minToken  = 20  // characters of the token of audit events
)

// proxies returns the networks whose X-Forwarded-For is trusted.
func (c *config) proxies() (networks []netip.Prefix, err error) {
	var invalid []error
	for _, text := range list(c.trustedProxies) {
		if address, err := netip.ParseAddr(text); err == nil {
			networks = append(networks, netip.PrefixFrom(address, address.BitLen()))
			continue
		}
		network, err := netip.ParsePrefix(text)
		if err != nil {
			invalid = append(invalid, fmt.Errorf("trusted-proxies: %q is neither an address nor a network such as 10.0.0.0/8", text))
			continue
		}
		networks = append(networks, network.Masked())
	}
	return networks, errors.Join(invalid...)
}

// checkSignIn returns what is invalid about sign-in.
func (c *config) checkSignIn() (invalid []error) {
	if c.oidc.issuer == "" {
		return nil
	}
	report := func(format string, args ...any) { invalid = append(invalid, fmt.Errorf(format, args...)) }
	issuer, err := url.Parse(c.oidc.issuer)
	switch {
	case err != nil || issuer.Host == "" || issuer.Scheme != "https" && issuer.Scheme != "http" || issuer.RawQuery != "" || issuer.Fragment != "":
		report("oidc-issuer %q: use the issuer as its discovery document has it, such as https://login.example.com", c.oidc.issuer)
	case issuer.Scheme == "http" && !web.IsLoopback(issuer.Hostname()):
		report("oidc-issuer %q: use https", c.oidc.issuer)
	}
	if c.oidc.clientID == "" {
		report("oidc-client-id: set the client ID at the issuer")
	}
	if c.oidc.usernameClaim == "" {
		report("oidc-username-claim: set the claim with the username, such as sub or email")
	}
	for name, prefix := range map[string]string{"oidc-username-prefix": c.oidc.usernamePrefix, "oidc-groups-prefix": c.oidc.groupsPrefix} {
		if strings.HasPrefix(prefix, "system:") {
			report("%s %q: names that start with system: are reserved by Kubernetes", name, prefix)
		}
	}
	if c.oidc.clientSecretFile != "" {
		if _, err := readFile(c.oidc.clientSecretFile); err != nil {
			report("oidc-client-secret-file: %w", err)
		}
	}
	if _, err := c.oidc.authorities(); err != nil {
		invalid = append(invalid, err)
	}
	if scopes := list(c.oidc.scopes); len(scopes) > 0 && !slices.Contains(scopes, "openid") {
		report("oidc-scopes %q: openid is required", c.oidc.scopes)
	}
	if _, err := c.oidc.required(); err != nil {
		invalid = append(invalid, err)
	}
	if c.sessions.keysFile == "" {
		report("session-keys-file: set a file with a key that encrypts sessions, such as the output of `head -c 32 /dev/urandom | base64`; the same for all replicas")
	} else if text, err := readFile(c.sessions.keysFile); err != nil {
		report("session-keys-file: %w", err)
	} else if _, err := session.NewRing(text); err != nil {
		report("session-keys-file %s: %w", c.sessions.keysFile, err)
	}
	if c.sessions.idle < time.Minute || c.sessions.absolute < c.sessions.idle {
		report("session-idle %s and session-max %s: the first must be at least 1m, and the second at least the first", c.sessions.idle, c.sessions.absolute)
	}
	return invalid
}

// authorities returns the CAs of the issuer's certificate; nil for the system's.
func (c oidcConfig) authorities() (*x509.CertPool, error) {
	if c.caFile == "" {
		return nil, nil
	}
	text, err := readFile(c.caFile)
	if err != nil {
		return nil, fmt.Errorf("oidc-ca-file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("oidc-ca-file %s: no certificate found", c.caFile)
	}
	return pool, nil
}

// required returns the claims that a user must have.
func (c oidcConfig) required() (map[string]string, error) {
	required := map[string]string{}
	var invalid []error
	for _, text := range list(c.requiredClaims) {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			invalid = append(invalid, fmt.Errorf("oidc-required-claims: %q is not claim=value", text))
			continue
		}
		required[name] = value
	}
	return required, errors.Join(invalid...)
}

// list splits text at commas. It trims spaces and drops empty parts.
func list(text string) (parts []string) {
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

// readFile reads a file of the configuration. Its errors never contain the
// content, which may be a secret.
func readFile(name string) ([]byte, error) {
	text, err := os.ReadFile(name)
	if err == nil && len(strings.TrimSpace(string(text))) == 0 {
		err = fmt.Errorf("%s is empty", name)
	}
	return text, err
}
