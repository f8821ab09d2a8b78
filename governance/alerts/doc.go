// Package alerts finds what people should look at before others complain, and keeps each
// finding as one alert until it is resolved.
//
//	index, capacity, loop guard, Prometheus ──► Input ──► findings (pure) ──► machine (pure) ──► history.Store
//	                                                                                                  │
//	                                        pages of all replicas ◄── Service.Within(scope) ◄─────────┘
//
// The states of an alert, which a rule and a subject identify:
//
//	            found                  found for as long as the rule requires
//	(nothing) ─────────► pending ─────────────────────────────────────────────► firing
//	                        │ not found                                           │ not found for settleTime
//	                        ▼                                                     ▼
//	                    (nothing)                                              resolved
//
// A rule whose data is missing changes nothing: without data, nothing is known to be
// over. Only the leader evaluates; all replicas show what it saved. A summary names what
// belongs to the alert's own team and never another team. Messages about alerts are sent by
// package delivery. The package writes to no object of Kubernetes.
package alerts
