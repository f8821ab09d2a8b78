// Package manifest is Kuota's own resources as text: it writes them as YAML
// that kubectl applies, reads them back, and holds what others bring to the
// bounds of their schemas. It knows no other notation.
//
// It is pure: no client, no context, no clock.
package manifest
