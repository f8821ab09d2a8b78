// Package logs reads the logs of the containers of tasks. Kubernetes decides who
// may: each log is opened by impersonating its reader, and only for a pod of a task
// that the reader can see. The package keeps no log, and it never reads one as the
// console.
//
//	API server ── LogAs, as the reader ──► lines ──► Tail: the last 500 lines ──► Follow ──► page
//	                                  ├──────────────────────────────────────────► Open ──► download
//	                                  └──► the last 2,000 lines of one pod ──► Progress ──► page of the task
//
// A container may write faster than a browser reads, and lines may be endless. So a
// Tail reads as fast as the container writes and keeps a fixed number of bytes: of the
// lines that its reader has not fetched, the latest. The others are counted.
package logs
