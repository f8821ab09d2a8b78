package views

// ImportPage is the page that imports objects of HyperPod or Kuota from text. Each
// object has a button that opens its form.
type ImportPage struct {
	Chrome
	Action, CancelURL string
	InPlace           bool   // whether the page is the response to a POST
	Failure           string // why the import failed as a whole; empty for none
	Resumed           bool   // whether the text was kept while the user signed in again
	Text              TextField
	Objects           []ImportedObject
	NotImported       []string // parts that belong to no object
}

// ImportedObject is one object of the text.
type ImportedObject struct {
	Index       int    // value of the button "pick"
	Kind        string // "Compute allocation" or "Cluster policy"
	Name        string
	Note        string // the effect of opening it, or why it cannot be opened
	CanOpen     bool
	NotImported []string
}

// Managed is shown instead of the form of an object that Flux or Argo CD manages.
type Managed struct {
	Chrome
	UpLabel, UpURL string
	Sentence       string // the tool that manages it, and where to change it
	Refused        bool   // whether a change was rejected
	Text           string // the saved or typed object as YAML
	Typed          bool   // whether Text is the typed object
	NotImported    []string
}
