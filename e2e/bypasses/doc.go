// Package bypasses holds tests only: they try every way past the quota of a
// team, by accident or by cunning, against a real API server with Kueue and the
// admission policies of deploy/rbac/enforcement.yaml, and every way that is right.
package bypasses
