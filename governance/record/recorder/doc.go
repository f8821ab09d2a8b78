// Package recorder observes the cluster and writes history: every change of every
// task, every change of the size of an elastic task, and the usage of teams and pools
// over time. It owns no data: package history stores it, packages tasks and capacity
// compute it.
//
// It must not slow down what it observes. Sampling never waits for the database:
// the sampler fills a bounded buffer, and one writer empties it.
//
//	watches ─▶ index.Index ──TakeChanged───┐
//	watches ─▶ capacity.Service ──Snapshot──┤
//	watches ─▶ scaleLog ────────────take────┤
//	                                        ▼
//	                 sampler (on every change, at most every 250 ms,
//	                          at least every 5 s)
//	                                        │ samples, gaps, task records
//	                                        ▼
//	                 buffer  (bounded; overflow becomes one gap)
//	                                        │
//	                                        ▼
//	                 writer ──▶ history.Store (retries every second)
//
// What cannot be observed or written is recorded as a gap. After a gap the next
// sample contains all amounts, not only the changed ones:
//
//	              API server unreachable, clock set forward,
//	              buffer overflow, console not running
//	recording ─────────────────────────────────────────────▶ gap
//	    ▲                                                     │
//	    └────────────── next complete sample ─────────────────┘
package recorder
