package views

// History lists the last versions of an object, newest first.
type History struct {
	Note        string // why the list is empty; empty otherwise
	Lines       []HistoryLine
	ActivityURL string // who did what with the object; empty for none
	AllURL      string // page of all versions; empty if these are all
}

// HistoryLine is one version.
type HistoryLine struct {
	Number  string
	URL     string // its page
	When    string // RFC 3339
	Who     string
	WhoNote string // a remark, such as that this is the name of a program; empty for none
	Reason  string // empty for none
	Changes string // summary of the changes
	Missing string // a sentence if earlier changes were not recorded; empty otherwise
}

// YAMLLine is one line of a diff.
type YAMLLine struct {
	Text           string
	Added, Removed bool
}

// Restored is the notice of a form with the values of an older version.
type Restored struct {
	Origin string // hidden input restores
	Notice string
}

// ReasonField is the input for the reason of a change.
type ReasonField struct {
	Value string
	Hint  string
}
