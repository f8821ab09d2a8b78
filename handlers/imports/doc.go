// Package imports answers the page that reads a text and opens the form of what it
// describes. It saves nothing.
package imports
