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

// HistoryPage is the page of all recorded versions.
type HistoryPage struct {
	Chrome
	UpURL, UpLabel string
	Lead           string
	History        History
}

// VersionPage compares one version with the one before.
type VersionPage struct {
	Chrome
	UpURL, UpLabel string
	Lead           string
	Line           HistoryLine
	Changes        []ValueChange
	ChangesNote    string // shown if there are no changes
	YAML           []YAMLLine
	YAMLNote       string
	RestoreURL     string // the form with this version; empty without permission, and for the newest
	OlderURL       string // empty for none
	NewerURL       string // empty for none
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
