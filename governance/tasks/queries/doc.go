// Package queries answers pages and actions about tasks, each for one viewer: lists,
// one task with its timeline and its position in the queue, why it does not start,
// and what would happen with another priority. Names that the viewer may not see are
// redacted here and nowhere else.
//
//	scope of a user ─► viewer ─► index ─► Item, Detail, List
//	                      └────► survey (cached objects) ─► explain ─► Verdict
//	Kueue's visibility API ─► visibilityCache ─► QueuePosition
//
// The package changes nothing in the cluster: package actions does.
package queries
