package reconcile

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// upToDate reports whether an object has all desired fields and no extra ones.
// Kueue updates the status of its queues many times a minute, and each update
// triggers a reconciliation. Nothing is sent while the desired fields are
// unchanged.
func upToDate(object client.Object, want map[string]any) bool {
	if object.GetName() == "" {
		return false
	}
	if extraFieldsPatch(object, want) != "" {
		return false
	}
	have, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	return err == nil && covers(have, want)
}

// toFields returns an apply configuration as JSON fields, without kind and
// version, which objects from the cache do not have.
func toFields(object runtime.ApplyConfiguration) (map[string]any, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	delete(fields, "kind")
	delete(fields, "apiVersion")
	return fields, err
}

// covers reports whether have contains every field of want with its value.
// Lists must be equal: those of Kueue and Kubernetes are atomic.
func covers(have, want any) bool {
	fields, ok := want.(map[string]any)
	if !ok {
		return reflect.DeepEqual(have, want) || have == nil && isEmpty(want)
	}
	present, _ := have.(map[string]any)
	for name, value := range fields {
		if !covers(present[name], value) {
			return false
		}
	}
	return true
}

// isEmpty reports whether a value is omitted when it is encoded.
func isEmpty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	}
	return false
}
