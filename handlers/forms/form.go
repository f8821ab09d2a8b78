package forms

import (
	"maps"
	"net/url"
	"slices"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/views"

	"github.com/labstack/echo/v4"
)

// Form is the state of a form beside its inputs. The forms of allocations and of
// the policy embed it.
type Form struct {
	Submitted bool              // a review or a save was tried: all errors are shown, also of empty inputs
	Resumed   bool              // the values come from before the reader signed in again
	Typed     bool              // the values come from a request rather than from the saved object
	Lost      bool              // the address has values that cannot be shown
	Tried     bool              // the address is the answer to a review or a save with invalid values
	Refused   *governance.Error // why the save failed whose answer the address is
	Imported  Imported

	Restores, Reason    string // version that filled in the form, and reason of the change
	Version, Generation string // resourceVersion and generation of the object when the form was opened; empty for a new object
}

// ReadForm reads the state that Form.Write writes, except Version and Generation,
// whose inputs have a name of their own in each form.
func ReadForm(values url.Values) Form {
	f := Form{
		Submitted: values.Get("submitted") == "true", Resumed: values.Get("resumed") == "true", Typed: true,
		Tried: values.Get(TriedField) == "true", Refused: RefusalOf(values),
		Restores: values.Get("restores"), Reason: ReasonText(values.Get("reason")),
	}
	f.Imported.Read(values)
	return f
}

// Write adds the state to the values of the form.
func (f *Form) Write(values url.Values) {
	values.Set("restores", f.Restores)
	values.Set("reason", f.Reason)
	WriteChecks(values, map[string]*bool{"submitted": &f.Submitted, "resumed": &f.Resumed})
	for _, field := range f.Imported.Fields() {
		values.Add(field.Name, field.Value)
	}
}

// View returns what the script of the form's page needs.
func (f *Form) View(c echo.Context) views.TypedForm {
	return views.TypedForm{Edited: f.Typed || f.Imported.Yes || f.Restores != "", InPlace: InPlace(c), Lost: f.Lost}
}

// WriteTexts sets the value of each text input, by name.
func WriteTexts(values url.Values, texts map[string]*string) {
	for name, text := range texts {
		values.Set(name, *text)
	}
}

// ReadChecks reads checkboxes by name.
func ReadChecks(values url.Values, checks map[string]*bool) {
	for name, checked := range checks {
		*checked = values.Get(name) == "true"
	}
}

// WriteChecks sets the value of each checkbox that is checked, by name.
func WriteChecks(values url.Values, checks map[string]*bool) {
	for name, checked := range checks {
		if *checked {
			values.Set(name, "true")
		}
	}
}

// HiddenFields returns values as hidden inputs, ordered by name.
func HiddenFields(values url.Values) (fields []views.HiddenField) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		for _, value := range values[name] {
			fields = append(fields, views.HiddenField{Name: name, Value: value})
		}
	}
	return fields
}

// OrDefault sets an empty text to value.
func OrDefault(text *string, value string) {
	if *text == "" {
		*text = value
	}
}
