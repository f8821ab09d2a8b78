package document

import (
	"bytes"
	"unicode/utf8"
)

// The bounds of a text.
const (
	MaxBytes = 1 << 20
	maxDepth = 24
	maxNodes = 50_000
)

// Read reads a text with any number of JSON or YAML documents. The items of a
// list on top count as documents. What cannot be read is told, and ends the
// reading: what came before it is kept.
func Read(text []byte) (documents []*Node, wrong Problems) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	trimmed := bytes.TrimSpace(text)
	switch {
	case len(text) > MaxBytes:
		wrong.Add("", "the text is longer than 1 MiB, so nothing was imported. Import fewer objects at a time")
	case len(trimmed) == 0:
	case !utf8.Valid(text):
		wrong.Add("", "it is not UTF-8 text, so nothing was imported")
	case trimmed[0] == '{' || trimmed[0] == '[':
		if documents, wrong = readJSON(text); len(documents) == 0 {
			// What JSON does not allow, such as comments, YAML may.
			if others, wrongs := readYAML(text); len(others) > 0 {
				return others, wrongs
			}
		}
	default:
		documents, wrong = readYAML(text)
	}
	if len(documents) == 0 && len(wrong) == 0 {
		wrong.Add("", "it is empty")
	}
	return documents, wrong
}

// flat takes lists on top apart.
func flat(documents []*Node) []*Node {
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
