package previews

import (
	"context"

	"kuota.dev/kuota/governance/spec/change"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
)

// Effect is what Kueue's scheduler, simulated, does with tasks after a change.
type Effect struct {
	Known     bool           `json:"known"`             // whether it was simulated
	Unknown   string         `json:"unknown,omitempty"` // why it was not
	Started   []AffectedTask `json:"started,omitempty"`
	Preempted []AffectedTask `json:"preempted,omitempty"`
	Evicted   []AffectedTask `json:"evicted,omitempty"`
	Missed    []AffectedTask `json:"missed,omitempty"`    // that start without the change, and wait with it
	Exceeding []AffectedTask `json:"exceeding,omitempty"` // that can no longer start
	More      int            `json:"more,omitempty"`      // further tasks that the reader sees
	Others    bool           `json:"others,omitempty"`    // tasks are affected that the reader does not see
}

// AffectedTask is one task, as its reader sees it.
type AffectedTask struct {
	Team      string `json:"team,omitempty"`
	Namespace string `json:"namespace"`
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Path      string `json:"path"`             // of its page
	Anyway    bool   `json:"anyway,omitempty"` // without the change too
}

// EffectOf simulates a change, for as long as a request may wait for it.
func (p *Previews) EffectOf(ctx context.Context, v Variant) (e Effect, interrupts bool) {
	if p.Backend == nil {
		return Effect{Unknown: "Effects on running tasks are not simulated here."}, true
	}
	variant, preview := p.Once(ctx, v)
	if e.Known = variant.State == views.PreviewReady; !e.Known {
		e.Unknown = variant.Failure
		return e, true
	}
	for of, to := range map[*queries.Effects]*[]AffectedTask{
		&preview.Started: &e.Started, &preview.Preempted: &e.Preempted, &preview.Evicted: &e.Evicted, &preview.Missed: &e.Missed, &preview.Exceeding: &e.Exceeding,
	} {
		for _, t := range of.Listed {
			*to = append(*to, AffectedTask{Team: t.Team, Namespace: t.Task.Namespace, Kind: t.Task.Kind, Name: t.Task.Name, Path: urls.Task(t.Task), Anyway: t.Anyway})
		}
		e.More += of.More
		e.Others = e.Others || of.Others != nil
	}
	return e, Interrupts(preview)
}

// FieldChange is one value before and after; empty where there is none.
type FieldChange struct {
	Field  string `json:"field"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// ObjectChange is what changes of an object of Kubernetes or Kueue.
type ObjectChange struct {
	Kind   string        `json:"kind"`
	Name   string        `json:"name"`
	Action string        `json:"action"` // Created, Changed or Removed
	Fields []FieldChange `json:"fields,omitempty"`
}

// FieldChanges converts values that change.
func FieldChanges(fields []change.Field) (list []FieldChange) {
	for _, f := range fields {
		list = append(list, FieldChange{f.Path, f.Before, f.After})
	}
	return list
}

// ObjectChanges converts objects that change.
func ObjectChanges(objects []change.Object) (list []ObjectChange) {
	for _, o := range objects {
		list = append(list, ObjectChange{o.Kind, o.Name, o.Action, FieldChanges(o.Fields)})
	}
	return list
}
