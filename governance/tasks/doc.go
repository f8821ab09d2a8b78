// Package tasks reads Kueue Workloads as tasks: what people submit and know by one
// name. A task is one Workload, the slices of an elastic job, or several Workloads of
// one owner, such as the replicas of a Deployment. The package is pure: it has no
// client, no clock and no state.
//
// A task is in one of these states, read from its Workloads' conditions:
//
//	Pending ──► Starting ──► Running ──► Succeeded, Failed
//	   ▲            │           │
//	   │            └─► Stopping ◄┘   evicted or deactivated; pods are ending
//	   │                   │
//	   ├── evicted ◄───────┤
//	Preempted ◄────────────┤ preempted, or held by the loop guard
//	Stopped ◄──────────────┘ .spec.active is false, or a service has 0 replicas
//
// Starting, Running and Stopping tasks use quota; deactivated ones do not. Data flows one way:
//
//	informers ─► index ─► queries ─► pages, actions, recorder
//	               │         └─► explain: why a task does not start
//	               └─► timeline: what Kueue overwrites
//
// The packages below import this one, and never one to the right of them.
package tasks
