// Package views turns view structs into HTML. Each page is one templ file
// beside one struct that holds exactly the strings, numbers and finished URLs
// which that page shows: no Kubernetes type, no client, no clock. The pieces
// that pages are made of live in views/ui.
package views
