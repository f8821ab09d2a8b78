// Package provider is an OpenID Connect provider for a cluster on one machine:
// real protocol, sample users.
//
// It owns the users file, the sign-in page, who is signed in and the tokens
// that it gave out. The protocol itself is github.com/zitadel/oidc's. It knows
// one client, which may come back to any port of this machine and nowhere else,
// and it never speaks to Kubernetes. Passwords stand in a file and on the
// sign-in page, so that it must not be used for anything but samples.
package provider
