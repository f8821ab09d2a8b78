// Package textdiff compares texts line by line. It is pure.
package textdiff
