// Package leader elects the one replica that runs the controllers, the loop guard
// and the recorder, by a Lease in the namespace of the console. It owns the terms
// of this replica, and knows nothing about what runs in them.
//
//	            Lease acquired          begin functions returned
//	following ──────────────────► beginning ───────────────► leading
//	    ▲                             │                         │
//	    └─────────────────────────────┴─────────────────────────┘
//	       not renewed for 7 seconds, or the console stops:
//	       work is canceled and waited for, then the Lease is released
//
// A Lease does not fence: a leader that was paused, by a stopped process or a
// suspended machine, continues before it learns that another replica leads. So
// Within runs nothing, and the transport of Fence sends no write, once the last
// renewal is too old by the clock. The recorder is also fenced by its database.
package leader
