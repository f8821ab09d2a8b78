package schema

import (
	"fmt"
	"slices"
	"sort"

	"kuota.dev/kuota/governance"

	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime"
)

// whole are lists of items, and an object, of which no part is left out alone, since the
// rest would mean something else: a share without its members is open to the whole team.
var whole = []string{"spec.shares", "spec.windows", "spec.budget", "spec.prices.hourly", "spec.alerts.rules", "spec.alerts.receivers"}

// Prune removes from the spec of an object what the CRD rejects, and returns what that
// was, with the paths that it had, from "spec". What is missing stays missing, and is
// returned too.
func Prune[Spec any](k Kind, spec *Spec) governance.FieldErrors {
	values, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec)
	if err != nil { // API types always convert
		panic(fmt.Sprintf("schema: decode %T: %v", spec, err))
	}
	compact(values)
	p := pruning{compiled: k.compiled(), root: map[string]any{"metadata": map[string]any{"name": k.name}, "spec": values}}
	eachItem(values, func(item map[string]any, i int) { item[position] = int64(i) })
	for again := true; again; {
		again, p.gone = false, nil
		for _, e := range p.validate(p.withDefaults(p.root), nil) {
			again = p.remove(e) || again
		}
		p.root["spec"] = compact(p.root["spec"])
	}
	if len(p.removed) == 0 {
		return nil
	}
	values, _ = p.root["spec"].(map[string]any)
	eachItem(values, func(item map[string]any, _ int) { delete(item, position) })
	var fresh Spec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(values, &fresh); err != nil {
		panic(fmt.Sprintf("schema: encode %T: %v", spec, err))
	}
	*spec = fresh
	return p.removed
}

// position is the key of the index that an item of a list had at first.
const position = "\x00index"

// eachItem visits the objects in all lists of a value.
func eachItem(value any, do func(item map[string]any, i int)) {
	switch value := value.(type) {
	case map[string]any:
		for _, field := range value {
			eachItem(field, do)
		}
	case []any:
		for i, item := range value {
			if item, ok := item.(map[string]any); ok {
				do(item, i)
			}
			eachItem(item, do)
		}
	}
}

// compact returns a value without the items and fields that are nil, and without lists
// that are empty then.
func compact(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, field := range value {
			if field = compact(field); field == nil {
				delete(value, name)
			} else {
				value[name] = field
			}
		}
	case []any:
		kept := slices.DeleteFunc(value, func(item any) bool { return compact(item) == nil })
		if len(kept) == 0 {
			return nil
		}
		return kept
	}
	return value
}

// pruning removes values of an object.
type pruning struct {
	*compiled
	root    map[string]any
	gone    [][]any // paths of this round, whose values are nil or were cut off
	removed governance.FieldErrors
}

// remove removes the value of an error, or what does not exist without it. It returns false
// if there is nothing to remove.
func (p *pruning) remove(e governance.FieldError) bool {
	path := steps(e.Path)
	for _, gone := range p.gone {
		if len(gone) <= len(path) && slices.Equal(gone, path[:len(gone)]) {
			return false
		}
	}
	report := governance.FieldError{Path: p.original(path), Message: e.Message + "; ignored"}
	for _, one := range whole {
		list := steps(one)
		if len(path) <= len(list) || !slices.Equal(list, path[:len(list)]) {
			continue
		}
		if _, item := path[len(list)].(int); item {
			list = path[:len(list)+1]
		}
		path = list
	}
	if list, ok := p.value(path).([]any); ok && len(list) > 0 {
		if s := p.at(path); s.ValueValidation != nil && s.ValueValidation.MaxItems != nil && int64(len(list)) > *s.ValueValidation.MaxItems {
			clear(list[*s.ValueValidation.MaxItems:])
			report.Message = e.Message + "; the others are ignored"
			return p.done(path, report)
		}
		if slices.Contains(list, nil) {
			return true // the rule is tried again without them
		}
		if i := p.firstWrong(path, list); i > 0 { // otherwise there must be no list
			path = append(slices.Clone(path), i)
			report.Path = p.original(path)
		}
	}
	for ; len(path) > 1; path = path[:len(path)-1] {
		last := path[len(path)-1]
		switch parent := p.value(path[:len(path)-1]).(type) {
		case []any:
			if i, ok := last.(int); ok && i < len(parent) {
				parent[i] = nil
				return p.done(path, report)
			}
		case map[string]any:
			name, _ := last.(string)
			if s := p.at(path[:len(path)-1]); s == nil || parent[name] != nil && !required(s, name) {
				parent[name] = nil
				return p.done(path, report)
			}
		}
	}
	report.Message = e.Message // the spec as a whole stays
	if !slices.Contains(p.removed, report) {
		p.removed = append(p.removed, report)
	}
	return false
}

func (p *pruning) done(path []any, report governance.FieldError) bool {
	p.gone = append(p.gone, path)
	p.removed = append(p.removed, report)
	return true
}

func required(s *structural.Structural, name string) bool {
	return s.ValueValidation != nil && slices.Contains(s.ValueValidation.Required, name)
}

// firstWrong returns the first item of a list with which a rule about the list is broken.
func (p *pruning) firstWrong(path []any, list []any) int {
	parent, _ := p.value(path[:len(path)-1]).(map[string]any)
	name, _ := path[len(path)-1].(string)
	defer func() { parent[name] = list }()
	at := text(path)
	return sort.Search(len(list)-1, func(i int) bool {
		parent[name] = list[:i+1]
		return slices.ContainsFunc(p.validate(p.withDefaults(p.root), nil), func(e governance.FieldError) bool { return e.Path == at })
	})
}

// value returns the value at a path; nil for none.
func (p *pruning) value(path []any) (at any) {
	at = p.root
	for _, step := range path {
		switch here := at.(type) {
		case map[string]any:
			name, _ := step.(string)
			at = here[name]
		case []any:
			i, ok := step.(int)
			if !ok || i >= len(here) {
				return nil
			}
			at = here[i]
		default:
			return nil
		}
	}
	return at
}

// original returns a path with the indexes that items had at first.
func (p *pruning) original(path []any) string {
	was := slices.Clone(path)
	for i := range path {
		if item, ok := p.value(path[:i+1]).(map[string]any); ok {
			if at, ok := item[position].(int64); ok {
				was[i] = int(at)
			}
		}
	}
	return text(was)
}
