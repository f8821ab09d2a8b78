// Package e2e contains only tests. They drive the built console in a real browser,
// against a real Kubernetes cluster with Kueue. A test fails on any error in the
// browser's console, violations of the content security policy included.
//
// make test and make bench prepare what the tests need: the binaries of the cluster
// and of the console, and the browser.
package e2e
