package listing

import (
	"fmt"
	"slices"
	"strings"

	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/views"
)

// Filter is a filter with one choice.
type Filter struct {
	views.Filter
	chosen string
}

// NewFilter returns a filter with the choice all, which selects all, and those of values; all
// is "" if there is none.
func NewFilter(id, label, all, chosen string, values ...string) *Filter {
	f := &Filter{Filter: views.Filter{ID: id, Label: label}, chosen: chosen}
	if all != "" {
		f.Options = []views.Option{{Label: all}}
	}
	for _, value := range values {
		f.Add(value)
	}
	return f
}

// Filter returns the filter of the value called id.
func (a Address) Filter(id, label, all string, values ...string) views.Filter {
	return NewFilter(id, label, all, a.Values.Get(id), values...).Done()
}

func (c *Filter) Add(value string, label ...string) {
	o := views.Option{Value: value, Label: value, Selected: value == c.chosen}
	if len(label) > 0 {
		o.Label = label[0]
	}
	c.Options = append(c.Options, o)
}

// Chosen returns the value of the choice, which an address may also name by its label; ""
// if it is none of the choices.
func (c *Filter) Chosen() string {
	for i := range c.Options {
		if o := &c.Options[i]; c.chosen != "" && (o.Value == c.chosen || strings.EqualFold(o.Label, c.chosen)) {
			c.chosen, o.Selected = o.Value, true
		}
	}
	if slices.ContainsFunc(c.Options, func(o views.Option) bool { return o.Value == c.chosen }) {
		return c.chosen
	}
	return ""
}

// Done returns the filter. A chosen value stays in the form, even if no item has it
// now. If there are choices, a sentence says that it is none of them.
func (c *Filter) Done() views.Filter {
	if c.chosen == "" || slices.ContainsFunc(c.Options, func(o views.Option) bool { return o.Value == c.chosen }) {
		return c.Filter
	}
	if slices.ContainsFunc(c.Options, func(o views.Option) bool { return o.Value != "" }) {
		c.Wrong = c.unknown()
	}
	c.Add(c.chosen)
	return c.Filter
}

// namedChoices is how many choices a sentence names.
const namedChoices = 8

// unknown returns a sentence about a chosen value that is none of the choices.
func (c *Filter) unknown() string {
	var names []string
	for _, o := range c.Options[:min(len(c.Options), namedChoices)] {
		names = append(names, o.Label)
	}
	if more := len(c.Options) - namedChoices; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("%q is none of the choices, which are %s.", format.Truncated(c.chosen), strings.Join(names, ", "))
}
