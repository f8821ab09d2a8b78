package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"regexp"
	"strconv"

	"kuota.dev/kuota/governance"
)

// builder builds the nodes of one text and enforces the bounds.
type builder struct {
	nodes    int
	problems governance.FieldErrors
}

// errBounds is the error for a text beyond maxDepth or maxNodes.
var errBounds = errors.New("it is nested too deeply, or has too many values")

func (b *builder) node(depth int) error {
	if b.nodes++; b.nodes > maxNodes || depth > maxDepth {
		return errBounds
	}
	return nil
}

// set adds a field. The last of several with the same name is used.
func (b *builder) set(object *Node, seen map[string]int, name string, value *Node, path string) {
	if at, ok := seen[name]; ok {
		b.problems.Addf(path, "%s is listed twice; the first was ignored", Quote(name))
		object.Fields[at].Node = value
		return
	}
	seen[name] = len(object.Fields)
	object.Fields = append(object.Fields, Field{name, value})
}

// readJSON parses a sequence of JSON values. If a top-level list is truncated, it
// returns the complete items.
func readJSON(text []byte) ([]*Node, governance.FieldErrors) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var b builder
	var documents []*Node
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		var value *Node
		if err == nil {
			value, err = b.json(decoder, token, 0, "")
		}
		if err == nil {
			documents = append(documents, value)
			continue
		}
		if value != nil && value.Kind == List { // the complete items
			documents = append(documents, value)
		}
		documents = flatten(documents)
		b.problems.Addf(lineOf(text, decoder.InputOffset()), "not valid JSON from here: %s. %s", reason(err), importedBefore(len(documents)))
		return documents, b.problems
	}
	return flatten(documents), b.problems
}

func importedBefore(documents int) string {
	switch documents {
	case 0:
		return "Nothing was imported"
	case 1:
		return "1 object before it was imported; the rest was not"
	}
	return fmt.Sprintf("%d objects before it were imported; the rest was not", documents)
}

// reason returns the message of a JSON error for the page.
func reason(err error) string {
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "unexpected end"
	case errors.As(err, &syntax):
		return syntax.Error()
	}
	return err.Error()
}

// lineOf returns the path "line n" of an offset.
func lineOf(text []byte, offset int64) string {
	return fmt.Sprintf("line %d", 1+bytes.Count(text[:min(int(offset), len(text))], []byte("\n")))
}

// json parses the value that begins with token. It returns a truncated list along
// with the error.
func (b *builder) json(decoder *json.Decoder, token json.Token, depth int, path string) (*Node, error) {
	if err := b.node(depth); err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case bool:
		return &Node{Kind: Bool, Text: fmt.Sprint(t)}, nil
	case json.Number:
		return &Node{Kind: Number, Text: t.String()}, nil
	case string:
		return &Node{Kind: Text, Text: t}, nil
	case nil:
		return &Node{}, nil
	case json.Delim:
		if t == '[' {
			return b.list(decoder, depth, path)
		}
		return b.object(decoder, depth, path)
	}
	return nil, fmt.Errorf("%v is not a value", token)
}

func (b *builder) list(decoder *json.Decoder, depth int, path string) (*Node, error) {
	list := &Node{Kind: List}
	for {
		token, err := decoder.Token()
		if token == json.Delim(']') {
			return list, nil
		}
		var item *Node
		if err == nil {
			item, err = b.json(decoder, token, depth+1, Index(path, len(list.Items)))
		}
		if err != nil {
			return list, err
		}
		list.Items = append(list.Items, item)
	}
}

func (b *builder) object(decoder *json.Decoder, depth int, path string) (*Node, error) {
	object, seen := &Node{Kind: Object}, map[string]int{}
	for {
		token, err := decoder.Token()
		if token == json.Delim('}') {
			return object, nil
		}
		name, ok := token.(string)
		if err == nil && !ok {
			err = fmt.Errorf("%v is not a name", token)
		}
		var value *Node
		if err == nil {
			token, err = decoder.Token()
		}
		if err == nil {
			value, err = b.json(decoder, token, depth+1, Child(path, cut(name)))
		}
		if err != nil {
			return nil, err
		}
		b.set(object, seen, name, value, path)
	}
}

// decimal matches a number of JSON or YAML. Its bounds limit the cost of
// arithmetic.
var decimal = regexp.MustCompile(`^-?[0-9]{1,30}(\.[0-9]{0,30})?([eE][+-]?[0-9]{1,2})?$`)

// ParseRat returns the exact value of a number. ok is false if text is no number,
// or a very long or large one.
func ParseRat(text string) (r *big.Rat, ok bool) {
	if !decimal.MatchString(text) {
		return nil, false
	}
	return new(big.Rat).SetString(text)
}

// ParseInt returns the value of a whole number, which may be written as 10.0.
func ParseInt(text string) (n int64, ok bool) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, true
	}
	r, ok := ParseRat(text)
	if !ok || !r.IsInt() || !r.Num().IsInt64() {
		return 0, false
	}
	return r.Num().Int64(), true
}
