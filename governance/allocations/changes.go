package allocations

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fieldChanges lists what differs between two objects as Kubernetes writes
// them: in the spec where they have one, else beside the metadata.
func fieldChanges(before, after any) ([]FieldChange, error) {
	was, err := contents(before)
	if err != nil {
		return nil, err
	}
	is, err := contents(after)
	if err != nil {
		return nil, err
	}
	paths := slices.Collect(maps.Keys(was))
	for path := range is {
		if _, both := was[path]; !both {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	var changes []FieldChange
	for _, path := range paths {
		if was[path] != is[path] {
			changes = append(changes, FieldChange{Path: path, Before: was[path], After: is[path]})
		}
	}
	return changes, nil
}

// markChanges lists the labels and annotations that an object lacks or has
// otherwise.
func markChanges(live client.Object, wanted map[string]string) []FieldChange {
	has := maps.Clone(live.GetLabels())
	if has == nil {
		has = map[string]string{}
	}
	maps.Copy(has, live.GetAnnotations())
	var changes []FieldChange
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if has[name] != wanted[name] {
			changes = append(changes, FieldChange{Path: name, Before: has[name], After: wanted[name]})
		}
	}
	return changes
}

// contents are the single values of an object by readable paths.
func contents(object any) (map[string]string, error) {
	values := map[string]string{}
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var plain map[string]any
	if err := json.Unmarshal(text, &plain); err != nil || plain == nil {
		return values, err
	}
	for _, name := range []string{"apiVersion", "kind", "metadata", "status"} {
		delete(plain, name)
	}
	if spec, ok := plain["spec"].(map[string]any); ok {
		plain = spec
	}
	flatten("", plain, values)
	return values, nil
}

// apart stands between the names of things in a path, such as
// "ml.g5.2xlarge · nvidia.com/gpu · nominalQuota": names may have dots.
const apart = " · "

// flatten writes every single value with its path. What has a name goes by it
// rather than by its place in a list, and lists of texts are one value.
func flatten(path string, value any, into map[string]string) {
	switch v := value.(type) {
	case nil:
	case map[string]any:
		for name, inner := range v {
			flatten(join(path, name), inner, into)
		}
	case []any:
		flattenList(path, v, into)
	default:
		into[path] = fmt.Sprint(v)
	}
}

func flattenList(path string, list []any, into map[string]string) {
	var names []string
	for i, inner := range list {
		object, ok := inner.(map[string]any)
		if !ok {
			names = append(names, fmt.Sprint(inner))
			continue
		}
		name, named := object["name"].(string)
		if !named { // such as the one resource group of a queue
			place := path
			if len(list) > 1 {
				place = fmt.Sprintf("%s[%d]", path, i)
			}
			flatten(place, inner, into)
			continue
		}
		names = append(names, name)
		for field, inner := range object {
			if field != "name" {
				flatten(within(path, name)+apart+field, inner, into)
			}
		}
	}
	if len(names) > 0 { // in their order, which may matter
		into[path] = strings.Join(names, ", ")
	}
}

// within is the path of something that has a name: the names around it lead
// there, and the lists that they stand in need not be told.
func within(path, name string) string {
	around := strings.Split(path, apart)
	if around = around[:len(around)-1]; len(around) == 0 {
		return name
	}
	return strings.Join(append(around, name), apart)
}

func join(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}
