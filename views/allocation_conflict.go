package views

// AllocationConflict is the answer to a save when somebody else saved first:
// both versions side by side. It keeps the whole form in hidden inputs.
type AllocationConflict struct {
	Chrome
	Action    string
	CancelURL string
	UpLabel   string
	InPlace   bool   // whether the page answers a POST
	TheirsURL string // the form with what is saved now
	Fields    []HiddenField
	By        string // who saved it, if that is known
	Lines     []ConflictLine
}

// ConflictLine is one value of both versions; "–" for none.
type ConflictLine struct {
	Name, Theirs, Yours string
}

// Differs tells whether the two versions say something else.
func (l ConflictLine) Differs() bool { return l.Theirs != l.Yours }
