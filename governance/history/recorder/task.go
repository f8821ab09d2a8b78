package recorder

import (
	"kuota.dev/kuota/governance/history"
	"kuota.dev/kuota/governance/tasks"
)

// record is what history keeps of a task. teams are those of namespaces.
func record(s tasks.Seen, teams map[string]string) history.Record {
	r := history.Record{Task: history.Task{
		Namespace: s.Namespace, Kind: s.Kind, Name: s.Name, UID: s.UID, Team: teams[s.Namespace], Class: s.Class, Priority: s.Priority,
		Queue: s.Queue, State: string(s.State), Pools: s.Pools, Asked: s.Asked, Submitted: s.Submitted, Ended: s.FinishedAt, Gone: s.Gone, Preemptions: s.Preemptions,
	}}
	for _, e := range s.Steps {
		if e.Before { // nobody knows when
			continue
		}
		step := history.Step{Part: e.Part, At: e.At, What: string(e.What), Reason: e.Reason, Text: e.Text, Ran: e.Ran, Size: e.Size, First: e.Nth, Last: e.Nth}
		if e.By == nil {
			step.By.UID = e.For // which tells preemptions apart
		} else {
			step.By = history.Party{Namespace: e.By.Namespace, Kind: e.By.Kind, Name: e.By.Name, UID: e.By.UID, Team: teams[e.By.Namespace]}
		}
		r.Steps = append(r.Steps, step)
	}
	waits, runs := s.Spans()
	for _, w := range waits {
		r.Spans = append(r.Spans, history.Span{Part: w.Part, Kind: history.Wait, Began: w.Began, Ended: w.Ended})
	}
	for _, run := range runs {
		r.Spans = append(r.Spans, history.Span{Part: run.Part, Kind: history.Run, Began: run.Began, Ended: run.Ended})
	}
	for _, l := range s.Loops {
		r.Loops = append(r.Loops, history.Loop{Part: string(l.Part), Since: l.Since, Last: l.Last, Runs: l.Runs})
	}
	r.Task.Ran = s.RanBefore
	if end := s.FinishedAt; !s.AdmittedAt.IsZero() && (!end.IsZero() || !s.Gone.IsZero()) {
		if end.IsZero() {
			end = s.Gone
		}
		r.Task.Ran += max(0, end.Sub(s.AdmittedAt))
	}
	return r
}
