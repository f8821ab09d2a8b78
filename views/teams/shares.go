package teams

import "kuota.dev/kuota/views"

// Shares is how Kueue shares idle compute between teams, and what it does next.
type Shares struct {
	Title, Note string
	Rows        []ShareRow // empty without fair sharing
	State       string     // of the simulation: "computing", "verified" or "failed"
	At          string     // of the simulated cluster, RFC 3339; empty for none
	Next        []NextStart
	NoNext      string // why Next is empty
	Preempted   []NextPreemption
	Hint        string
}

// ShareRow is the share of a team, or of a Cohort above the teams that follow.
type ShareRow struct {
	Name, URL, Weight, Share, Waiting string // URL is empty for a Cohort
	Level                             int    // 0 below the root
	Next                              string // pools whose idle compute its task gets next, as a note; empty for none
}

// NextStart is what starts with more idle compute in a pool.
type NextStart struct {
	Pool, Text string
	Tasks      []views.AdmittedTaskLink
}

// NextPreemption is a task that is preempted for another.
type NextPreemption struct{ Of, For []views.AdmittedTaskLink }
