package reconcile

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// settled tells whether an object is as it should be already. Kueue writes the
// status of its queues many times a minute, and each time the controller looks:
// as long as nobody changed what is wanted, nothing needs to be sent.
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

// plain is an object as it is sent, without kind and version, which objects
// from the cache do not carry.
func toFields(object runtime.ApplyConfiguration) (map[string]any, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	fields := map[string]any{}
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	delete(fields, "kind")
	delete(fields, "apiVersion")
	return fields, nil
}

// covers tells whether have has every field of want with its value. Lists must
// be the same from end to end: Kueue's and Kubernetes' are atomic.
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

// empty tells whether a value is one that is left out when it is written.
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
