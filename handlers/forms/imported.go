package forms

import (
	"net/url"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/views"
)

// maxImportedLines limits the notes of an import that a form keeps.
const maxImportedLines = 250

// Imported describes the import that filled in a form.
type Imported struct {
	Yes      bool
	NotTaken []string
}

func (i *Imported) Read(values url.Values) {
	i.Yes = values.Get("from-import") == "true"
	if lines := values["imported"]; i.Yes {
		i.NotTaken = lines[:min(len(lines), maxImportedLines)]
	}
}

// Fields returns the hidden inputs that Read reads.
func (i *Imported) Fields() (fields []views.HiddenField) {
	if !i.Yes {
		return nil
	}
	fields = append(fields, views.HiddenField{Name: "from-import", Value: "true"})
	for _, line := range i.NotTaken {
		fields = append(fields, views.HiddenField{Name: "imported", Value: line})
	}
	return fields
}

// View returns the notice of the form of what; exists reports that saving replaces
// it.
func (i *Imported) View(what string, exists bool) views.Imported {
	view := views.Imported{Yes: i.Yes, NotImported: i.NotTaken}
	if exists {
		view.Replaces = what
	}
	return view
}

// Lines returns field errors as sentences with their paths.
func Lines(wrong []governance.FieldError) (lines []string) {
	for _, w := range wrong {
		line := format.Sentence(w.Message)
		if w.Path != "" {
			line = w.Path + ": " + strings.TrimSuffix(w.Message, ".") + "."
		}
		lines = append(lines, line)
	}
	return lines
}
