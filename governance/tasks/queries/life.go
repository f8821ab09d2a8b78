package queries

import (
	"context"

	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/timeline"
)

// Life is what happened to a task until now.
type Life struct {
	Timeline     []timeline.Event
	Omitted      int32             // losses of quota that Timeline does not have
	Sizes        []timeline.Resize // of a task that had more than one
	QuotaSources *QuotaSources     // nil for a task that uses no quota
}

// life returns a task's life as the viewer may see it.
func (v viewer) life(ctx context.Context, t *tasks.Task) (l Life, err error) {
	l.Timeline, l.Sizes = v.index.Timeline(t), v.index.Sizes(t)
	l.Omitted = t.Evictions
	for i := range l.Timeline {
		e := &l.Timeline[i]
		if e.Type.Lost() {
			l.Omitted = max(0, l.Omitted-1-e.Omitted)
		}
		e.Message = v.names.redact(e.Message)
		if e.Preemptor != nil && !v.seesNamespace(e.Preemptor.Namespace) {
			e.Preemptor, e.PreemptorDeleted = nil, false
		}
		if e.Preemptor != nil {
			e.PreemptorTeam = v.team(e.Preemptor.Place())
		}
	}
	l.QuotaSources, err = v.quotaSources(ctx, t)
	return l, err
}
