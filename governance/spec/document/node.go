package document

import (
	"fmt"
	"strings"
)

// Kind is the type of a Node.
type Kind int

// The kinds of Node.
const (
	Null Kind = iota
	Bool
	Number
	Text
	List
	Object
	Invalid // unsupported YAML, which was reported
)

// words are the kinds in messages.
var words = map[Kind]string{Null: "nothing", Bool: "true or false", Number: "a number", Text: "text", List: "a list", Object: "an object"}

// Node is one parsed value. The text of a number is unchanged.
type Node struct {
	Kind   Kind
	Text   string // of Bool, Number and Text
	Items  []*Node
	Fields []Field
	// Untyped reports that the notation does not distinguish strings from numbers
	// and booleans, as in a command line. It can be decoded as a string too.
	Untyped bool
}

// Field is one field of an object. Names are unique.
type Field struct {
	Name string
	Node *Node
}

// Get returns the field with that name; nil if there is none.
func (n *Node) Get(name string) *Node {
	if n == nil {
		return nil
	}
	for _, f := range n.Fields {
		if f.Name == name {
			return f.Node
		}
	}
	return nil
}

// Has reports whether the object has any of these fields.
func (n *Node) Has(names ...string) bool {
	for _, name := range names {
		if n.Get(name) != nil {
			return true
		}
	}
	return false
}

// Child returns the path of a field of the object at path. A path may have a
// prefix that names the document, such as "object 2: ".
func Child(path, field string) string {
	if path == "" || field == "" || strings.HasSuffix(path, " ") {
		return path + field
	}
	return path + "." + field
}

// Index returns the path of an item of the list at path.
func Index(path string, index int) string { return fmt.Sprintf("%s[%d]", path, index) }

// Quote returns an imported name or value for a message: quoted, and truncated to
// 60 characters.
func Quote(text string) string { return fmt.Sprintf("%q", cut(text)) }

func cut(text string) string {
	const maxLength = 60
	runes := 0
	for i := range text {
		if runes++; runes > maxLength {
			return text[:i] + "…"
		}
	}
	return text
}
