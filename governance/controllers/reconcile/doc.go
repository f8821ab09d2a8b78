// Package reconcile contains the controllers that make Kueue match the
// ComputeAllocations and the ClusterPolicy. Each reads the cache, builds desired
// objects with package desired, applies what differs, and reports the outcome in
// conditions.
//
//	Reconciler             triggered by                           writes
//	AllocationReconciler   ComputeAllocation and its objects      Namespace, ResourceFlavor, ClusterQueue,
//	                                                              LocalQueue, RoleBinding, ResourceQuota,
//	                                                              LimitRange; Ready, QueueActive
//	CapacityReconciler     all ComputeAllocations, Nodes          WithinCapacity
//	CohortReconciler       all quota, Nodes                       Cohorts; ShareUnallocated, Ready of Departments
//	DepartmentReconciler   Department and its objects             Namespace, RoleBinding; status.active
//	PoolReconciler         ClusterPolicy, Nodes                   pool labels of Nodes; status.pools, Pools
//	RankingReconciler      ClusterPolicy, WorkloadPriorityClass   WorkloadPriorityClass, priority of
//	                                                              Workloads; PriorityClasses
//	KueueReconciler        ClusterPolicy, every 15 s              Kueue's ConfigMap and Deployment;
//	                                                              FairShare, GangScheduling
//	EnforcementReconciler  ClusterPolicy, LocalQueue, every 30 s  ConfigMap of the admission policies;
//	                                                              Enforcement
//	RevisionReconciler     each new spec                          ControllerRevision
//
// All but RevisionReconciler share state in memory: AllocationReconciler reserves
// quota in the ledger of CohortReconciler, and RankingReconciler waits for it with
// a lock. See RankingReconciler for the steps of a change of the ranking.
//
// The controllers delete only what Kuota created, and never a namespace. A
// ResourceFlavor stays when the last team that used it is deleted: it costs
// nothing, and the next team needs it. Of the objects of others they change only
// the pool label of nodes, the priority of tasks while the ranking changes, and
// the lines of Kueue's configuration that the policy determines. They write
// nothing while the console is read-only or Kuota's CRDs are being deleted.
package reconcile
