// Package usage renders the report of usage.
package usage
