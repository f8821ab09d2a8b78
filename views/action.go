package views

import "kuota.dev/kuota/views/ui"

// ActionButton is a link to the page that confirms an action.
type ActionButton struct {
	Label, URL string
	ID         string // keeps it the same button when a live page gets or loses others; may be empty
	Danger     bool
}

// ActionPage is the page that confirms an action and shows its effects.
type ActionPage struct {
	Chrome
	Lead           string
	UpLabel, UpURL string
	Action         string // address of the form
	Effects        []string
	Obstacle       string         // why the action is not possible; then there is no form
	Alternatives   []ActionButton // other actions
	Failure        string         // why the last attempt failed
	Fields         []HiddenField
	Preview        Preview

	Sizes       *SizeFields  // nil for none
	Number      *NumberField // nil for none
	Menu        *MenuField   // nil for none
	Legend      string       // name of the choices
	Choices     []ActionChoice
	ChoiceError string // why the choice is invalid; empty for none

	Type    string       // label of Confirm
	Confirm *TextField   // "confirm"
	Reason  *ReasonField // "reason"; nil for none
	InPlace bool         // whether the page is the response to a POST
	// Back is what the form that leads back posts, with what was typed; nil where a link does.
	Back   []HiddenField
	Submit string
	Danger bool

	RowsTitle string
	Rows      []ActionRow // what the action is about, one by one; nil for one object
}

// NumberField is an input for a number; its ID is its name too.
type NumberField struct {
	TextField
	ID, Label, Hint string
}

// MenuField is an input for one of several values; its ID is its name too.
type MenuField struct {
	SelectField
	ID, Label string
}

// ActionRow is one of many objects that an action is about.
type ActionRow struct {
	Name   string
	Status Status
	Lines  []string
}

// ActionChoice is one value of the input "choice".
type ActionChoice struct {
	Value, Label, Text string
	Checked            bool
}

func (p ActionPage) kind() ui.ButtonKind {
	if p.Danger {
		return ui.ButtonDanger
	}
	return ui.ButtonPrimary
}
