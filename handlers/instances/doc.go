// Package instances answers /instances: pools and nodes.
package instances
