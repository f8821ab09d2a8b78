// Package forms has what all forms share: values in addresses, rows of inputs, numbers
// as people type them, the reason of a change, and notices about imports and restored
// versions.
package forms
