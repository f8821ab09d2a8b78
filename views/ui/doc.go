// Package ui holds the pieces that every page is made of: buttons, fields,
// tables, cards, tags. A piece is one templ component with a small props
// struct, and knows how it looks, how it is read aloud and how it works
// without JavaScript.
//
// It must not know the domain: no allocation, team or task appears here. Nor
// may it write a style attribute, an inline script or an inline handler, all
// of which the content security policy forbids.
package ui
