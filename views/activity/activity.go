package activity

import "kuota.dev/kuota/views"

// ActivityPage lists who did what, the latest first.
type ActivityPage struct {
	views.Chrome
	OneTeam   string   // whose activity it is; empty for several
	Trouble   string   // why there is no list; empty otherwise
	Action    string   // address of the filter form
	Text      string   // search text, in the name of the object
	Actor     string   // part of the names of persons; empty for all
	Actors    []string // persons of Rows, to choose from
	UID       string   // of the only object; empty for all
	Filters   []views.Filter
	From, To  string // range of days, such as 2026-11-22; empty: unbounded
	Wrong     string // an invalid day, as a sentence; empty for none
	ClearURL  string // the list without filters; empty if none is set
	Rows      []ActivityRow
	NewestURL string // the first page; empty on it
	OlderURL  string // the next page; empty on the last
	CSVURL    string
}

// ActivityRow is one action.
type ActivityRow struct {
	ID        string       // stable HTML id of the row
	At        string       // RFC 3339
	Actor     string       // user; empty if By is set
	By        string       // such as "Unknown"
	Address   string       // empty if unknown, or not for this reader
	Action    string       // such as "Stopped"
	Outcome   views.Status // with a label if it did not succeed
	Object    views.TaskLink
	Kind      string
	Team      string // "–" for none
	Namespace string
	Changes   []string
	More      []string // further changes, which are collapsed
	MoreLabel string   // how many they are
	Reason    string
	Error     string
}
