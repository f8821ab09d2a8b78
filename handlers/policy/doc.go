// Package policy answers /policies/cluster: the card, form, review and conflict page of the
// cluster policy.
package policy
