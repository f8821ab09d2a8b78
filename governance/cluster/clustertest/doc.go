// Package clustertest gives tests a real cluster: etcd, the API server, the
// controller manager, the scheduler, Kueue and KWOK nodes, as cmd/localcluster
// runs them. It is the only way a test gets one.
//
// A package's TestMain calls Main. One cluster serves all tests of a package;
// they keep out of each other's way by team and namespace, which Name makes
// unique. KUOTA_TEST_CLUSTER joins a cluster that runs already, by the folder
// it keeps its state in, which saves the start while one works on a test.
package clustertest
