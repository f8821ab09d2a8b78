package listing

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"kuota.dev/kuota/views"
)

// filterPrefix begins the names of inputs with the filters of a list.
const filterPrefix = "filter-"

// ManyForm returns the form of the selected rows of a list, with the filters of the list. what
// are its rows, such as "tasks".
func (a Address) ManyForm(action, what string) *views.ManyForm {
	form := &views.ManyForm{Action: action, Label: "Selected " + what, All: "All " + what + " of this list, on every page", Fields: []views.HiddenField{{Name: "back", Value: a.With()}}}
	for _, name := range slices.Sorted(maps.Keys(a.Values)) {
		for _, value := range a.Values[name] {
			form.Fields = append(form.Fields, views.HiddenField{Name: filterPrefix + name, Value: value})
		}
	}
	return form
}

// Filters returns the filters of the list that a ManyForm was sent from.
func Filters(form url.Values) url.Values {
	filters := url.Values{}
	for name, list := range form {
		if filter, ok := strings.CutPrefix(name, filterPrefix); ok {
			filters[filter] = list
		}
	}
	return filters
}

// mostExcluded is how many rows that an action cannot be done to a review names.
const mostExcluded = 5

// LeftOut describes the rows that an action cannot be done to, each with why: count is their
// number in words.
func LeftOut(count string, excluded []string) []string {
	if len(excluded) == 0 {
		return nil
	}
	return append([]string{"Left out, because this cannot be done to them: " + count + "."}, excluded[:min(len(excluded), mostExcluded)]...)
}

// Back returns the list at path that a ManyForm was sent from, and the input that keeps its
// address; path and none without it.
func Back(form url.Values, path string) (address string, fields []views.HiddenField) {
	if back := form.Get("back"); strings.HasPrefix(back, path+"?") {
		return back, []views.HiddenField{{Name: "back", Value: back}}
	}
	return path, nil
}
