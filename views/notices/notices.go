package notices

import (
	"kuota.dev/kuota/views"
	"kuota.dev/kuota/views/ui"
)

// NoticesPage is the form of what a person asked for.
type NoticesPage struct {
	views.Chrome
	Action    string
	Saved     string // a sentence; empty for nothing
	Failure   string // why there is no form; empty for nothing
	Lost      string // a sentence about receivers that are not available any more
	Problem   string // why it was not saved; empty for nothing
	Events    []ui.ChoiceProps
	Receivers []ui.ChoiceProps
	Until     string // RFC 3339; empty without notices
	PolicyURL string // where the reader can allow receivers; empty if they cannot
}

func (p NoticesPage) summary() ui.SummaryProps {
	s := ui.SummaryProps{ID: "form-errors"}
	if p.Problem != "" {
		s.Lines = []ui.SummaryLine{{Field: "to", Label: "How", Text: p.Problem}}
	}
	return s
}
