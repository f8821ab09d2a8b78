// Package views renders view structs as HTML. Each page is a templ file and a
// struct with exactly the strings, numbers and URLs that the page shows. The
// package must not use Kubernetes types, clients or the clock. Components that
// are not about the domain are in views/ui.
//
//	handler ── view struct ──▶ page (layout, sections)      GET
//	                      └──▶ fragment with a fixed id     event stream, form preview
//
// The script of the page merges a fragment into the element with the same id.
package views
