// Package instances renders the instances and pools.
package instances
