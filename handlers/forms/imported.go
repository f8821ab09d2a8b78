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

// TextOrFile returns the text that was sent, pasted or as a file.
func TextOrFile(values url.Values) (text, problem string) {
	text, problem = textOrFile(values, "text", "file")
	if text == "" {
		problem = "Paste a text, or choose a file."
	}
	return text, problem
}

// Script returns the script that was sent in the input script, or in the file input
// script-file; empty for none. Lines end with \n: browsers send \r\n, with which neither
// shells nor the kernel can read a script. It begins with its first line that is not empty.
func Script(values url.Values) (script, problem string) {
	script, problem = textOrFile(values, "script", "script-file")
	script = strings.TrimPrefix(script, "\ufeff")
	script = strings.TrimLeft(strings.ReplaceAll(script, "\r\n", "\n"), "\n")
	if strings.TrimSpace(script) == "" {
		script = ""
	}
	return script, problem
}

func textOrFile(values url.Values, textInput, fileInput string) (text, problem string) {
	text, file := values.Get(textInput), values.Get(fileInput)
	switch {
	case text != "" && file != "":
		return text, "Give either text or a file: both were sent."
	case file != "":
		return file, ""
	}
	return text, ""
}
