// Package change describes the differences between two versions of an object: the
// fields that differ, each with its value before and after.
//
// Fields compares objects in the notation of Kubernetes. Package describe
// compares specs in the words of the pages. Both return []Field. The package
// reads and writes nothing.
package change
