package document

import (
	"bytes"
	"unicode/utf8"

	"kuota.dev/kuota/governance"
)

// The bounds of a text: its size, its nesting and its number of values.
const (
	MaxBytes = 1 << 20
	maxDepth = 24
	maxNodes = 50_000
)

// Read parses a text with any number of JSON or YAML documents. The items of a
// top-level list are returned as documents. A syntax error is reported and ends
// the reading; the documents before it are returned.
func Read(text []byte) (documents []*Node, problems governance.FieldErrors) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	trimmed := bytes.TrimSpace(text)
	switch {
	case len(text) > MaxBytes:
		problems.Addf("", "the text is longer than 1 MiB, so nothing was imported. Import fewer objects at a time")
	case len(trimmed) == 0:
	case !utf8.Valid(text):
		problems.Addf("", "it is not UTF-8 text, so nothing was imported")
	case trimmed[0] == '{' || trimmed[0] == '[':
		if documents, problems = readJSON(text); len(documents) == 0 {
			// YAML allows more than JSON, such as comments.
			if others, problems := readYAML(text); len(others) > 0 {
				return others, problems
			}
		}
	default:
		documents, problems = readYAML(text)
	}
	if len(documents) == 0 && len(problems) == 0 {
		problems.Addf("", "it is empty")
	}
	return documents, problems
}

// flatten replaces top-level lists by their items.
func flatten(documents []*Node) []*Node {
	var all []*Node
	for _, d := range documents {
		if d.Kind == List {
			all = append(all, d.Items...)
		} else {
			all = append(all, d)
		}
	}
	return all
}
