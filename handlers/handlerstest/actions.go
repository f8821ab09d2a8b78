package handlerstest

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/actions"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/queries"
)

// ActionsBackend records the actions on tasks.
type ActionsBackend struct {
	OfferList    []actions.Offer
	ReviewResult actions.Review
	Refusal      error
	At           tasks.Address // of the last review
	Done         []string
	MayNotStop   bool
	ObstacleOf   map[string]string // by the name of a task
	mu           sync.Mutex        // of Run
	Numbers      bool              // whether PriorityClasses has priorities by number
	OddTask      string            // name of the task of which it is not known whether users may stop it
}

func (d *ActionsBackend) Offers(context.Context, governance.User, queries.Detail) ([]actions.Offer, error) {
	return d.OfferList, nil
}

func (d *ActionsBackend) Review(_ context.Context, _ governance.User, at tasks.Address, action actions.Action) (actions.Review, error) {
	d.At = at
	if d.ReviewResult.Task == nil {
		return actions.Review{}, &governance.Error{Kind: governance.NotFound, Message: "There is no such task."}
	}
	r := d.ReviewResult
	r.Action = action
	return r, nil
}

func (d *ActionsBackend) did(what string, at tasks.Address) error {
	if d.Refusal == nil {
		d.Done = append(d.Done, what+" "+at.Name+" "+at.UID)
	}
	return d.Refusal
}

func (d *ActionsBackend) MayStop(_ context.Context, _ governance.User, at tasks.Address) (bool, error) {
	if at.Name == d.OddTask {
		return false, &governance.Error{Kind: governance.Unavailable}
	}
	return !d.MayNotStop, nil
}

func (d *ActionsBackend) Stop(_ context.Context, _ governance.User, at tasks.Address) error {
	return d.did("stop", at)
}

func (d *ActionsBackend) Resume(_ context.Context, _ governance.User, at tasks.Address) error {
	return d.did("resume", at)
}

func (d *ActionsBackend) Scale(_ context.Context, _ governance.User, at tasks.Address, replicas, saw int32) error {
	return d.did(fmt.Sprintf("scale from %d to %d", saw, replicas), at)
}

func (d *ActionsBackend) SetClass(_ context.Context, _ governance.User, at tasks.Address, class string) error {
	return d.did(class, at)
}

func (d *ActionsBackend) MoveToFront(_ context.Context, _ governance.User, at tasks.Address, class string) error {
	return d.did("front by "+class, at)
}

func (d *ActionsBackend) Resize(_ context.Context, _ governance.User, at tasks.Address, z actions.Sizes, generation int64) error {
	return d.did(fmt.Sprintf("resize to %d-%d by %d or %v of generation %d", z.Min, z.Max, z.Step, z.Values, generation), at)
}

func (d *ActionsBackend) Delete(_ context.Context, _ governance.User, at tasks.Address) error {
	return d.did("delete", at)
}

func (d *ActionsBackend) Run(_ context.Context, _ governance.User, at tasks.Address, action actions.Action, class string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.did(strings.TrimSpace(string(action)+" "+class), at)
}

func (d *ActionsBackend) Obstacles(_ context.Context, _ governance.User, _ actions.Action, list []*tasks.Task) ([]string, error) {
	why := make([]string, len(list))
	for i, t := range list {
		why[i] = d.ObstacleOf[t.Name]
	}
	return why, nil
}

func (d *ActionsBackend) PriorityClasses(context.Context) ([]explain.PriorityClass, error) {
	classes := []explain.PriorityClass{{Name: "low-priority", Priority: 10}, {Name: "high-priority", Priority: 90}}
	if d.Numbers {
		classes = append(classes, Numbers()...)
	}
	return classes, nil
}

// Numbers returns the classes of priorities by number.
func Numbers() (numbers []explain.PriorityClass) {
	for n := range desired.MaxNumber + 1 {
		numbers = append(numbers, explain.PriorityClass{Name: desired.NumberClass(n), Priority: int32(n)})
	}
	return numbers
}
