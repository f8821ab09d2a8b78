// Package notices sends people what happens to their own tasks: starts, ends, failures and
// preemptions, by receivers that the cluster policy allows for it.
//
//	page, API ──► Service.Set ──► Store: a record for each person, with their groups and verified address
//	                                │
//	history: events of tasks ──► group (pure) ──► deliveries ──► package alerts sends them, to Service.Address
//
// The leader reads once a minute what history recorded since the last time, so that no event is
// announced twice, and none is lost while no replica leads. A person's tasks are those that they
// submitted. A delivery names a record and no person or address: both are read when it is sent,
// with what the person may see then. The package sends nothing itself.
package notices
