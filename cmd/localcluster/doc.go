// Command localcluster runs a whole Kubernetes control plane with Kueue and
// simulated nodes on one machine, as ordinary child processes of one
// supervisor; with users, also a provider to sign in at. Everything it runs is
// built from Go modules by its build command.
//
// It owns the processes, their ports, certificates and the folder they write
// to. It knows nothing about the console beyond how to start it and how to ask
// whether it is ready, and it never touches a cluster that it did not start.
//
// The cluster is disposable: each start begins with an empty store.
package main
