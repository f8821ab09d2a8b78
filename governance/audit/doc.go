// Package audit records what users change: who, when, which object, the old and
// the new values, and the client's address. A record is a log line and a
// Kubernetes Event on the object. The package decides nothing.
package audit
