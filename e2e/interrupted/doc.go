// Package interrupted contains only tests. For every n, each test interrupts the
// controllers at the n-th call that they make to the API server, creates new
// controllers, and checks that the cluster reaches the same state as without the
// interruption. The tests call Reconcile themselves, without a manager and a cache,
// so that the order of the calls is deterministic. They therefore need a package,
// and with it a cluster, of their own.
package interrupted
