package listing

import (
	"slices"

	"kuota.dev/kuota/views"
)

// Filter is a filter with one choice.
type Filter struct {
	views.Filter
	chosen string
}

func NewFilter(id, label, all, chosen string) *Filter {
	return &Filter{Filter: views.Filter{ID: id, Label: label, Options: []views.Option{{Label: all}}}, chosen: chosen}
}

func (c *Filter) Add(value string, label ...string) {
	o := views.Option{Value: value, Label: value, Selected: value == c.chosen}
	if len(label) > 0 {
		o.Label = label[0]
	}
	c.Options = append(c.Options, o)
}

// Done returns the filter. A chosen value stays in the form, even if no item has it
// now.
func (c *Filter) Done() views.Filter {
	if c.chosen != "" && !slices.ContainsFunc(c.Options, func(o views.Option) bool { return o.Value == c.chosen }) {
		c.Add(c.chosen)
	}
	return c.Filter
}
