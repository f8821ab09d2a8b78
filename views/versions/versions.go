package versions

import "kuota.dev/kuota/views"

// HistoryPage is the page of all recorded versions.
type HistoryPage struct {
	views.Chrome
	UpURL, UpLabel string
	Lead           string
	History        views.History
}

// VersionPage compares one version with the one before.
type VersionPage struct {
	views.Chrome
	UpURL, UpLabel string
	Lead           string
	Line           views.HistoryLine
	Changes        []views.ValueChange
	ChangesNote    string // shown if there are no changes
	YAML           []views.YAMLLine
	YAMLNote       string
	RestoreURL     string // the form with this version; empty without permission, and for the newest
	OlderURL       string // empty for none
	NewerURL       string // empty for none
}
