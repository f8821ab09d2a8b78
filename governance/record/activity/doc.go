// Package activity keeps who did what, and loses nothing while the history database
// does not answer.
//
//	audit.Recorder ──Add──▶ Log ──▶ file of this replica (each entry is synced)
//	                         │
//	                         ▼
//	                      writer ──▶ history.Store (retries every second)
//
// The file has what is not in the database yet. After a crash the next process on the
// same volume records it: entries have ids, so that none is recorded twice. It must not
// decide what is worth an entry, which the callers do.
package activity
