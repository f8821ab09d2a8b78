package document

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Decimal is a field for a number, exactly as written.
type Decimal string

// Opaque is a field that is allowed, but not decoded.
type Opaque struct{}

// Decode decodes an object into the struct that target points to, by the json
// tags of its fields. It skips and reports what does not fit. path is the path of
// n, which the paths of all problems start with.
func (n *Node) Decode(target any, path string) Report {
	f := filler{Report{failed: map[string]bool{}}}
	f.fill(n, reflect.ValueOf(target).Elem(), path)
	return f.Report
}

// Report is the result of Decode.
type Report struct {
	Opaque   []string // paths of the fields of type Opaque
	Problems governance.FieldErrors

	failed map[string]bool // paths of skipped values
}

// Unreported returns the problems that are not about a skipped value, for which
// Decode already reported one.
func (r Report) Unreported(problems governance.FieldErrors) governance.FieldErrors {
	return slices.DeleteFunc(problems, func(p governance.FieldError) bool {
		for path := range r.failed {
			if rest, ok := strings.CutPrefix(p.Path, path); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
				return true
			}
		}
		return false
	})
}

type filler struct{ Report }

// fill decodes n into v. It returns false if n was skipped.
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
	if decode, ok := scalarTypes[v.Type()]; ok {
		value, problem := decode(n)
		if problem != "" {
			f.Problems.Addf(path, "%s; ignored", problem)
			return false
		}
		v.Set(reflect.ValueOf(value))
		return true
	}
	switch v.Kind() {
	case reflect.Pointer:
		decoded := reflect.New(v.Type().Elem())
		if !f.fill(n, decoded.Elem(), path) {
			return false
		}
		v.Set(decoded)
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
		// A skipped item stays as a zero value, so that the others keep their index.
		all := reflect.MakeSlice(v.Type(), len(n.Items), len(n.Items))
		for i, item := range n.Items {
			f.fill(item, all.Index(i), Index(path, i))
		}
		v.Set(all)
		return true
	case reflect.Map:
		return f.stringMap(n, v, path)
	}
	return f.scalar(n, v, path)
}

func (f *filler) scalar(n *Node, v reflect.Value, path string) bool {
	untyped := n.Untyped && (n.Kind == Number || n.Kind == Bool)
	switch v.Kind() {
	case reflect.String:
		if n.Kind != Text && !untyped {
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
			f.Problems.Addf(path, "%s is not a valid whole number for this field; ignored", Quote(n.Text))
			return false
		}
		v.SetInt(whole)
	default:
		f.Problems.Addf(path, "is not supported; ignored")
		return false
	}
	return true
}

func (f *filler) mismatch(n *Node, want Kind, path string) bool {
	f.Problems.Addf(path, "is %s, expected %s; ignored", words[n.Kind], words[want])
	return false
}

// stringMap decodes a map by strings, such as labels or a list of resources.
func (f *filler) stringMap(n *Node, v reflect.Value, path string) bool {
	if n.Kind != Object {
		return f.mismatch(n, Object, path)
	}
	all := reflect.MakeMap(v.Type())
	for _, field := range n.Fields {
		text := reflect.New(v.Type().Elem()).Elem()
		if f.fill(field.Node, text, path+"["+Quote(field.Name)+"]") {
			all.SetMapIndex(reflect.ValueOf(field.Name).Convert(v.Type().Key()), text)
		}
	}
	v.Set(all)
	return true
}

func (f *filler) object(n *Node, v reflect.Value, path string) {
	fields := map[string]reflect.Value{}
	collectFields(v, fields)
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

// collectFields adds the fields of a struct by name, including inlined structs.
func collectFields(v reflect.Value, fields map[string]reflect.Value) {
	for i := range v.NumField() {
		name, options, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		switch {
		case name != "" && name != "-":
			fields[name] = v.Field(i)
		case strings.Contains(options, "inline"):
			collectFields(v.Field(i), fields)
		}
	}
}

// maxShownNames bounds the unknown fields that one problem names.
const maxShownNames = 10

// unknown reports the unknown fields of an object as one problem.
func (f *filler) unknown(names []string, fields map[string]reflect.Value, path string) {
	if len(names) == 0 {
		return
	}
	var shown []string
	for _, name := range names[:min(len(names), maxShownNames)] {
		text := Quote(name)
		for known := range fields {
			if strings.EqualFold(known, name) {
				text += " (did you mean " + known + ")"
			}
		}
		shown = append(shown, text)
	}
	if more := len(names) - maxShownNames; more > 0 {
		shown = append(shown, fmt.Sprintf("%d more", more))
	}
	if len(names) == 1 {
		f.Problems.Addf(path, "unknown field %s; ignored", shown[0])
		return
	}
	f.Problems.Addf(path, "unknown fields %s; ignored", strings.Join(shown, ", "))
}

// scalarTypes decodes the types that have a notation of their own.
var scalarTypes = map[reflect.Type]func(*Node) (value any, problem string){
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
		// Parsing a quantity with a large exponent takes minutes.
		const maxLength = 40
		if n.Kind != Text && n.Kind != Number || len(n.Text) > maxLength || hugeExponent(n.Text) {
			return nil, "must be a quantity, such as 48 or 512Gi"
		}
		q, err := resource.ParseQuantity(n.Text)
		if err != nil {
			return nil, "must be a quantity, such as 48 or 512Gi"
		}
		return q, ""
	},
	reflect.TypeFor[intstr.IntOrString](): func(n *Node) (any, string) {
		if whole, ok := ParseInt(n.Text); n.Kind == Number && ok && whole == int64(int32(whole)) {
			return intstr.FromInt32(int32(whole)), ""
		}
		if n.Kind != Text {
			return nil, "must be a whole number or text"
		}
		return intstr.FromString(n.Text), ""
	},
	reflect.TypeFor[metav1.Time]():     fromText[metav1.Time]("must be a time, such as 2026-01-31T12:00:00Z"),
	reflect.TypeFor[metav1.Duration](): fromText[metav1.Duration]("must be a duration, such as 5m"),
}

// fromText decodes a type whose JSON is a text.
func fromText[V any](problem string) func(*Node) (any, string) {
	return func(n *Node) (any, string) {
		var value V
		if text, err := json.Marshal(n.Text); n.Kind != Text || err != nil || json.Unmarshal(text, &value) != nil {
			return nil, problem
		}
		return value, ""
	}
}

func hugeExponent(text string) bool {
	_, exponent, found := strings.Cut(strings.ToLower(text), "e")
	return found && len(strings.TrimLeft(exponent, "+-")) > 2
}
