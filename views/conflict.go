package views

// Conflict is the response to a save when another user saved first, or deleted the
// object. It compares both versions and keeps the form in hidden inputs.
type Conflict struct {
	Chrome
	What      string // that was saved, such as "this allocation"
	By        string // the other user; empty if unknown
	Deleted   bool   // whether the object was deleted meanwhile
	Action    string
	UpURL     string
	UpLabel   string
	TheirsURL string        // discards what was typed
	InPlace   bool          // whether the page is the response to a POST
	Fields    []HiddenField // the typed values, with the current version
	Theirs    []HiddenField // the same with what was saved where both differ; empty to discard what was typed
	Lines     []ValueChange // what differs: saved now, and typed
}
