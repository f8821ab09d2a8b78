// Package session stores who is signed in. The browser has a random session
// ID; the session itself is encrypted in a [Store] that all replicas read. The
// package decides when a session ends, and asks the provider to confirm it
// every few minutes. It must not know cookies, pages or Kubernetes.
//
// Life of a session, by the time since the provider last confirmed it:
//
//	Create ─▶ fresh ──4 min──▶ stale ──5 min──▶ expired
//	            ▲               │ used as it is,   │ each request waits
//	            │               │ confirmed in the │ for the provider
//	            │               │ background       │
//	            └── confirmed ──┴──────────────────┤
//	                                               ├─ no answer: ErrUnavailable,
//	                                               │  retried after 5 s
//	                                               └─ rejected: deleted
//
// A session is also deleted by [Sessions.End] (sign-out), and once it is older
// than the idle or the absolute limit.
//
// Each refresh token may be good for one use only, so at most one replica
// confirms a session at a time: it writes the time of its attempt to the store,
// at the version that it read, before it asks the provider.
package session
