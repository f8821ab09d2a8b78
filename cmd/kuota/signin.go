package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/web"
	"kuota.dev/kuota/web/session"
	"kuota.dev/kuota/web/signin"
)

// keysInterval is how often the file with session keys is read.
const keysInterval = 10 * time.Second

// signIn constructs sign-in; nil without an issuer.
func (c config) signIn(listening net.Addr, store *cluster.Sessions, log *slog.Logger) (*web.SignIn, error) {
	if c.oidc.issuer == "" {
		return nil, nil
	}
	address := c.url
	if address == "" {
		address = "http://" + listening.String()
		if c.tlsCert != "" {
			address = "https://" + listening.String()
		}
	}
	public, err := url.Parse(strings.TrimRight(address, "/"))
	if err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	provider, err := c.provider(public)
	if err != nil {
		return nil, err
	}
	keys, err := readFile(c.sessions.keysFile)
	if err != nil {
		return nil, fmt.Errorf("session-keys-file: %w", err)
	}
	ring, err := session.NewRing(keys)
	if err != nil {
		return nil, fmt.Errorf("session-keys-file: %w", err)
	}
	return &web.SignIn{
		URL: public, Provider: provider, Ring: ring,
		Sessions: &session.Sessions{
			Store: store, Ring: ring, Provider: provider, Now: time.Now, Log: log,
			Limits: session.Limits{Idle: c.sessions.idle, Absolute: c.sessions.absolute},
		},
	}, nil
}

// identifyTokens returns whose bearer token it is: an ID token of the issuer, or a token of a
// service account.
func identifyTokens(provider *signin.Provider, accounts *access.Tokens) web.Tokens {
	return func(ctx context.Context, token string) (web.User, error) {
		if issuer, client, _ := provider.CommandLine(); client != "" && signin.IssuerOf(token) == issuer {
			id, err := provider.TokenIdentity(ctx, token)
			if refusal, ok := errors.AsType[*signin.Refusal](err); ok {
				return web.User{}, fmt.Errorf("%w: %w", web.ErrToken, refusal)
			}
			return web.User{Name: id.User, Groups: id.Groups, Email: id.Email}, err
		}
		account, known, err := accounts.ServiceAccount(ctx, token)
		if err == nil && !known {
			err = web.ErrToken
		}
		return web.User{Name: account.Name, Groups: account.Groups, ServiceAccount: account.ServiceAccount, Writes: account.Writes}, err
	}
}

func (c config) provider(public *url.URL) (*signin.Provider, error) {
	required, err := c.oidc.required()
	if err != nil {
		return nil, err
	}
	config := signin.Config{
		Issuer: c.oidc.issuer, ClientID: c.oidc.clientID, CommandLine: c.oidc.commandLine, Scopes: list(c.oidc.scopes),
		RedirectURL:  public.JoinPath("/auth/callback").String(),
		SignedOutURL: public.JoinPath("/auth/signed-out").String(),
		Claims: signin.Claims{
			Username: c.oidc.usernameClaim, UsernamePrefix: c.oidc.usernamePrefix,
			Groups: c.oidc.groupsClaim, GroupsPrefix: c.oidc.groupsPrefix, Required: required,
		},
	}
	if file := c.oidc.clientSecretFile; file != "" {
		config.ClientSecret = func() (string, error) {
			text, err := readFile(file)
			return strings.TrimSpace(string(text)), err
		}
	}
	pool, err := c.oidc.authorities()
	if err != nil {
		return nil, err
	}
	if pool != nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
		config.Transport = transport
	}
	return signin.New(config), nil
}

// watchKeys replaces the session keys when their file changes, until ctx ends.
func (c config) watchKeys(ctx context.Context, ring *session.Ring, log *slog.Logger) {
	var last string
	for ; ctx.Err() == nil; _ = governance.Sleep(ctx, keysInterval) {
		text, err := readFile(c.sessions.keysFile)
		if err == nil && string(text) != last {
			if err = ring.Replace(text); err == nil && last != "" {
				log.Info("session keys reloaded")
			}
			last = string(text)
		}
		if err != nil {
			log.Warn("session keys not reloaded; the previous keys stay in use", "error", err)
		}
	}
}
