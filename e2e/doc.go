// Package e2e drives the built console in a real browser, against a real
// Kubernetes with Kueue. A test fails on any error in the browser's console,
// a refusal by the content security policy among them.
//
// make test and make bench prepare what it needs: the cluster's and the
// console's binaries, and the browser.
package e2e
