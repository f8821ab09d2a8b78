package recorder

import (
	"kuota.dev/kuota/governance/history"
	"kuota.dev/kuota/governance/tasks"
)

// record is what history keeps of a task. teams are those of namespaces.
func record(s tasks.Snapshot, teams map[string]string) history.Record {
	r := history.Record{Task: history.Task{
		Namespace: s.Namespace, Kind: s.Kind, Name: s.Name, UID: s.UID, Team: teams[s.Namespace], Class: s.PriorityClass, Priority: s.Priority,
		Queue: s.Queue, State: string(s.State), Pools: s.Pools, Asked: s.Requests, Submitted: s.Submitted, Ended: s.FinishedAt, Gone: s.DeletedAt, Preemptions: s.Preemptions,
	}}
	for _, e := range s.Events {
		if e.AtOrBefore { // nobody knows when
			continue
		}
		step := history.Step{Part: e.WorkloadUID, At: e.At, What: string(e.Type), Reason: e.Reason, Text: e.Message, Ran: e.Ran, Size: e.Size, First: e.PreemptionCount, Last: e.PreemptionCount}
		if e.Preemptor == nil {
			step.By.UID = e.PreemptorUID // which tells preemptions apart
		} else {
			step.By = history.Party{Namespace: e.Preemptor.Namespace, Kind: e.Preemptor.Kind, Name: e.Preemptor.Name, UID: e.Preemptor.UID, Team: teams[e.Preemptor.Namespace]}
		}
		r.Steps = append(r.Steps, step)
	}
	waits, runs := s.Spans()
	for _, w := range waits {
		r.Spans = append(r.Spans, history.Span{Part: w.WorkloadUID, Kind: history.Wait, Began: w.Began, Ended: w.Ended})
	}
	for _, run := range runs {
		r.Spans = append(r.Spans, history.Span{Part: run.WorkloadUID, Kind: history.Run, Began: run.Began, Ended: run.Ended})
	}
	for _, l := range s.Loops {
		r.Loops = append(r.Loops, history.Loop{Part: string(l.WorkloadUID), Since: l.Since, Last: l.Last, Runs: l.Runs})
	}
	r.Task.Ran = s.RanBefore
	if end := s.FinishedAt; !s.AdmittedAt.IsZero() && (!end.IsZero() || !s.DeletedAt.IsZero()) {
		if end.IsZero() {
			end = s.DeletedAt
		}
		r.Task.Ran += max(0, end.Sub(s.AdmittedAt))
	}
	return r
}
