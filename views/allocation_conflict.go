package views

// AllocationConflict is the response to a save when another user saved first. It
// compares both versions and keeps the form in hidden inputs.
type AllocationConflict struct {
	Chrome
	Action    string
	CancelURL string
	UpLabel   string
	InPlace   bool   // whether the page is the response to a POST
	TheirsURL string // the form with the saved values
	Fields    []HiddenField
	By        string // the other user; empty if unknown
	Lines     []ConflictLine
}

// ConflictLine is one value of both versions; "–" for none.
type ConflictLine struct {
	Name, Theirs, Yours string
}

// Differs reports whether the versions differ.
func (l ConflictLine) Differs() bool { return l.Theirs != l.Yours }
