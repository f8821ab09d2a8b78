package handlers

import (
	"net/url"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/views"
)

// maxImportedLines bounds what a form keeps of an import.
const maxImportedLines = 250

// imported is what a form keeps of the import that filled it in, until it is
// saved.
type imported struct {
	yes      bool
	notTaken []string
}

func (i *imported) read(values url.Values) {
	i.yes = values.Get("from-import") == "true"
	if lines := values["imported"]; i.yes {
		i.notTaken = lines[:min(len(lines), maxImportedLines)]
	}
}

// fields are the hidden inputs that read reads.
func (i *imported) fields() (fields []views.HiddenField) {
	if !i.yes {
		return nil
	}
	fields = append(fields, views.HiddenField{Name: "from-import", Value: "true"})
	for _, line := range i.notTaken {
		fields = append(fields, views.HiddenField{Name: "imported", Value: line})
	}
	return fields
}

// view is the notice of a form about what, which may be there already.
func (i *imported) view(what string, there bool) views.Imported {
	view := views.Imported{Yes: i.yes, NotTaken: i.notTaken}
	if there {
		view.Replaces = what
	}
	return view
}

// lines are sentences with their places.
func lines(wrong []governance.FieldError) (lines []string) {
	for _, w := range wrong {
		line := sentence(w.Message)
		if w.Path != "" {
			line = w.Path + ": " + strings.TrimSuffix(w.Message, ".") + "."
		}
		lines = append(lines, line)
	}
	return lines
}
