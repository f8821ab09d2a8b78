package audit

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// none is shown for a missing value.
const none = "–"

// diff returns the values that differ between two specs, one line each: path,
// old → new. Either spec may be nil.
func diff(before, after any) []string {
	was, is := map[string]string{}, map[string]string{}
	flatten("spec", plain(before), was)
	flatten("spec", plain(after), is)
	paths := slices.Sorted(maps.Keys(was))
	for path := range is {
		if _, both := was[path]; !both {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	var lines []string
	for _, path := range paths {
		old, had := was[path]
		now, has := is[path]
		if !had {
			old = none
		}
		if !has {
			now = none
		}
		if old != now {
			lines = append(lines, fmt.Sprintf("%s: %s → %s", path, old, now))
		}
	}
	return lines
}

// plain converts a spec to its JSON value.
func plain(spec any) (value any) {
	text, err := json.Marshal(spec)
	if err == nil {
		err = json.Unmarshal(text, &value)
	}
	if err != nil {
		return fmt.Sprintf("cannot be written down: %v", err)
	}
	return value
}

// flatten adds every scalar below value to into, by path.
func flatten(path string, value any, into map[string]string) {
	switch v := value.(type) {
	case nil:
	case map[string]any:
		for name, inner := range v {
			flatten(path+"."+name, inner, into)
		}
	case []any:
		for i, inner := range v {
			flatten(fmt.Sprintf("%s[%d]", path, i), inner, into)
		}
	case string:
		into[path] = fmt.Sprintf("%q", v)
	default:
		into[path] = fmt.Sprint(v)
	}
}
