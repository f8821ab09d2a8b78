package views

// TaskActions is what somebody may do to a task, and what they lack for the
// rest.
type TaskActions struct {
	Buttons []ActionButton
	Missing string // a quiet line; empty where nothing is
}

// ActionButton leads to the page that asks before it is done.
type ActionButton struct {
	Label, URL string
	Danger     bool
}

// ActionPage asks whether to do something, and says what it does.
type ActionPage struct {
	Chrome
	Lead           string
	UpLabel, UpURL string
	Action         string // where the form goes
	Effects        []string
	Obstacle       string         // why it cannot be done; then there is no form
	Alternatives   []ActionButton // that lead on in the place of it
	Failure        string         // why it was not done just now
	Fields         []HiddenField

	Legend      string // of the choices
	Choices     []ActionChoice
	ChoiceError string // what is wrong with the choice; empty for nothing

	Type    string       // what to type, as a label, where Confirm is there
	Confirm *TextField   // "confirm"
	Reason  *ReasonField // "reason"; nil where none is asked for
	InPlace bool         // whether the page answers a POST
	Submit  string
	Danger  bool
}

// ActionChoice is one of several, by the name "choice".
type ActionChoice struct {
	Value, Label, Text string
	Checked            bool
}
