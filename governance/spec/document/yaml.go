package document

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"kuota.dev/kuota/governance"

	yaml "go.yaml.in/yaml/v3"
)

// readYAML parses a stream of YAML documents.
func readYAML(text []byte) ([]*Node, governance.FieldErrors) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var b builder
	var documents []*Node
	for {
		var root yaml.Node
		err := decoder.Decode(&root)
		if errors.Is(err, io.EOF) {
			break
		}
		var value *Node
		if err == nil && len(root.Content) == 1 {
			value, err = b.yaml(root.Content[0], 0, "")
		}
		if err != nil {
			documents = flatten(documents)
			b.problems.Addf("", "not valid YAML: %s. %s", strings.TrimPrefix(err.Error(), "yaml: "), importedBefore(len(documents)))
			return documents, b.problems
		}
		if value != nil && value.Kind != Null { // else an empty document
			documents = append(documents, value)
		}
	}
	return flatten(documents), b.problems
}

// yaml converts a YAML node.
func (b *builder) yaml(from *yaml.Node, depth int, path string) (*Node, error) {
	if err := b.node(depth); err != nil {
		return nil, err
	}
	switch from.Kind {
	case yaml.ScalarNode:
		return &Node{Kind: scalarKind(from.ShortTag()), Text: from.Value}, nil
	case yaml.SequenceNode:
		list := &Node{Kind: List}
		for i, item := range from.Content {
			value, err := b.yaml(item, depth+1, Index(path, i))
			if err != nil {
				return nil, err
			}
			list.Items = append(list.Items, value)
		}
		return list, nil
	case yaml.MappingNode:
		object, seen := &Node{Kind: Object}, map[string]int{}
		for i := 0; i+1 < len(from.Content); i += 2 {
			name := from.Content[i]
			if name.Kind != yaml.ScalarNode {
				b.problems.Addf(path, "a key is not a string; ignored with its value")
				continue
			}
			value, err := b.yaml(from.Content[i+1], depth+1, Child(path, cut(name.Value)))
			if err != nil {
				return nil, err
			}
			b.set(object, seen, name.Value, value, path)
		}
		return object, nil
	}
	b.problems.Addf(path, "is an alias (*%s), which is not supported; write the value out", cut(from.Value))
	return &Node{Kind: Invalid}, nil
}

func scalarKind(tag string) Kind {
	switch tag {
	case "!!null":
		return Null
	case "!!bool":
		return Bool
	case "!!int", "!!float":
		return Number
	}
	return Text
}

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
