// Package views renders what several areas of pages show: the frame of a page, lists,
// figures, charts, forms, reviews and histories.
//
// The pages of an area are in the package that has the area's name, such as views/tasks
// for handlers/tasks. Each page is a templ file and a struct with exactly the strings,
// numbers and URLs that the page shows. These packages must not use Kubernetes types,
// clients or the clock, and an area must not import another area. Components that are
// not about the domain are in views/ui.
//
//	handler ── view struct ──▶ page (layout, sections)      GET
//	                      └──▶ fragment with a fixed id     event stream, form preview
//
// The script of the page merges a fragment into the element with the same id.
package views
