package views

// ImportPage is the page that takes text with objects of HyperPod or of Kuota.
// It is one form: each object that was read has a button that opens it.
type ImportPage struct {
	Chrome
	Action, CancelURL string
	InPlace           bool   // whether the page answers a POST
	Failure           string // what stopped it as a whole; empty for none
	Resumed           bool   // whether it comes back after signing in again
	Text              TextField
	Objects           []ImportedObject
	NotImported       []string // what belongs to none of the objects
}

// ImportedObject is one object that was read.
type ImportedObject struct {
	Index       int    // what the button pick sends
	Kind        string // "Compute allocation" or "Cluster policy"
	Name        string
	Note        string // what opening it means here, or why it cannot be opened
	CanOpen     bool
	NotImported []string
}

// Managed is the page in place of a form for an object that Flux or Argo CD
// manages.
type Managed struct {
	Chrome
	UpLabel, UpURL string
	Sentence       string // who manages it, and where to change it
	Refused        bool   // whether a change was sent and not saved
	Text           string // the object as YAML, as it is or as it was typed
	Typed          bool   // whether Text is what was typed
	NotImported    []string
}
