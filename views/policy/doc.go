// Package policy renders the form of the cluster policy and its review.
package policy
