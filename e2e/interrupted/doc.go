// Package interrupted has only tests: each stops the controllers at the n-th
// call that they make to the API server, for every n, makes them anew, and
// looks whether the cluster ends as it does without that. The controllers are
// run by hand here, without a manager and a cache, so that the calls come in one
// order; that is why the tests have a package, and so a cluster, of their own.
package interrupted
