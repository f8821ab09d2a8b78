// Package provider is an OpenID Connect provider for a cluster on one machine:
// real protocol, sample users.
//
// It owns the sign-in page, the sessions of browsers and the issued tokens; the
// protocol is implemented by github.com/zitadel/oidc. It has two clients: the
// console, whose redirects may lead to any port of this machine and nowhere else,
// and kuota login, which is public and uses the device flow. It must not connect to
// Kubernetes. Passwords are in a file and on the sign-in page, so that it must not
// be used for anything but samples.
//
//	authorize ─▶ request ─▶ sign-in page ─▶ session ─▶ code ─▶ grants (access, refresh)
//	device authorization ─▶ device ─▶ page with its user code ─▶ session ─▶ grants
//
// [Run] serves it. storage connects the library to the users file (directory), to
// open authorization requests (requests, devices), and to sessions and grants
// (memory).
package provider
