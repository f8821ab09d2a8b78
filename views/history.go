package views

// History are the last versions of something, the newest first.
type History struct {
	Note   string // why there is nothing to show; empty where there is
	Lines  []HistoryLine
	AllURL string // the page of all versions; empty where these are all
}

// HistoryLine is one version.
type HistoryLine struct {
	Number  string
	URL     string // its page
	When    string // RFC 3339
	Who     string
	WhoNote string // such as that it is only the name of a program; empty for none
	Reason  string // why, as whoever made it said; empty where nobody did
	Changes string // what changed, in short
	Missing string // that changes before it were not seen; empty where none are missing
}

// HistoryPage are all versions that are kept.
type HistoryPage struct {
	Chrome
	UpURL, UpLabel string
	Lead           string
	History        History
}

// VersionPage is one version, beside the one before.
type VersionPage struct {
	Chrome
	UpURL, UpLabel string
	Lead           string
	Line           HistoryLine
	Changes        []ValueChange
	ChangesNote    string // stands for the changes where there are none to show
	YAML           []YAMLLine
	YAMLNote       string
	RestoreURL     string // the form, filled in with this version; empty for those who may not, and for the newest
	OlderURL       string // empty for none
	NewerURL       string // empty for none
}

// YAMLLine is one line, marked where it is not in the other version.
type YAMLLine struct {
	Text           string
	Added, Removed bool
}

// Restored is what a form that opens with an older version says of itself.
type Restored struct {
	Origin string // hidden input restores
	Notice string
}

// ReasonField is why a change is made, asked before it is saved.
type ReasonField struct {
	Value string
	Hint  string
}
