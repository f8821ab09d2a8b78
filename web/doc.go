// Package web is the HTTP server of the console: its limits, the headers that
// protect pages, sign-in, forms, error pages and event streams. Handlers
// register their routes with [Server.Page], [Server.Form], [Server.Events] and
// [Server.Public]. The package must not import Kubernetes or Kueue, and does
// not know any page.
//
// A request passes through:
//
//	base path → metrics → recover → headers → host → cross-site → body limit → gzip
//	  → session (Page, Form, Events) → same user (Form, Events) → handler
//	  → error page, if any of them returned an error
//
// Inside the console every address begins at its root. Under a base path (of the URL that
// browsers know), that path is removed from requests first, and added to what leaves: see
// base.go.
//
// Signing in, with the cookies that the browser keeps:
//
//	browser             console                          provider
//	  │ GET /tasks          │                                │
//	  ├────────────────────▶│ no session: redirect           │
//	  │ GET /auth/login     │                                │
//	  ├────────────────────▶│ sets kuota-signin-… (sealed    │
//	  │                     │ state, nonce, PKCE verifier)   │
//	  ├─────────────────────┼── authorization request ──────▶│
//	  │◀────────────────────┼── code, state ─────────────────┤
//	  │ GET /auth/callback  │                                │
//	  ├────────────────────▶├── code, verifier ─────────────▶│
//	  │                     │◀── ID token, refresh token ────┤
//	  │◀────────────────────┤ stores the session, sets kuota │
//	  │ GET /tasks          │ (session ID), redirects back   │
//
// A form that is submitted after its session ended comes back filled in after
// signing in: as a sealed cookie (kuota-draft) if it fits, otherwise as hidden
// fields of the page that asks the user to sign in.
//
// An event stream keeps the live part of one open page up to date. Readers who
// may see the same share one rendering:
//
//	cluster caches ──changed──▶ feed "A" renders once ──▶ reader 1 ──▶ browser
//	                              │                    └─▶ reader 2 ──▶ browser
//	                              └─ stops with its last reader
//	                  ──changed──▶ personal part ─────────────────────▶ browser
//	                  heartbeat, every second ──▶ age of the data ──▶ all browsers
//
// Before each event the stream identifies its reader again: it ends with the
// session, and a reader who lost a group joins another feed.
package web
