// Package imports answers /policies/import: it reads a text and opens the form of what the
// text describes. It saves nothing.
package imports
