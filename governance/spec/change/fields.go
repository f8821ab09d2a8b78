package change

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Fields returns the fields that differ between two objects in their JSON form:
// those of the spec where there is one, else all except metadata and status.
// They are sorted by path. Either object may be nil.
func Fields(before, after any) ([]Field, error) {
	old, err := leaves(before)
	if err != nil {
		return nil, err
	}
	updated, err := leaves(after)
	if err != nil {
		return nil, err
	}
	return Between(old, updated), nil
}

// Between returns the differences of two maps of values by path, sorted by path.
func Between(before, after map[string]string) []Field {
	all := maps.Clone(before)
	maps.Copy(all, after)
	var changes []Field
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if before[path] != after[path] {
			changes = append(changes, Field{Path: path, Before: before[path], After: after[path]})
		}
	}
	return changes
}

// Metadata returns those of the desired labels and annotations whose value in
// the live object differs, sorted by name.
func Metadata(live client.Object, desired map[string]string) []Field {
	current := map[string]string{}
	maps.Copy(current, live.GetLabels())
	maps.Copy(current, live.GetAnnotations())
	maps.DeleteFunc(current, func(name, _ string) bool {
		_, wanted := desired[name]
		return !wanted
	})
	return Between(current, desired)
}

// leaves returns the scalar values of an object by readable path.
func leaves(object any) (map[string]string, error) {
	values := map[string]string{}
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil || fields == nil {
		return values, err
	}
	for _, name := range []string{"apiVersion", "kind", "metadata", "status"} {
		delete(fields, name)
	}
	if spec, ok := fields["spec"].(map[string]any); ok {
		fields = spec
	}
	flatten("", fields, values)
	return values, nil
}

// separator joins the names in a path, such as
// "ml.g5.2xlarge · nvidia.com/gpu · nominalQuota". It is not a dot, because
// names may contain dots.
const separator = " · "

// flatten adds every scalar below value to values. Objects in a list are
// addressed by their name, if they have one, and a list of scalars is one value.
func flatten(path string, value any, values map[string]string) {
	switch v := value.(type) {
	case nil:
	case map[string]any:
		for name, inner := range v {
			flatten(join(path, name), inner, values)
		}
	case []any:
		flattenList(path, v, values)
	default:
		values[path] = fmt.Sprint(v)
	}
}

func flattenList(path string, list []any, values map[string]string) {
	var names []string
	for i, inner := range list {
		object, ok := inner.(map[string]any)
		if !ok {
			names = append(names, fmt.Sprint(inner))
			continue
		}
		name, named := object["name"].(string)
		if !named { // such as the only resource group of a ClusterQueue
			element := path
			if len(list) > 1 {
				element = fmt.Sprintf("%s[%d]", path, i)
			}
			flatten(element, inner, values)
			continue
		}
		names = append(names, name)
		for field, inner := range object {
			if field != "name" {
				flatten(elementPath(path, name)+separator+field, inner, values)
			}
		}
	}
	if len(names) > 0 { // in list order, which can have a meaning
		values[path] = strings.Join(names, ", ")
	}
}

// elementPath returns the path of a named element of the list at path: the names
// of the enclosing elements and its own, without the fields between them.
func elementPath(path, name string) string {
	enclosing := strings.Split(path, separator)
	if enclosing = enclosing[:len(enclosing)-1]; len(enclosing) == 0 {
		return name
	}
	return strings.Join(append(enclosing, name), separator)
}

func join(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}

// quantityFields are the fields of ClusterQueues that are quantities, which differ
// in their notation: 1000m is 1.
var quantityFields = []string{"nominalQuota", "borrowingLimit", "lendingLimit", "weight"}

// clusterQueueFields are the fields of a ClusterQueue that Kuota corrects although want
// does not set them.
var clusterQueueFields = []string{"cohortName", "fairSharing.weight", "preemption.borrowWithinCohort.maxPriorityThreshold"}

// defaultWeight is the weight of a ClusterQueue that sets none.
const defaultWeight = "1"

// Applied returns the fields of the spec of an existing object that applying
// want would change. Fields that want does not set would stay, except within
// lists, which are replaced. Quota, a cohort, a weight and a priority threshold of a
// ClusterQueue that want does not contain count as changed.
func Applied(live client.Object, want any) ([]Field, error) {
	all, err := Fields(live, want)
	if err != nil {
		return nil, err
	}
	var changed []Field
	_, isQueue := live.(*kueue.ClusterQueue)
	for _, field := range all {
		if isQueue && field.After == "" && slices.Contains(clusterQueueFields, field.Path) {
			if field.Path == "fairSharing.weight" && field.Before == defaultWeight {
				continue
			}
			changed = append(changed, field)
			continue
		}
		inList := strings.Contains(field.Path, separator) || strings.HasPrefix(field.Path, "resourceGroups")
		if field.After == "" && !inList || equalQuantities(field) {
			continue
		}
		changed = append(changed, field)
	}
	return changed, nil
}

func equalQuantities(field Field) bool {
	for _, name := range quantityFields {
		if !strings.HasSuffix(field.Path, name) {
			continue
		}
		before, err := resource.ParseQuantity(field.Before)
		after, err2 := resource.ParseQuantity(field.After)
		return err == nil && err2 == nil && before.Cmp(after) == 0
	}
	return false
}

// Actions of an Object.
const (
	Created = "created"
	Changed = "changed"
	Removed = "removed"
)

// Object is one Kubernetes object that a save would create, change or remove.
type Object struct {
	Kind, Name string
	Action     string // Created, Changed or Removed
	Fields     []Field
}

// Field is one value before and after; empty where there is none.
type Field struct{ Path, Before, After string }
