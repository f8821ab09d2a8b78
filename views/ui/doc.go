// Package ui has the components of pages: buttons, fields, tables, cards, tags.
// Each is a templ component with a props struct, is accessible, and works without
// JavaScript.
//
// The package must not know the domain: no allocation, team or task. It must not
// write style attributes, inline scripts or inline handlers, which the content
// security policy forbids.
package ui
