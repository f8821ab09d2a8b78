package notices

import (
	"slices"

	"kuota.dev/kuota/governance/alerts"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/timeline"
)

// Event is what a person can ask to hear of.
type Event string

// The events, in the order of messages.
const (
	Fail    Event = "fail"
	Preempt Event = "preempt"
	End     Event = "end" // without a failure
	Start   Event = "start"
)

// Events are all events.
var Events = []Event{Fail, Preempt, End, Start}

// maxNames bounds the tasks that a message names of each event and team.
const maxNames = 10

// eventOf returns what an event of history is to its person.
func eventOf(e history.TaskEvent) Event {
	switch {
	case e.Type == string(timeline.Preempted):
		return Preempt
	case e.Type == string(timeline.Admitted):
		return Start
	case e.State == string(tasks.Failed):
		return Fail
	}
	return End
}

// grouped is what happened to the tasks of one person.
type grouped struct {
	list      []alerts.TaskNotice
	preempted map[string]bool // tasks by namespace, kind and name
}

// add adds an event to those of the same kind and team. A task that is preempted again counts
// once.
func (g *grouped) add(e history.TaskEvent) {
	event := string(eventOf(e))
	if event == string(Preempt) {
		task := e.Namespace + "/" + e.Kind + "/" + e.Name
		if g.preempted[task] {
			return
		}
		if g.preempted == nil {
			g.preempted = map[string]bool{}
		}
		g.preempted[task] = true
	}
	i := slices.IndexFunc(g.list, func(n alerts.TaskNotice) bool {
		return n.Event == event && n.Team == e.Team && n.Namespace == e.Namespace
	})
	if i < 0 {
		i = len(g.list)
		g.list = append(g.list, alerts.TaskNotice{Event: event, Team: e.Team, Namespace: e.Namespace})
	}
	n := &g.list[i]
	if n.Count++; len(n.Names) < maxNames {
		n.Names = append(n.Names, e.Name)
	}
}

// sorted returns what happened in the order of Events.
func (g *grouped) sorted() []alerts.TaskNotice {
	slices.SortStableFunc(g.list, func(a, b alerts.TaskNotice) int {
		return slices.Index(Events, Event(a.Event)) - slices.Index(Events, Event(b.Event))
	})
	return g.list
}
