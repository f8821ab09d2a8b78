package tasks

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/record/audit"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/timeline"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	taskviews "kuota.dev/kuota/views/tasks"
)

// event is one event in a task's life, with the words for the other task in it.
type event struct {
	timeline.Event
	by      *views.TaskLink // the preemptor, if the reader is allowed to see it
	unnamed string          // words for a preemptor without a link, or the person of a done event
	first   int32           // like Nth, of the first of several preemptions within one second
	indexed bool            // by the index, not by history alone
	lost    string          // words about the work that a loss of quota cost; empty if unknown
	fold    *fold           // the preemptions that it summarizes; nil for a single event
}

// lifeOf merges the events of the index and of history with done, oldest first. Events
// of the index and of history with the same Part, What and second are the same. Tasks in
// events from history are named only within the scope.
func lifeOf(indexed []timeline.Event, steps []history.Event, done []event, submitted time.Time, scope access.Scope, redact func(string) string) []event {
	var life []event
	for _, e := range indexed {
		l := event{Event: e, first: e.PreemptionCount, indexed: true}
		switch {
		case e.Type == timeline.Preempted, e.Preemptor != nil:
			l.by, l.unnamed = by(e)
		case isLoopGuard(e.Type) && e.PreemptorUID != "":
			l.unnamed = hiddenTeam
		}
		life = append(life, l)
	}
	for _, s := range steps {
		l := recordedStep(s, scope, redact)
		if i := slices.IndexFunc(life, l.same); i >= 0 {
			life[i].fill(l)
			continue
		}
		life = append(life, l)
	}
	if len(indexed) == 0 && !slices.ContainsFunc(life, func(l event) bool { return l.Type == timeline.Submitted }) {
		life = append(life, event{Event: timeline.Event{At: submitted, Type: timeline.Submitted, Ran: -1}})
	}
	life = append(life, done...)
	slices.SortStableFunc(life, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.At.Unix(), b.At.Unix()), cmp.Compare(stepRank[a.Type], stepRank[b.Type]))
	})
	admitFirst(life)
	for i := range life { // the index drops old events, which history may have
		if k := before(life, i); life[i].Omitted > 0 && k >= 0 && !life[k].indexed {
			life[i].OmittedRan = 0
		}
	}
	// A loss that Kueue reports only by its time is dropped if history has the event.
	return slices.DeleteFunc(life, func(l event) bool {
		return l.AtOrBefore && slices.ContainsFunc(life, func(o event) bool {
			return !o.AtOrBefore && o.WorkloadUID == l.WorkloadUID && o.Type.Lost() && o.At.Before(l.At)
		})
	})
}

// withoutCondition are the actions on a task that no condition of a Workload shows.
var withoutCondition = []audit.Action{audit.Front, audit.ChangeClass, audit.Resume, audit.Resize, audit.Scale}

// done returns what was done to a task that only activity has, with who did it; nothing if
// there is no history, or if it cannot be read.
func (h *Pages) done(ctx context.Context, uid string) (life []event) {
	if h.History == nil {
		return nil
	}
	entries, err := h.History.Activity(ctx, history.ActivityQuery{UID: uid})
	if err != nil {
		return nil
	}
	for _, e := range entries {
		action := audit.Action(e.Action)
		if e.Outcome != history.Succeeded || !slices.Contains(withoutCondition, action) {
			continue
		}
		l := event{Event: timeline.Event{At: e.At, Type: timeline.EventType(action.Past()), Ran: timeline.Unknown}, unnamed: e.Actor}
		switch value := newValue(e.Changes); action {
		case audit.Front:
			l.Message = "with the class " + value
		case audit.ChangeClass, audit.Scale:
			l.Message = "to " + value
		}
		life = append(life, l)
	}
	return life
}

// changedValue matches the priority class or the replicas that a line of an entry of activity
// sets, of the console or of an audit event.
var changedValue = regexp.MustCompile(`^\S*(?:priorityClass|priority-class|replicas): (?:.* → |set to )"?([^"]+)"?$`)

// newValue returns the first value that matches changedValue.
func newValue(changes []string) string {
	for _, line := range changes {
		if found := changedValue.FindStringSubmatch(line); found != nil {
			return format.ClassName(found[1])
		}
	}
	return "another"
}

// before returns the index of the last preemption before event i of the same
// Workload; -1 for none.
func before(life []event, i int) int {
	for k := i - 1; k >= 0; k-- {
		if life[k].Type == timeline.Preempted && life[k].WorkloadUID == life[i].WorkloadUID {
			return k
		}
	}
	return -1
}

// isLoopGuard reports whether an event is the loop guard's.
func isLoopGuard(what timeline.EventType) bool {
	return what == timeline.LoopDetected || what == timeline.Held || what == timeline.Released
}

// admitFirst moves the admission of a Workload before its loss of quota in the same second
// if it had no quota before: stepRank supposes that it was admitted again.
func admitFirst(life []event) {
	lost := map[string]bool{} // Workloads whose last event of the two types is a loss
	for i := range life {
		e := &life[i]
		was, known := lost[e.WorkloadUID]
		if e.Type.Lost() && (was || !known && e.first == 1) {
			for k := i + 1; k < len(life) && life[k].At.Unix() == e.At.Unix(); k++ {
				if life[k].Type == timeline.Admitted && life[k].WorkloadUID == e.WorkloadUID {
					admission := life[k]
					copy(life[i+1:k+1], life[i:k])
					life[i] = admission
					break
				}
			}
		}
		if life[i].Type.Lost() || life[i].Type == timeline.Admitted {
			lost[life[i].WorkloadUID] = life[i].Type.Lost()
		}
	}
}

// stepRank orders events of the same second.
var stepRank = map[timeline.EventType]int{timeline.Submitted: -1, timeline.Reserved: 1, timeline.Admitted: 2, timeline.Ready: 3, timeline.Finished: 5}

func recordedStep(s history.Event, scope access.Scope, redact func(string) string) event {
	l := event{Event: timeline.Event{WorkloadUID: s.WorkloadUID, At: s.At, Type: timeline.EventType(s.Type), Reason: s.Reason, Message: redact(s.Message), Ran: s.Ran, Size: s.Size, PreemptorUID: s.Preemptor.UID, PreemptionCount: s.LastPreemption}, first: s.FirstPreemption}
	if l.Type != timeline.Preempted && (!isLoopGuard(l.Type) || s.Preemptor.UID == "") {
		return l
	}
	if l.Type == timeline.Preempted {
		l.Message = "" // the rule and the name show it
	}
	if l.by, l.unnamed = otherTask(s.Preemptor, scope); l.by != nil {
		l.PreemptorTeam = s.Preemptor.Team
	}
	return l
}

// hiddenTeam are the words for a task that the scope does not include.
const hiddenTeam = "another team"

// otherTask returns a task of history as a link, or words for one that the scope does not
// include or that has no name.
func otherTask(r history.TaskRef, scope access.Scope) (link *views.TaskLink, unnamed string) {
	switch {
	case r.Name == "":
		return nil, "a task that is not known"
	case !scope.Includes(r.Namespace):
		return nil, hiddenTeam
	}
	return &views.TaskLink{Name: r.Name, URL: urls.PastTask(history.Task{Namespace: r.Namespace, Kind: r.Kind, Name: r.Name, UID: r.UID})}, ""
}

func (l event) same(o event) bool {
	return l.Type == o.Type && l.At.Unix() == o.At.Unix() && (l.WorkloadUID == o.WorkloadUID || o.Type == timeline.Submitted)
}

// fill copies from o what only history records of an event.
func (l *event) fill(o event) {
	if l.Ran < 0 {
		l.Ran = o.Ran
	}
	if o.first > 0 && (l.first == 0 || o.first < l.first) {
		l.first = o.first
	}
	l.PreemptionCount, l.PreemptorUID = max(l.PreemptionCount, o.PreemptionCount), cmp.Or(l.PreemptorUID, o.PreemptorUID)
	if l.Reason = cmp.Or(l.Reason, o.Reason); l.Size == 0 {
		l.Size = o.Size
	}
	if o.by != nil && (l.by == nil || l.by.URL == "") {
		l.by, l.unnamed, l.PreemptorTeam = o.by, "", cmp.Or(l.PreemptorTeam, o.PreemptorTeam)
	} else if l.by == nil && o.unnamed == hiddenTeam {
		l.unnamed = o.unnamed
	}
}

// countLosses counts how often a task lost its quota.
func countLosses(life []event) (n int32) {
	for _, l := range life {
		if l.Type == timeline.Evicted {
			n++
		}
	}
	for _, chain := range chains(life) {
		n += timesOf(life, chain)
	}
	return n
}

// lifeLines returns the lines of a timeline, newest first. pools are the current
// pools of the task. over reports whether the task is deleted.
func lifeLines(life []event, state tasks.State, pools string, over bool) (lines []taskviews.TimelineLine) {
	life = folded(life, state.UsesQuota())
	admitted := false // the last admission is already in the list
	for i := len(life) - 1; i >= 0; i-- {
		e := life[i]
		line := taskviews.TimelineLine{At: e.At.UTC().Format(time.RFC3339), Before: e.AtOrBefore, Tone: "idle", Title: string(e.Type)}
		switch e.Type {
		case timeline.Reserved:
			line.Title = "Got its quota"
		case timeline.Admitted:
			line.Tone = "ok"
			if !admitted && pools != "" && state.UsesQuota() && !over {
				line.Text = "to " + pools
			}
			if e.Size > 0 {
				line.Text = fmt.Sprintf("with %s", format.Pods(e.Size))
			}
			admitted = true
		case timeline.Ready:
			line.Tone, line.Title = "ok", "All pods ready"
		case timeline.Preempted:
			line.Tone, line.Text = "pre", format.Joined(rules[e.Reason], ranWords(e.Event), e.lost)
			line.By, line.Unnamed, line.Word = e.by, e.unnamed, "by"
			if e.fold != nil {
				line.Title, line.Text, line.Word = e.fold.title(e.At), format.Joined(rules[e.Reason], e.fold.ranWords()), "for"
				line.From = e.fold.first.UTC().Format(time.RFC3339)
			}
		case timeline.LoopDetected:
			line.Tone, line.Text = "bad", e.Message
			line.By, line.Unnamed, line.Word = e.by, e.unnamed, "with"
		case timeline.Held, timeline.Released:
			line.Tone, line.Text = "pre", e.Message
			line.By, line.Unnamed, line.Word = e.by, e.unnamed, "for"
			if e.Type == timeline.Released {
				line.Tone, line.Word = "idle", "held for"
			}
		case timeline.Evicted:
			line.Tone, line.Title, line.Text = "pre", "Lost its quota", format.Joined(e.Message, ranWords(e.Event), e.lost)
			if e.Reason == "Deactivated" {
				line.Title = string(tasks.Stopped)
			}
		case timeline.Requeued:
			line.Title = "Back in the queue"
		case timeline.Finished:
			if line.Text = e.Message; state.Finished() {
				line.Title = string(state)
			}
			if state == tasks.Failed {
				line.Tone = "bad"
			}
		default:
			line.Text, line.Unnamed, line.Word = e.Message, e.unnamed, "by"
		}
		lines = append(lines, line)
	}
	return lines
}
