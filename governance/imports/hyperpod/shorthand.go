package hyperpod

import (
	"strings"

	"kuota.dev/kuota/governance/spec/document"
)

// shorthand parses the shorthand syntax of the AWS CLI: A=1,B={C=x},D=[{E=y}].
type shorthand struct {
	rest    string
	values  int
	invalid bool
}

// The bounds of a value in shorthand.
const (
	maxDepth  = 10
	maxValues = 5000
)

// fields parses name=value pairs, separated by commas, up to end.
func (s *shorthand) fields(depth int, end string) *document.Node {
	object := &document.Node{Kind: document.Object}
	for !s.invalid && !s.ends(end) {
		name, rest, ok := strings.Cut(s.rest, "=")
		name = strings.TrimSpace(name)
		if !ok || name == "" || strings.ContainsAny(name, ",[]{}") || object.Has(name) {
			s.invalid = true
			break
		}
		s.rest = rest
		object.Fields = append(object.Fields, document.Field{Name: name, Node: s.value(depth + 1)})
		s.comma(end)
	}
	return object
}

func (s *shorthand) value(depth int) *document.Node {
	s.rest = strings.TrimLeft(s.rest, " ")
	if s.values++; depth > maxDepth || s.values > maxValues {
		s.invalid = true
	}
	switch {
	case s.invalid:
		return &document.Node{}
	case s.consume("{"):
		return s.fields(depth, "}")
	case s.consume("["):
		list := &document.Node{Kind: document.List}
		for !s.invalid && !s.ends("]") {
			list.Items = append(list.Items, s.value(depth+1))
			s.comma("]")
		}
		return list
	}
	return s.scalar()
}

// scalar parses a word or a quoted string.
func (s *shorthand) scalar() *document.Node {
	if s.rest != "" && (s.rest[0] == '"' || s.rest[0] == '\'') {
		text, rest, ok := strings.Cut(s.rest[1:], s.rest[:1])
		s.rest, s.invalid = rest, !ok
		return &document.Node{Kind: document.Text, Text: text}
	}
	end := strings.IndexAny(s.rest, ",]}")
	if end < 0 {
		end = len(s.rest)
	}
	text := strings.TrimSpace(s.rest[:end])
	s.rest = s.rest[end:]
	kind := document.Text
	if _, number := document.ParseRat(text); number {
		kind = document.Number
	}
	return &document.Node{Kind: kind, Text: text, Untyped: true}
}

// comma consumes the separator between two values.
func (s *shorthand) comma(end string) {
	s.rest = strings.TrimLeft(s.rest, " \n\t\r")
	if !s.consume(",") && (end == "" && s.rest != "" || end != "" && !strings.HasPrefix(s.rest, end)) {
		s.invalid = true
	}
}

// ends reports whether the values end here, and consumes end.
func (s *shorthand) ends(end string) bool {
	s.rest = strings.TrimLeft(s.rest, " \n\t\r")
	if end == "" {
		return s.rest == ""
	}
	return s.consume(end)
}

func (s *shorthand) consume(sign string) bool {
	rest, ok := strings.CutPrefix(s.rest, sign)
	if ok {
		s.rest = rest
	}
	return ok
}
