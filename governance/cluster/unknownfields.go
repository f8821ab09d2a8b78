package cluster

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// After a rollback the CRDs have fields that this console does not know. An update of
// the Go type would remove them, so updates send the object as the API server returned
// it, with what changed:
//
//	live ── decode ─▶ before ── change ─▶ after
//	  └────────────── withChanges ──────────┘─▶ update

// newUnstructured returns an empty object of the kind of object.
func newUnstructured(object client.Object) (*unstructured.Unstructured, error) {
	kind, err := apiutil.GVKForObject(object, Scheme)
	if err != nil {
		return nil, err
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(kind)
	return live, nil
}

// decode sets into to the fields of from that its type has.
func decode(from *unstructured.Unstructured, into client.Object) error {
	reflect.ValueOf(into).Elem().SetZero()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, into); err != nil {
		return fmt.Errorf("decode %s %s: %w", from.GetKind(), from.GetName(), err)
	}
	into.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // as after a read of the type
	return nil
}

// updated returns live with what differs between before, which was decoded from it,
// and after.
func updated(live *unstructured.Unstructured, before, after client.Object) (*unstructured.Unstructured, error) {
	was, err := fieldsOf(before)
	if err != nil {
		return nil, err
	}
	is, err := fieldsOf(after)
	if err != nil {
		return nil, err
	}
	merged, _ := withChanges(live.Object, was, is).(map[string]any)
	return (&unstructured.Unstructured{Object: merged}).DeepCopy(), nil
}

// fieldsOf returns the fields of an object as they are in JSON.
func fieldsOf(object client.Object) (fields map[string]any, err error) {
	text, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	return fields, err
}

// withChanges returns live with what differs between before and after, which lack the
// fields that their type does not have. It keeps those fields of live, also in the
// items of lists that are the same by identity. It does not change its arguments.
func withChanges(live, before, after any) any {
	if reflect.DeepEqual(before, after) {
		return live
	}
	switch after := after.(type) {
	case map[string]any:
		is, ok := live.(map[string]any)
		was, known := before.(map[string]any)
		if !ok || !known && before != nil {
			return after
		}
		merged := maps.Clone(is)
		for key := range was {
			if _, stays := after[key]; !stays {
				delete(merged, key)
			}
		}
		for key, value := range after {
			// Empty structs of a type are in its JSON, and not in the live object.
			if _, exists := is[key]; exists || !reflect.DeepEqual(was[key], value) {
				merged[key] = withChanges(is[key], was[key], value)
			}
		}
		return merged
	case []any:
		is, _ := live.([]any)
		was, _ := before.([]any)
		if len(is) != len(was) {
			return after
		}
		merged := slices.Clone(after)
		for i, item := range after {
			if at := slices.IndexFunc(was, func(other any) bool { return sameItem(other, item) }); at >= 0 {
				merged[i] = withChanges(is[at], was[at], item)
			}
		}
		return merged
	}
	return after
}

// identity are the fields that identify the items of lists in Kuota's resources.
var identity = []string{"kind", "name", "instanceType", "pool"}

// sameItem reports whether two items of a list are versions of one item.
func sameItem(a, b any) bool {
	one, isMap := a.(map[string]any)
	other, areMaps := b.(map[string]any)
	if !isMap || !areMaps {
		return reflect.DeepEqual(a, b)
	}
	identified := false
	for _, field := range identity {
		if one[field] != other[field] {
			return false
		}
		identified = identified || one[field] != nil
	}
	return identified
}
