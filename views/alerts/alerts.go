package alerts

import "kuota.dev/kuota/views"

// AlertsPage lists what fires, what was resolved, the rules and the silences.
type AlertsPage struct {
	views.Chrome
	Trouble    string // why something is missing; empty otherwise
	Notice     string // what the last form did; empty for nothing
	Action     string // address of the forms
	Firing     []AlertRow
	Resolved   []AlertRow
	Rules      []AlertRule
	Filters    []views.Filter // by department; empty without departments
	ClearURL   string         // the page without filters; empty if none is set
	Silences   []SilenceRow
	Form       *SilenceForm // nil for a reader who may not silence
	Receivers  []AlertReceiver
	Deliveries []DeliveryRow
	All        bool // the reader sees all teams
	CSVURL     string
	JSONURL    string
	PolicyURL  string // of the form of rules and receivers
	FiringNum  string // such as "3 alerts"
}

// AlertRow is one alert.
type AlertRow struct {
	ID       string // stable HTML id of the row
	Severity views.Status
	Title    string
	Summary  string
	Team     views.TaskLink // "–" without one
	Since    string         // RFC 3339
	Fired    string
	Resolved string // empty while it fires
	Silenced string // a sentence; empty if it is not
}

// AlertRule is a rule with its thresholds.
type AlertRule struct {
	ID       string
	Name     string // in the policy
	Title    string
	Meaning  string
	Severity views.Status
}

// SilenceRow is a silence that has not ended.
type SilenceRow struct {
	ID     string
	Rule   string
	Team   string
	Until  string // RFC 3339
	Actor  string
	Reason string
}

// SilenceForm is the form that silences alerts.
type SilenceForm struct {
	Filters []views.Filter // rule, team and duration
	Reason  string
	Wrong   string // what is invalid; empty for nothing
}

// AlertReceiver is a receiver of the cluster policy.
type AlertReceiver struct {
	Name, Type, Secret string
	To                 string // e-mail addresses
	Gets               string // which alerts and notices
	Untested           bool   // it gets only mail to people
}

// DeliveryRow is one message to a receiver.
type DeliveryRow struct {
	ID       string // stable HTML id of the row
	At       string // RFC 3339
	Receiver string
	Contents string // such as "3 alerts"
	Outcome  views.Status
	Attempts string
	Error    string // of the last attempt
}
