// Package instances answers the pages of pools and nodes.
package instances
