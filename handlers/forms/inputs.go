package forms

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/views"
)

// Inputs maps the fields of a resource to the inputs of its form, in the order of
// the page.
type Inputs []Input

// Input maps one field, or the rows of one list.
type Input struct {
	Path  string // of the field, such as spec.fairShareWeight
	ID    string // of the element; empty where only Rows is set
	Label string // in the error summary
	Rows  *Rows  // the inputs of one element of the list at Path
}

// Rows maps the fields of one element of a list. The inputs of element 2 have the
// ids "<ID>-2" and "<ID>-2-<RowField.ID>".
type Rows struct {
	ID, Label string
	Fields    map[string]RowField // by path below the element
	Default   RowField            // for all other paths
}

// RowField is the end of the id and of the label of an input; zero for the row.
type RowField struct{ ID, Label string }

var rowPath = regexp.MustCompile(`^([^\[]+)\[([0-9]+)\]\.?(.*)$`)

// SplitRowPath splits a path such as spec.quota[2].memory; ok is false for a path
// that is not below an element of a list.
func SplitRowPath(path string) (list string, row int, field string, ok bool) {
	match := rowPath.FindStringSubmatch(path)
	if match == nil {
		return "", 0, "", false
	}
	row, err := strconv.Atoi(match[2])
	return match[1], row, match[3], err == nil
}

// Find returns the input of the field at path; id is empty if the form has none.
func (in Inputs) Find(path string) (id, label string) {
	id, label, _ = in.find(path)
	return id, label
}

func (in Inputs) find(path string) (id, label string, position int) {
	list, row, field, isRow := SplitRowPath(path)
	for i, input := range in {
		switch {
		case isRow && input.Rows != nil && input.Path == list:
			id, label = input.Rows.find(row, field)
			return id, label, i
		case input.ID != "" && (input.Path == path || isRow && input.Path == list): // a list in one input
			return input.ID, input.Label, i
		}
	}
	return "", path, -1
}

func (r *Rows) find(row int, path string) (id, label string) {
	field, ok := r.Fields[path]
	if end := strings.IndexAny(path, ".["); !ok && end >= 0 {
		field, ok = r.Fields[path[:end]]
	}
	if !ok {
		field = r.Default
	}
	id, label = r.ID+"-"+strconv.Itoa(row), r.Label+" "+strconv.Itoa(row+1)
	if field.ID != "" {
		id += "-" + field.ID
	}
	if field.Label != "" {
		label += ", " + field.Label
	}
	return id, label
}

// ByField returns the first error of each input, by its id.
func (in Inputs) ByField(wrong []governance.FieldError, sentence func(string) string) map[string]string {
	errs := map[string]string{}
	for _, w := range wrong {
		if id, _ := in.Find(w.Path); errs[id] == "" {
			errs[id] = sentence(w.Message)
		}
	}
	return errs
}

// Summary returns all errors without duplicates, in the order of the page. Errors
// of no input that is shown come first, without a link.
func (in Inputs) Summary(wrong []governance.FieldError, shown func(id string) bool, sentence func(string) string) []views.Message {
	type entry struct {
		views.Message
		position int
	}
	var entries []entry
	for _, w := range wrong {
		id, label, position := in.find(w.Path)
		if !shown(id) {
			id, position = "", -1
		}
		one := entry{views.Message{Field: id, Label: label, Text: sentence(w.Message)}, position}
		if !slices.Contains(entries, one) {
			entries = append(entries, one)
		}
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(a.position, b.position) })
	var all []views.Message
	for _, one := range entries {
		all = append(all, one.Message)
	}
	return all
}

var specPaths = regexp.MustCompile(`\b(metadata|spec)\.[a-zA-Z0-9.\[\]]+: `)

// Relabel replaces the paths in the message of a condition by the labels of their
// inputs, and removes the paths of the inputs in omit.
func (in Inputs) Relabel(message string, omit ...string) string {
	return specPaths.ReplaceAllStringFunc(message, func(path string) string {
		id, label := in.Find(strings.TrimSuffix(path, ": "))
		if slices.Contains(omit, id) {
			return ""
		}
		return label + ": "
	})
}

// Renumber replaces the rows in paths of a spec, which has no empty rows, by the
// rows of the form. positions are the results of Filled, by the path of the list.
func Renumber(wrong []governance.FieldError, positions map[string][]int) []governance.FieldError {
	renumbered := slices.Clone(wrong)
	for i := range renumbered {
		list, row, _, ok := SplitRowPath(renumbered[i].Path)
		if rows := positions[list]; ok && row < len(rows) {
			_, rest, _ := strings.Cut(renumbered[i].Path, "]")
			renumbered[i].Path = list + "[" + strconv.Itoa(rows[row]) + "]" + rest
		}
	}
	return renumbered
}

// CheckText returns what is wrong with a line of text; empty for nothing.
func CheckText(text string, most int) string {
	switch n := utf8.RuneCountInString(text); {
	case n > most:
		return fmt.Sprintf("has %s characters; at most %s fit", format.Thousands(int64(n)), format.Thousands(int64(most)))
	case !utf8.ValidString(text) || strings.ContainsFunc(text, isControl):
		return "has line breaks or other control characters; remove them"
	}
	return ""
}

// isControl reports whether a character is invisible and changes how others are
// shown: control characters, line separators and directional formatting. The schema
// rejects the same characters in display names.
func isControl(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' || r == '\ufeff'
}

// ParseLines calls parse with the words of each line that has any, and returns all problems
// with their lines; empty for none.
func ParseLines(text string, parse func(fields []string) (problem string)) string {
	var problems []string
	n := 0
	for line := range strings.SplitSeq(text, "\n") {
		n++
		if fields := strings.Fields(line); len(fields) > 0 {
			if problem := parse(fields); problem != "" {
				problems = append(problems, fmt.Sprintf("line %d: %s", n, problem))
			}
		}
	}
	return strings.Join(problems, "; ")
}
