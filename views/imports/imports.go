package imports

import "kuota.dev/kuota/views"

// ImportPage is the page that imports objects of HyperPod or Kuota from text. Each
// object has a button that opens its form.
type ImportPage struct {
	views.Chrome
	Action, CancelURL string
	InPlace           bool   // whether the page is the response to a POST
	Failure           string // why the import failed as a whole; empty for none
	Resumed           bool   // whether the text was kept while the user signed in again
	Text              views.TextField
	Objects           []ImportedObject
	NotImported       []string // parts that belong to no object
	Teams             int      // of the objects, that can be saved together
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
