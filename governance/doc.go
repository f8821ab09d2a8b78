// Package governance holds what all of the domain shares: its errors. The
// domain itself lies in the packages below it.
//
// It knows no HTTP, no HTML and no Kubernetes client.
package governance
