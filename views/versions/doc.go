// Package versions renders the versions of a policy or an allocation.
package versions
