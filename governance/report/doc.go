// Package report computes what was used, and what it cost, for people who pay for it or share it.
package report
