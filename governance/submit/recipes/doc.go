// Package recipes has tasks that run as they are, to begin with: what submit.Request a form
// starts from, and its script, which contains the Python library that it needs. It is pure.
package recipes
