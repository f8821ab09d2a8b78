package audit

import (
	"cmp"
	"encoding/json"
	"fmt"

	"kuota.dev/kuota/governance/spec/change"
)

// none is shown for a missing value.
const none = "–"

// diff returns the values that differ between two specs, one line each: path,
// old → new. Either spec may be nil.
//
// Unlike in change.Fields, items of lists have an index and strings are quoted, so
// that no text of a user can look like another change.
func diff(before, after any) []string {
	old, updated := map[string]string{}, map[string]string{}
	flatten("spec", plain(before), old)
	flatten("spec", plain(after), updated)
	var lines []string
	for _, f := range change.Between(old, updated) {
		lines = append(lines, fmt.Sprintf("%s: %s → %s", f.Path, cmp.Or(f.Before, none), cmp.Or(f.After, none)))
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
		return fmt.Sprintf("cannot be encoded: %v", err)
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
