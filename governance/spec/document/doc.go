// Package document parses JSON and YAML of unknown origin within bounds, and
// decodes it into Go values. It reports every part that it skips.
//
//	text ──Read──► []*Node ──Decode──► struct
//	       └──► Problems     └──► Report
//
// It contains nothing about the types that it decodes into. It is pure: no
// client, no context, no clock.
package document
