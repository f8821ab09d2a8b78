// Package governance has the errors and the user identity that all packages below
// it share. It has no HTTP, no HTML and no Kubernetes client.
package governance
