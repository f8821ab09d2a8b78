// Package bulk runs one change on many objects, as the user who asked for it, and keeps what
// was done: pages show it after a reload and on every replica.
package bulk
