// Package webtest runs a console that people sign in to, with browsers that do
// so, and checks what must hold of every route. It is imported by tests only,
// and must not know any page.
package webtest
