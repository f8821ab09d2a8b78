package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// column is a column of a table: the value at a path of a row.
type column struct {
	head string
	path string // of fields, separated by dots
	show func(value any) string
}

// table prints rows.
func table(out io.Writer, columns []column, rows []any) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	heads := make([]string, len(columns))
	for i, c := range columns {
		heads[i] = c.head
	}
	fmt.Fprintln(w, strings.Join(heads, "\t"))
	for _, row := range rows {
		cells := make([]string, len(columns))
		for i, c := range columns {
			value := at(row, c.path)
			switch {
			case value == nil:
				cells[i] = "-"
			case c.show != nil:
				cells[i] = c.show(value)
			default:
				cells[i] = clean(fmt.Sprint(value))
			}
		}
		fmt.Fprintln(w, strings.TrimRight(strings.Join(cells, "\t"), " "))
	}
	return w.Flush()
}

// at returns the value at a path; nil for none.
func at(value any, path string) any {
	if path == "" {
		return value
	}
	for field := range strings.SplitSeq(path, ".") {
		object, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = object[field]
	}
	if value == "" {
		return nil
	}
	return value
}

// clean returns a text without what a terminal would obey: names and reasons come from users.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case unicode.IsControl(r) || unicode.In(r, unicode.Cf):
			return -1
		}
		return r
	}, text)
}

// Clean returns a text of several lines without what a terminal would obey.
func Clean(text string) string { return cleanLines(text) }

// cleanLines is clean for a text of several lines.
func cleanLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = clean(line)
	}
	return strings.Join(lines, "\n")
}

// span shows seconds as hours, minutes and seconds, such as 2h05m.
func span(value any) string {
	number, _ := value.(json.Number)
	seconds, err := number.Float64()
	if err != nil {
		return clean(fmt.Sprint(value))
	}
	d := time.Duration(seconds) * time.Second
	switch {
	case d >= time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	case d >= time.Minute:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%ds", d/time.Second)
}

// hours shows seconds as hours with two decimals.
func hours(value any) string {
	number, _ := value.(json.Number)
	seconds, err := number.Float64()
	if err != nil {
		return clean(fmt.Sprint(value))
	}
	return fmt.Sprintf("%.2f", seconds/3600)
}

// amounts shows a map of amounts, such as "8 nvidia.com/gpu".
func amounts(value any) string {
	object, _ := value.(map[string]any)
	var parts []string
	for _, name := range sortedKeys(object) {
		parts = append(parts, fmt.Sprintf("%v %s", object[name], clean(name)))
	}
	return strings.Join(parts, ", ")
}

// joined shows a list of texts.
func joined(value any) string {
	list, _ := value.([]any)
	var parts []string
	for _, one := range list {
		parts = append(parts, clean(fmt.Sprint(one)))
	}
	return strings.Join(parts, "; ")
}

// done shows how many completions a task has of those that it will have.
func done(value any) string {
	if value == nil {
		return "-"
	}
	return fmt.Sprintf("%v/%v", at(value, "done"), at(value, "of"))
}

// yaml prints a value as YAML.
func (o *options) yaml(value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	var node yaml.Node
	if err := yaml.Unmarshal(text, &node); err != nil {
		return err
	}
	plain(&node)
	encoder := yaml.NewEncoder(o.out)
	encoder.SetIndent(2)
	defer encoder.Close()
	return encoder.Encode(&node)
}

// plain makes a document that was read from JSON look as YAML.
func plain(n *yaml.Node) {
	n.Style = 0
	for _, below := range n.Content {
		plain(below)
	}
}
