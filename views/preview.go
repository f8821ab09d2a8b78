package views

import (
	"slices"
	"strings"
)

// Preview is the live part of a page with what a change does to tasks and teams.
type Preview struct {
	Variants []PreviewVariant // one for each choice on the page
}

// PreviewState is how far a preview is.
type PreviewState string

// The states of a preview.
const (
	PreviewComputing  PreviewState = "computing"
	PreviewReady      PreviewState = "ready"
	PreviewUnverified PreviewState = "unverified"
)

// PreviewVariant is the preview of one change.
type PreviewVariant struct {
	Key   string // unique on the page, such as "hold"
	Title string
	State PreviewState

	Once    bool     // whether the page is the answer to a POST, so that no link leads to it
	Failure string   // why it is not verified
	Time    string   // of the snapshot, in RFC 3339
	Notes   []string // sentences about what the simulation leaves out
	Summary string   // the number of tasks with each effect

	Tasks       []PreviewTask
	Teams       []PreviewTeam
	MoreTeams   int // that are not in Teams
	Objects     []PreviewObject
	MoreObjects int // that are not in Objects
}

// PreviewTask is a row of the table of tasks.
type PreviewTask struct {
	Effect   string // such as "started"; with Workload, the row's address for scripts
	Workload string // its namespace and name; empty for a sum
	Tone     string
	Label    string // of the effect, such as "Starts"
	Name     string
	URL      string // empty for a sum
	Team     string
	Uses     string
	Why      string
	Anyway   bool // without the change too
	Tied     bool // in some orders of ties only
}

// PreviewTeam is a row of the table of teams: one resource of one pool.
type PreviewTeam struct {
	Team     string
	SameTeam bool // the row above has the same team
	Pool     string
	Resource string // its name in Kubernetes
	Label    string // of the resource
	// Allocated, Used and Borrowed are without and with the change.
	Allocated, Used, Borrowed PreviewFigure
}

// PreviewFigure is an amount without and with the change.
type PreviewFigure struct{ Before, After string }

// PreviewObject is how one object changes.
type PreviewObject struct {
	Name  string // kind and name
	Lines []YAMLLine
}

func (v PreviewVariant) id(part string) string { return "preview-" + v.Key + "-" + part }

func (v PreviewVariant) objectCount() string {
	return "YAML of " + Plural(len(v.Objects)+v.MoreObjects, "object", "objects")
}

func (v PreviewVariant) moreObjects() string {
	return "and " + Plural(v.MoreObjects, "more object", "more objects")
}

func (v PreviewVariant) moreTeams() string {
	return "and " + Plural(v.MoreTeams, "more team", "more teams")
}

// about returns the team, the usage and the reason of a task.
func (t PreviewTask) about() string {
	parts := slices.DeleteFunc([]string{t.Team, t.Uses, t.Why}, func(s string) bool { return s == "" })
	return strings.Join(parts, " · ")
}
