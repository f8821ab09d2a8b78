// Package imports reads the objects of a pasted or uploaded text, in any supported
// notation, and lists the parts that were not imported.
//
//	text ──document.Read, hyperpod.ParseCommands──► nodes ──hyperpod, manifest, trainingjobs──► Result
//
// It chooses the package that reads a notation, and contains no notation itself.
// It is pure: no client, no context, no clock.
package imports
