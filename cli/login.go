package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/spf13/cobra"
	"golang.org/x/oauth2"
)

// credential is what kuota login stores for a console.
type credential struct {
	Issuer       string    `json:"issuer"`
	ClientID     string    `json:"clientID"`
	IDToken      string    `json:"idToken"`
	RefreshToken string    `json:"refreshToken,omitempty"`
	Expires      time.Time `json:"expires"`
}

// margin is how long before its end a token is refreshed.
const margin = 30 * time.Second

// credentialsFile returns the file with credentials by console.
func credentialsFile() (string, error) {
	dir, err := os.UserConfigDir()
	return filepath.Join(dir, "kuota", "credentials.json"), err
}

func readCredentials() (all map[string]credential, path string, err error) {
	all = map[string]credential{}
	if path, err = credentialsFile(); err != nil {
		return all, "", err
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return all, path, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		err = fmt.Errorf("read credentials: %w", err)
	}
	return all, path, err
}

// writeCredentials replaces the file at once, so that no other command reads a part of it.
func writeCredentials(path string, all map[string]credential) error {
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".credentials-") // 0600
	if err != nil {
		return err
	}
	_, err = file.Write(append(text, '\n'))
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		os.Remove(file.Name())
	}
	return err
}

// storedToken returns the ID token of a console, refreshed if it ends; empty for none.
func storedToken(ctx context.Context, server string, http *http.Client) (string, error) {
	all, path, err := readCredentials()
	if err != nil {
		return "", err
	}
	found, ok := all[server]
	if !ok || time.Until(found.Expires) > margin {
		return found.IDToken, nil
	}
	if found.RefreshToken == "" {
		return "", errors.New("you are signed out. Sign in with kuota login")
	}
	config, ctx, err := oauth(ctx, http, found.Issuer, found.ClientID)
	if err != nil {
		return "", err
	}
	token, err := config.TokenSource(ctx, &oauth2.Token{RefreshToken: found.RefreshToken}).Token()
	if err != nil {
		return "", fmt.Errorf("your sign-in ended. Sign in with kuota login: %w", err)
	}
	if all[server], err = credentialOf(found.Issuer, found.ClientID, token, found.RefreshToken); err != nil {
		return "", err
	}
	return all[server].IDToken, writeCredentials(path, all)
}

// oauth returns the endpoints of an issuer.
func oauth(ctx context.Context, http *http.Client, issuer, clientID string) (*oauth2.Config, context.Context, error) {
	ctx = oidc.ClientContext(ctx, http)
	provider, err := oidc.NewProvider(ctx, issuer)
	if err != nil {
		return nil, ctx, fmt.Errorf("the sign-in provider does not answer: %w", err)
	}
	endpoint := provider.Endpoint()
	endpoint.AuthStyle = oauth2.AuthStyleInParams // a public client
	return &oauth2.Config{ClientID: clientID, Endpoint: endpoint, Scopes: []string{oidc.ScopeOpenID, "profile", "email", "groups", oidc.ScopeOfflineAccess}}, ctx, nil
}

// credentialOf returns the credential of a token response.
func credentialOf(issuer, clientID string, token *oauth2.Token, refresh string) (credential, error) {
	raw, _ := token.Extra("id_token").(string)
	if raw == "" {
		return credential{}, errors.New("the sign-in provider sent no ID token")
	}
	if token.RefreshToken != "" {
		refresh = token.RefreshToken
	}
	// The console verifies it; here only its end matters.
	id, err := oidc.NewVerifier(issuer, nil, &oidc.Config{ClientID: clientID, InsecureSkipSignatureCheck: true}).Verify(context.Background(), raw)
	if err != nil {
		return credential{}, fmt.Errorf("the sign-in provider sent another ID token: %w", err)
	}
	return credential{Issuer: issuer, ClientID: clientID, IDToken: raw, RefreshToken: refresh, Expires: id.Expiry}, nil
}

// loginCommand returns the command that signs a user in by the device flow (RFC 8628).
func (o *options) loginCommand() *cobra.Command {
	return &cobra.Command{
		Use: "login", Short: "sign in to a console, in a browser on any device", Args: cobra.NoArgs, Example: "  kuota login --server https://kuota.example.com",
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := o.client()
			if err != nil {
				return err
			}
			client.token = nil
			body, err := client.get(c.Context(), "/auth/command-line.json", nil)
			if err != nil {
				return err
			}
			var of struct {
				Issuer, ClientID string
				Claims           []string
			}
			if err := json.Unmarshal(body, &of); err != nil || of.Issuer == "" {
				return errors.New("the answer has no issuer; is this the address of a console?")
			}
			config, ctx, err := oauth(c.Context(), client.http, of.Issuer, of.ClientID)
			if err != nil {
				return err
			}
			if config.Endpoint.DeviceAuthURL == "" {
				return errors.New("the sign-in provider has no device flow. Use the token of a service account")
			}
			device, err := config.DeviceAuth(ctx, claimsOf(of.Claims))
			if err != nil {
				return fmt.Errorf("the sign-in provider does not start the device flow: %w", err)
			}
			address := device.VerificationURIComplete
			if address == "" {
				address = device.VerificationURI
			}
			fmt.Fprintf(o.messages, "Open %s and confirm the code %s.\n", clean(address), clean(device.UserCode))
			token, err := config.DeviceAccessToken(ctx, device)
			if err != nil {
				return fmt.Errorf("you were not signed in: %w", err)
			}
			found, err := credentialOf(of.Issuer, of.ClientID, token, "")
			if err != nil {
				return err
			}
			all, path, err := readCredentials()
			if err != nil {
				return err
			}
			all[client.server.String()] = found
			if err := writeCredentials(path, all); err != nil {
				return err
			}
			fmt.Fprintf(o.messages, "Signed in to %s.\n", client.server.Host+client.server.Path)
			return nil
		},
	}
}

// claimsOf asks for claims in the ID token (OpenID Connect Core 1.0, 5.5), which some
// providers else return by userinfo only. Others ignore it.
func claimsOf(names []string) oauth2.AuthCodeOption {
	in := map[string]any{}
	for _, name := range names {
		in[name] = nil
	}
	text, _ := json.Marshal(map[string]any{"id_token": in})
	return oauth2.SetAuthURLParam("claims", string(text))
}

// logoutCommand returns the command that forgets a sign-in.
func (o *options) logoutCommand() *cobra.Command {
	return &cobra.Command{
		Use: "logout", Short: "forget the sign-in to a console", Args: cobra.NoArgs, Example: "  kuota logout",
		RunE: func(*cobra.Command, []string) error {
			server, err := serverOf(o.server)
			if err != nil {
				return err
			}
			all, path, err := readCredentials()
			if err != nil {
				return err
			}
			delete(all, server.String())
			return writeCredentials(path, all)
		},
	}
}
