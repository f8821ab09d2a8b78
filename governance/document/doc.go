// Package document reads JSON and YAML that people bring: text into trees
// within bounds, and a tree into Go values, telling of everything in it that
// does not fit. It knows none of the values it fills.
//
// It is pure: no client, no context, no clock.
package document
