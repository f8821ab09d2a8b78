package views

// ValueChange is one value before and after; "–" for none.
type ValueChange struct{ Name, Before, After string }

// ObjectLine is one object of Kubernetes or Kueue that changes.
type ObjectLine struct {
	ID      string // unique on the page
	Tone    string // of the tag
	Action  string // "made", "changed" or "removed"
	Created bool   // whether saving creates it
	Name    string // kind and name
	Fields  []ValueChange
}
