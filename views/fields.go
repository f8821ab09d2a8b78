package views

// TextField is one text input as typed.
type TextField struct {
	Value string // as typed
	Error string // a sentence; empty for valid input
}

// AmountField is a number with a default.
type AmountField struct {
	TextField
	Default string // shown in an empty field and marked as default; empty for none
}

// SelectField is a select.
type SelectField struct {
	Options []Option
	Error   string
}

// Selected returns the value of the selected option; empty for none.
func (f SelectField) Selected() string {
	for _, option := range f.Options {
		if option.Selected {
			return option.Value
		}
	}
	return ""
}
