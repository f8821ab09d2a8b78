// Package truth has only tests: they measure on the real Kueue how right the console is
// about a task that waits. They read the rendered page, as a user does, and make for real
// what it offers. They use no code of the packages that compute the offers.
//
//	seed ──▶ cohort ──create, submit──▶ instance ──quiet──▶ page of a waiting task
//	                                                          │ one offered change
//	watcher ◀──watch── Workloads ◀── Kueue ◀──────make────────┘
//	   └──▶ did it start? were exactly the named tasks preempted? is the figure minimal?
//
// A cohort is the teams and tasks of one seed, and of every other seed its departments,
// Cohorts below the one of the seed. Its objects are built with package
// desired, so that its queues are those that Kuota writes. An instance is a cohort on the
// cluster. A second instance, with the same tasks in the same order, shows whether a
// figure is minimal, and further ones look for changes that the page does not offer.
//
// Dozens of instances run at once, in a Kueue cohort and namespaces of their own. That
// leaves out what only Kuota's one cohort has: ComputeAllocations, so that offered quota
// is set in the ClusterQueue and changes no amounts that follow from it, no limits in
// percent, and no unallocated compute. Some seeds run through Kuota too, one at a time.
package truth
