// Package history keeps what the API server forgets: what became of tasks that
// are gone, who held how much and when, and when nobody was looking. It is a
// database, SQLite in one file or PostgreSQL; it knows no Kubernetes.
//
// Times are kept in milliseconds, amounts as integers, and sums are exact.
package history
