// Package clustertest provides a real cluster for tests: etcd, the API server, the
// controller manager, the scheduler, Kueue and KWOK nodes, as cmd/localcluster
// runs them. Tests must not start a cluster in any other way.
//
// A package's TestMain calls Main, and its tests get the cluster with Get. All
// tests of a package share one cluster; each uses teams and namespaces with names
// from Name, so that tests can run in parallel.
//
//	KUOTA_TEST_CLUSTER set   the running cluster with this state folder
//	KUOTA_TEST_POOL set      a cluster of the Pool, reset between test binaries, unless
//	                         the Options need a cluster of another sort
//	otherwise                a new cluster, which stops with the test binary
//
// KUOTA_TEST_CLUSTER saves the start of a cluster while a developer works on a
// test.
package clustertest
