package document

import (
	"fmt"
	"strings"

	"kuota.dev/kuota/governance"
)

// Kind is what a Node holds.
type Kind int

// The kinds of Node.
const (
	Null Kind = iota
	Bool
	Number
	Text
	List
	Object
	Invalid // what stands there was told of already, and is passed over
)

// words are the kinds as sentences call them.
var words = map[Kind]string{Null: "nothing", Bool: "true or false", Number: "a number", Text: "text", List: "a list", Object: "an object"}

// Node is one value. Numbers are kept as they are written.
type Node struct {
	Kind   Kind
	Text   string // of Bool, Number and Text
	Items  []*Node
	Fields []Field
	// Loose says that the text around it does not tell numbers from words, as
	// in a command line: a name may look like a number.
	Untyped bool
}

// Field is one value of an object. No name stands twice.
type Field struct {
	Name string
	Node *Node
}

// Get is the field of that name; nil for none.
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

// Has tells whether the object has any of these fields.
func (n *Node) Has(names ...string) bool {
	for _, name := range names {
		if n.Get(name) != nil {
			return true
		}
	}
	return false
}

// Under is the path of a field, below the path of its object. A path may begin
// with which object it is about, such as "object 2: ".
func Child(path, field string) string {
	if path == "" || field == "" || strings.HasSuffix(path, " ") {
		return path + field
	}
	return path + "." + field
}

// Item is the path of one of a list.
func Index(path string, index int) string { return fmt.Sprintf("%s[%d]", path, index) }

// Wrongs collects sentences, each with its place.
type Problems []governance.FieldError

// Tell adds a sentence.
func (w *Problems) Add(path, format string, args ...any) {
	*w = append(*w, governance.FieldError{Path: path, Message: fmt.Sprintf(format, args...)})
}

// Short is a name or value of somebody else as a sentence can hold it.
func Quote(text string) string { return fmt.Sprintf("%q", cut(text)) }

func cut(text string) string {
	const longest = 60
	runes := 0
	for i := range text {
		if runes++; runes > longest {
			return text[:i] + "…"
		}
	}
	return text
}
