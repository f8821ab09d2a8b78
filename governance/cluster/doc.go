// Package cluster connects to one Kubernetes cluster. All access to Kubernetes
// goes through it, and only it.
//
//	API server ──watch──► cache ──► Reader           pages and controllers
//	                        └─────► Notifier         pages that refresh
//	           ◄──────── APIReader, Clientset        uncached reads, as the console
//	           ◄──────── ClientAs, ReaderAs          impersonating the reader
//	           ◄──────── Allowed, ConsoleAllowed     access reviews
//	           ◄──────── Contact                     health check
//
// Cluster owns the manager with its cache, discovers which kinds are missing, and
// detects whether HyperPod's add-on manages the cluster, so that the console is
// read-only. Sessions and Revisions store data of the console in its namespace.
// Translate converts errors of Kubernetes to governance.Error.
//
// The package contains no rules about allocations or tasks.
package cluster
