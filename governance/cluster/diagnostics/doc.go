// Package diagnostics finds problems in the setup of the cluster, Kueue and the
// console.
//
//	API server, cache ──collector──► Observation ──Check──► []Finding
//
// A Finding states its impact and the lines or commands that fix it. Check is a
// pure function. The package changes nothing.
package diagnostics
