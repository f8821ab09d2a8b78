package forms

import (
	"maps"
	"net/url"
	"slices"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/views"
)

func HiddenFields(values url.Values) (fields []views.HiddenField) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		for _, value := range values[name] {
			fields = append(fields, views.HiddenField{Name: name, Value: value})
		}
	}
	return fields
}

func OrDefault(text *string, value string) {
	if *text == "" {
		*text = value
	}
}

// Problems collects what is wrong.
type Problems []governance.FieldError

func (t *Problems) Add(path, problem string) {
	if problem != "" {
		*t = append(*t, governance.FieldError{Path: path, Message: problem})
	}
}

// ConflictTries is how often something is tried while only the status of an
// allocation changes in between.
const ConflictTries = 3
