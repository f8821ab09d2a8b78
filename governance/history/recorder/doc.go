// Package recorder writes history while the console watches the cluster: tasks
// with all that happened to them, and who held how much at each moment.
//
// A database that is lost or full holds up nothing: what is to be written waits,
// and what cannot wait is a gap. So is every time in which the console did not run
// or the API server did not answer.
package recorder
