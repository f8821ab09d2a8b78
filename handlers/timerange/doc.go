// Package timerange reads the range of time in the address of a page, and renders its
// picker.
package timerange
