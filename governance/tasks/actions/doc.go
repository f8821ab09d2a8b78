// Package actions changes existing tasks: it stops, resumes and deletes them, changes
// their priority class, moves them to the front of their queue, and resizes ElasticJobs.
//
//	Offers ─▶ the actions that apply, and missing permissions
//	Review ─▶ what an action would do, and the obstacle if it cannot be done
//	Stop, Resume, SetClass, Resize, Delete ─▶ the write
//
// Every write uses the permissions of the user, so that the API server authorizes and
// audits it. The package must not change the spec of a job: it writes .spec.active of
// Workloads, labels of jobs, and sizes and suspend of ElasticJobs. What a task is and its queue position come from package
// tasks.
package actions
