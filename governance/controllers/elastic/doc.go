// Package elastic runs ElasticJobs: trainings that grow into idle compute and give it
// back without ending.
//
// An ElasticJob is one base Job of its minimum, in the job's own priority class, and
// one increment Job for each step above it, in GrowthClass, which is below all
// priority classes of a policy. So Kueue preempts growth before any other task, the
// newest increment first, and the base and the other increments go on.
//
//	ElasticJob ──► base Job ─────────── admitted ──► increments 1, 2, 3, …
//	                  │ not admitted                     │ preempted, faulty, or in the way
//	                  └──► no increments                 └──► deleted; grows again after a while
//
// Decide is pure: it computes from the observed state what to create and to delete. The
// Reconciler reads the state, and carries out one decision. Nothing that a decision
// needs is only in memory, except since when there is room.
//
// An increment never causes an eviction: it is created only where Kueue would admit it
// without one, and deleted if Kueue does not admit it at once.
package elastic
