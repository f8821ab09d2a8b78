package document

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Decimal is a field that holds a number exactly as it is written.
type Decimal string

// Kept is a field that may stand there, and is not looked at.
type Opaque struct{}

// Fill reads an object into a struct, by the names that JSON has for its
// fields. What does not fit is left out and told, each with its path below
// path.
func (n *Node) Decode(target any, path string) Report {
	f := filler{Report{failed: map[string]bool{}}}
	f.fill(n, reflect.ValueOf(target).Elem(), path)
	return f.Report
}

// Report is what became of an object that was read.
type Report struct {
	Opaque   []string // the fields that are there of type Kept
	Problems Problems

	failed map[string]bool // paths of values that were left out
}

// News keeps what is wrong with values that were read: one that was left out
// is told of already.
func (r Report) Unreported(wrong Problems) Problems {
	return slices.DeleteFunc(wrong, func(w governance.FieldError) bool {
		for path := range r.failed {
			if rest, below := strings.CutPrefix(w.Path, path); below && (rest == "" || rest[0] == '.' || rest[0] == '[') {
				return true
			}
		}
		return false
	})
}

type filler struct{ Report }

// fill sets a value; false when it could not.
func (f *filler) fill(n *Node, v reflect.Value, path string) bool {
	ok := f.set(n, v, path)
	if !ok {
		f.failed[path] = true
	}
	return ok
}

func (f *filler) set(n *Node, v reflect.Value, path string) bool {
	switch {
	case n.Kind == Null:
		return true
	case n.Kind == Invalid:
		return false
	}
	if read, special := specials[v.Type()]; special {
		value, problem := read(n)
		if problem != "" {
			f.Problems.Add(path, "%s; ignored", problem)
			return false
		}
		v.Set(reflect.ValueOf(value))
		return true
	}
	switch v.Kind() {
	case reflect.Pointer:
		fresh := reflect.New(v.Type().Elem())
		if !f.fill(n, fresh.Elem(), path) {
			return false
		}
		v.Set(fresh)
		return true
	case reflect.Struct:
		if n.Kind == Object {
			f.object(n, v, path)
			return true
		}
		return f.mismatch(n, Object, path)
	case reflect.Slice:
		if n.Kind != List {
			return f.mismatch(n, List, path)
		}
		// One that cannot be read keeps its place, so that all keep their number.
		all := reflect.MakeSlice(v.Type(), len(n.Items), len(n.Items))
		for i, item := range n.Items {
			f.fill(item, all.Index(i), Index(path, i))
		}
		v.Set(all)
		return true
	case reflect.Map:
		return f.texts(n, v, path)
	}
	return f.scalar(n, v, path)
}

func (f *filler) scalar(n *Node, v reflect.Value, path string) bool {
	loose := n.Untyped && (n.Kind == Number || n.Kind == Bool)
	switch v.Kind() {
	case reflect.String:
		if n.Kind != Text && !loose {
			return f.mismatch(n, Text, path)
		}
		v.SetString(n.Text)
	case reflect.Bool:
		if n.Kind != Bool {
			return f.mismatch(n, Bool, path)
		}
		v.SetBool(n.Text == "true" || n.Text == "True" || n.Text == "TRUE")
	case reflect.Int32, reflect.Int64:
		if n.Kind != Number {
			return f.mismatch(n, Number, path)
		}
		whole, ok := ParseInt(n.Text)
		if !ok || v.OverflowInt(whole) {
			f.Problems.Add(path, "%s is not a valid whole number for this field; ignored", Quote(n.Text))
			return false
		}
		v.SetInt(whole)
	default:
		f.Problems.Add(path, "is not supported; ignored")
		return false
	}
	return true
}

func (f *filler) mismatch(n *Node, want Kind, path string) bool {
	f.Problems.Add(path, "is %s, expected %s; ignored", words[n.Kind], words[want])
	return false
}

// texts fills a map of texts, such as labels.
func (f *filler) texts(n *Node, v reflect.Value, path string) bool {
	if n.Kind != Object {
		return f.mismatch(n, Object, path)
	}
	all := reflect.MakeMap(v.Type())
	for _, field := range n.Fields {
		text := reflect.New(v.Type().Elem()).Elem()
		if f.fill(field.Node, text, path+"["+Quote(field.Name)+"]") {
			all.SetMapIndex(reflect.ValueOf(field.Name), text)
		}
	}
	v.Set(all)
	return true
}

func (f *filler) object(n *Node, v reflect.Value, path string) {
	fields := map[string]reflect.Value{}
	named(v, fields)
	var unknown []string
	for _, field := range n.Fields {
		target, ok := fields[field.Name]
		switch {
		case !ok:
			unknown = append(unknown, field.Name)
		case target.Type() == reflect.TypeFor[Opaque]():
			f.Opaque = append(f.Opaque, Child(path, field.Name))
		default:
			f.fill(field.Node, target, Child(path, field.Name))
		}
	}
	f.unknown(unknown, fields, path)
}

// named collects the fields of a struct, those of structs inline among them.
func named(v reflect.Value, fields map[string]reflect.Value) {
	for i := range v.NumField() {
		name, options, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		switch {
		case name != "" && name != "-":
			fields[name] = v.Field(i)
		case strings.Contains(options, "inline"):
			named(v.Field(i), fields)
		}
	}
}

// shownNames is how many unknown names of one object a sentence holds.
const shownNames = 10

// unknown tells in one sentence of the fields that an object does not have.
func (f *filler) unknown(names []string, fields map[string]reflect.Value, path string) {
	if len(names) == 0 {
		return
	}
	var told []string
	for _, name := range names[:min(len(names), shownNames)] {
		text := Quote(name)
		for known := range fields {
			if strings.EqualFold(known, name) {
				text += " (did you mean " + known + ")"
			}
		}
		told = append(told, text)
	}
	if more := len(names) - shownNames; more > 0 {
		told = append(told, fmt.Sprintf("%d more", more))
	}
	if len(names) == 1 {
		f.Problems.Add(path, "unknown field %s; ignored", told[0])
		return
	}
	f.Problems.Add(path, "unknown fields %s; ignored", strings.Join(told, ", "))
}

// specials are types that are read from a text or number of their own.
var specials = map[reflect.Type]func(*Node) (value any, problem string){
	reflect.TypeFor[Decimal](): func(n *Node) (any, string) {
		if n.Kind != Number {
			return nil, "is " + words[n.Kind] + ", expected a number"
		}
		if _, ok := ParseRat(n.Text); !ok {
			return nil, Quote(n.Text) + " is not a valid number for this field"
		}
		return Decimal(n.Text), ""
	},
	reflect.TypeFor[resource.Quantity](): func(n *Node) (any, string) {
		// Exponents beyond this take minutes to compute with.
		const longest = 40
		if n.Kind != Text && n.Kind != Number || len(n.Text) > longest || hugeExponent(n.Text) {
			return nil, "must be a quantity, such as 48 or 512Gi"
		}
		q, err := resource.ParseQuantity(n.Text)
		if err != nil {
			return nil, "must be a quantity, such as 48 or 512Gi"
		}
		return q, ""
	},
	reflect.TypeFor[metav1.Duration](): func(n *Node) (any, string) {
		var d metav1.Duration
		if n.Kind != Text || d.UnmarshalJSON([]byte(`"`+strings.ReplaceAll(n.Text, `"`, "")+`"`)) != nil {
			return nil, "must be a duration, such as 5m"
		}
		return d, ""
	},
}

func hugeExponent(text string) bool {
	_, exponent, found := strings.Cut(strings.ToLower(text), "e")
	return found && len(strings.TrimLeft(exponent, "+-")) > 2
}
