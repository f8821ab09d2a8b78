package revisions

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/spec/change"
	"kuota.dev/kuota/governance/spec/describe"
)

// Bounds of a summary: the number of values, and the characters of each side.
const (
	summaryValues = 3
	summaryText   = 60
)

// changes returns the differences of two manifests in the words of the pages.
// before is empty for the first one.
func (o Owner) changes(before, after []byte) ([]change.Field, error) {
	if o.kind == kindPolicy {
		return changesOf(before, after, describe.PolicyChanges)
	}
	return changesOf(before, after, describe.AllocationChanges)
}

func changesOf[Spec any](before, after []byte, compare func(before, after *Spec) []change.Field) ([]change.Field, error) {
	var was *Spec
	if len(before) > 0 {
		was = new(Spec)
		if err := spec(before, was); err != nil {
			return nil, err
		}
	}
	is := new(Spec)
	if err := spec(after, is); err != nil {
		return nil, err
	}
	return compare(was, is), nil
}

// spec decodes the spec of a manifest.
func spec(text []byte, into any) error {
	return json.Unmarshal(text, &struct {
		Spec any `json:"spec"`
	}{into})
}

// summary returns a short text about the changes. A missing value is a dash.
func summary(changes []change.Field) string {
	if len(changes) == 0 {
		return "Only the order or the spelling of values"
	}
	side := func(text string) string { return cmp.Or(truncate(text, summaryText), "–") }
	var parts []string
	for _, c := range changes[:min(len(changes), summaryValues)] {
		parts = append(parts, fmt.Sprintf("%s: %s → %s", c.Path, side(c.Before), side(c.After)))
	}
	if more := len(changes) - summaryValues; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, "; ")
}

// manifestOf returns the data of a revision, which can be applied.
func manifestOf(kind, name string, spec any) ([]byte, error) {
	return json.Marshal(map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": kind, "metadata": map[string]string{"name": name}, "spec": spec})
}
