package governance

import "slices"

// Find returns the first item of a list for which is returns true, and false if there is
// none.
func Find[T any](list []T, is func(T) bool) (item T, ok bool) {
	if i := slices.IndexFunc(list, is); i >= 0 {
		return list[i], true
	}
	return item, false
}
