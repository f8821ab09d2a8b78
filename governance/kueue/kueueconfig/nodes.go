package kueueconfig

import (
	"maps"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// child returns the value of a key; nil if there is none.
func child(mapping *yaml.Node, key string) *yaml.Node {
	if mapping == nil || mapping.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

func scalar(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}

func isTrue(n *yaml.Node) bool {
	var b bool
	return n != nil && n.Decode(&b) == nil && b
}

// keyOrder is the order of keys in Kueue's examples; other keys follow.
var keyOrder = []string{"enable", "timeout", "recoveryTimeout", "blockAdmission", "requeuingStrategy",
	"timestamp", "backoffLimitCount", "backoffBaseSeconds", "backoffMaxSeconds", "preemptionStrategies",
	"usageHalfLifeTime", "usageSamplingInterval", "resourceWeights"}

// setKeys sets the keys of entry, and reports whether any value changed.
func setKeys(mapping *yaml.Node, entry map[string]any) (changed bool) {
	keys := slices.SortedFunc(maps.Keys(entry), func(a, b string) int {
		if c := slices.Index(keyOrder, a) - slices.Index(keyOrder, b); c != 0 {
			return c
		}
		return strings.Compare(a, b)
	})
	for _, key := range keys {
		changed = setKey(mapping, key, entry[key]) || changed
	}
	return changed
}

func setKey(mapping *yaml.Node, key string, value any) bool {
	current := child(mapping, key)
	if inner, ok := value.(map[string]any); ok {
		if current != nil && current.Kind == yaml.MappingNode {
			return setKeys(current, inner)
		}
		section := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		setKeys(section, inner)
		setNode(mapping, key, section)
		return true
	}
	if value == nil {
		return deleteKey(mapping, key)
	}
	if equalsNode(current, value) {
		return false
	}
	var n yaml.Node
	if d, ok := value.(metav1.Duration); ok {
		value = d.Duration.String()
	}
	if err := n.Encode(value); err != nil {
		return false // impossible: strings, numbers, booleans and lists of strings
	}
	if n.Kind == yaml.SequenceNode {
		n.Style = yaml.FlowStyle
	}
	setNode(mapping, key, &n)
	return true
}

// equalsNode compares by value: 300s equals 5m0s.
func equalsNode(n *yaml.Node, value any) bool {
	if n == nil {
		return false
	}
	if d, ok := value.(metav1.Duration); ok {
		current, err := duration(scalar(n))
		return err == nil && current == d
	}
	var current any
	return n.Decode(&current) == nil && current == value
}

// setNode sets a key, and keeps the comments of the old value.
func setNode(mapping *yaml.Node, key string, value *yaml.Node) {
	if old := child(mapping, key); old != nil {
		value.HeadComment, value.LineComment, value.FootComment = old.HeadComment, old.LineComment, old.FootComment
		*old = *value
		return
	}
	if mapping.Style&yaml.FlowStyle != 0 && len(mapping.Content) == 0 {
		mapping.Style &^= yaml.FlowStyle // {} grows into lines
	}
	mapping.Content = append(mapping.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, value)
}

// deleteKey deletes a key. It returns false if the key is absent or null, which
// Kueue treats alike.
func deleteKey(mapping *yaml.Node, key string) bool {
	n := child(mapping, key)
	if n == nil || n.Tag == "!!null" {
		return false
	}
	i := slices.Index(mapping.Content, n)
	mapping.Content = slices.Delete(mapping.Content, i-1, i+1)
	return true
}
