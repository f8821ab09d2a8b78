package tasks

import (
	"strings"

	"kuota.dev/kuota/views"
	"kuota.dev/kuota/views/ui"
)

// ElasticTask is the size of an elastic task, now and over time.
type ElasticTask struct {
	Size    string       // such as "24 of 8–32 pods: 8 guaranteed, 16 growth"; empty for a deleted task
	Gained  string       // by growth, such as "12.5 GPU-hours"; empty if the unit is not known
	Lost    string       // work that changes of size cost; empty if unknown
	Grows   string       // RFC 3339: when it can grow again; empty while nothing delays it
	Why     string       // of Grows
	Samples *views.Chart // samples a second; nil if unknown
	// Asks are the nodes that growth waits for, such as "2 nodes of ml.p5.48xlarge"; AsksSince
	// and AsksUntil are RFC 3339. AsksAgain is when it asks again, after none came in time, and
	// AsksNot a sentence why it does not.
	Asks, AsksSince, AsksUntil, AsksAgain, AsksNot string

	Chart   views.Chart
	Changes []ScaleChange // newest first
	Unit    string        // of what each gained, such as "GPU-hours"
	Notes   []string      // sentences about changes that are not known or not listed
	CSVURL  string
}

// amounts are the heads of the amounts of changes.
func (e *ElasticTask) amounts() []ui.Head {
	unit := strings.ReplaceAll(e.Unit, "-", "\u2011") // on one line
	heads := []ui.Head{{Label: "Gained", Unit: unit, Number: true}}
	if e.Lost != "" {
		heads = append(heads, ui.Head{Label: "Lost", Unit: unit, Number: true})
	}
	return heads
}

// ScaleChange is a change of the size of an elastic task.
type ScaleChange struct {
	ID       string // stable HTML id
	At       string // RFC 3339
	From, To string
	Title    string
	By       *views.TaskLink // task that pods were preempted or withdrawn for
	Unnamed  string          // text instead of By for a task that the user may not see
	Text     string
	Gained   string // until the next change
	Lost     string // work that it cost; empty if unknown
}
