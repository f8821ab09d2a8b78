package document

import (
	"bytes"
	"errors"
	"io"
	"strings"

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
