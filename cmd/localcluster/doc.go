// Command localcluster runs a Kubernetes control plane with Kueue and simulated
// nodes on one machine, as child processes of one supervisor, and optionally
// operators of further kinds of jobs, a sign-in provider and the console. Its build
// command builds all programs from Go modules.
//
// It owns the processes, their ports and certificates, and the folder of the
// instance. It must not depend on the console beyond its environment and its
// /readyz, and it never connects to a cluster that it did not start. A cluster
// is disposable: each start begins with an empty etcd.
//
// A start runs in three phases; in each, everything starts at once:
//
//	credentials ─▶ etcd, kube-apiserver, provider
//	            ─▶ controller manager, scheduler, Kueue, operators, KWOK and nodes, CRDs, RBAC
//	            ─▶ console ─▶ samples
//
// [supervisor] starts and stops each [component] and ends the instance when one
// exits unexpectedly. [control] serves the commands stop, start, status and down
// of a running instance. [kueueUnit] keeps the Kueue process in step with its
// Deployment. [operatorUnit] is one operator of the table [operators]. [load] creates
// the Jobs of the sample teams.
package main
