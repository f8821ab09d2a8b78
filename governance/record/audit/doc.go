// Package audit records what users change: who, when, which object, the old and
// the new values, and the client's address. A record is a log line, a
// Kubernetes Event on the object, and an entry of package activity. The package decides nothing.
package audit
