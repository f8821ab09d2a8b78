// Package format writes numbers, durations, quantities and sentences for people.
package format
