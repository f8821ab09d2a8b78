package handlers

import (
	"maps"
	"net/url"
	"slices"
)

// addressWith is a path with values, some of them changed; an empty one takes a
// name out.
func addressWith(path string, values url.Values, pairs ...string) string {
	values = maps.Clone(values)
	if values == nil {
		values = url.Values{}
	}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			delete(values, pairs[i])
		} else {
			values[pairs[i]] = []string{pairs[i+1]}
		}
	}
	if len(values) == 0 {
		return path
	}
	return path + "?" + values.Encode()
}

func sortedKeys(values url.Values) []string { return slices.Sorted(maps.Keys(values)) }
