package tasks

import "kuota.dev/kuota/views"

// LogPage is the page of the log of one container. Its lines and its note are live.
type LogPage struct {
	views.Chrome
	Task                 views.TaskLink
	Action               string         // of the form
	UID                  string         // selects one of several tasks of a name; empty for the newest
	Filters              []views.Filter // pod and container; empty without a pod
	Container, Contains  string
	Previous, Timestamps bool
	Lines                LogLines
	Note                 string // why there is no log, or no more of it; empty for nothing
	DownloadURL          string // empty without a log
	External             views.ExternalLink
}

// LogLines are lines of a log: the fragment with the id log-lines.
type LogLines struct {
	Append  bool   // to those that are on the page
	Empty   string // is shown while there is no line
	Skipped int    // lines before Lines that are not shown
	Lines   []LogLine
}

// LogLine is one line of a log.
type LogLine struct {
	At   string // empty without timestamps
	Text string
	Cut  bool // the line is longer
}
