package forms

import (
	"net/url"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/views"
)

// maxImportedLines bounds what a form keeps of an import.
const maxImportedLines = 250

// Imported is what a form keeps of the import that filled it in, until it is
// saved.
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

// Fields are the hidden inputs that read reads.
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

// View is the notice of a form about what, which may be there already.
func (i *Imported) View(what string, there bool) views.Imported {
	view := views.Imported{Yes: i.Yes, NotImported: i.NotTaken}
	if there {
		view.Replaces = what
	}
	return view
}

// Lines are sentences with their places.
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
