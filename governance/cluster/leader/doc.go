// Package leader elects the one replica that runs the controllers, the loop guard
// and the recorder, by a Lease in the namespace of the console. It knows nothing about
// what they do.
//
//	following ──Lease acquired──► beginning ──begin functions returned──► leading
//	                                                                        │
//	                     another replica holds the Lease: Run ends, and so must the process
//
// A replica leads once. An API server that does not answer is no loss: the replica goes on,
// and after the outage it may renew the Lease before others acquire it. But a Lease does not
// fence: a leader that was paused or cut off continues before it learns that another replica
// leads. So Within begins nothing, and the transport of Fence sends no write, once the last
// renewal is too old by the clock. The recorder is also fenced by its database.
package leader
