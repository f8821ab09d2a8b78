// Package policy answers the pages of the cluster policy: its card, form, review and
// conflict page.
package policy
