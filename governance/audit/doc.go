// Package audit records what people change: who, when, which object, old and
// new, and from where; in the log, and as a Kubernetes Event on the object. It
// records and decides nothing.
package audit
