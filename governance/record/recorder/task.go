package recorder

import (
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/tasks/timeline"
)

// newRecord converts s for package history.
func newRecord(s timeline.Snapshot, teams clusterstate.Teams) history.Record {
	r := history.Record{Task: history.Task{
		Namespace: s.Namespace, Kind: s.Kind, Name: s.Name, UID: s.UID, Team: teams.Of(s.Place()), PriorityClass: s.PriorityClass, Priority: s.Priority,
		Queue: s.Queue, State: string(s.State), Pools: s.Pools, Requests: s.Requests, SubmittedAt: s.Submitted, FinishedAt: s.FinishedAt, DeletedAt: s.DeletedAt, Preemptions: s.Preemptions,
		SubmittedBy: s.SubmittedBy,
	}}
	for _, e := range s.Events {
		if e.AtOrBefore { // its time is unknown
			continue
		}
		event := history.Event{
			WorkloadUID: e.WorkloadUID, At: e.At, Type: string(e.Type), Reason: e.Reason, Message: e.Message, Ran: e.Ran, Size: e.Size,
			FirstPreemption: e.PreemptionCount, LastPreemption: e.PreemptionCount,
		}
		if e.Preemptor == nil {
			event.Preemptor.UID = e.PreemptorUID // distinguishes preemptions by unknown tasks
		} else {
			event.Preemptor = history.TaskRef{Namespace: e.Preemptor.Namespace, Kind: e.Preemptor.Kind, Name: e.Preemptor.Name, UID: e.Preemptor.UID, Team: teams.Of(e.Preemptor.Place())}
		}
		r.Events = append(r.Events, event)
	}
	r.Usage = taskUsage(s)
	waits, ran := s.Spans()
	for _, w := range waits {
		r.Spans = append(r.Spans, history.Span{WorkloadUID: w.WorkloadUID, Kind: history.Wait, Began: w.Began, Ended: w.Ended})
	}
	for _, run := range ran {
		r.Spans = append(r.Spans, history.Span{WorkloadUID: run.WorkloadUID, Kind: history.Run, Began: run.Began, Ended: run.Ended})
	}
	for _, l := range s.Loops {
		r.Loops = append(r.Loops, history.Loop{WorkloadUID: string(l.WorkloadUID), Since: l.Since, Last: l.Last, Runs: l.Runs})
	}
	r.Task.RunTime = s.RanBefore
	end := s.FinishedAt
	if end.IsZero() {
		end = s.DeletedAt
	}
	if !s.AdmittedAt.IsZero() && !end.IsZero() {
		r.Task.RunTime += max(0, end.Sub(s.AdmittedAt))
	}
	return r
}
