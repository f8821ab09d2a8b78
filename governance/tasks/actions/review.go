package actions

import (
	"context"
	"fmt"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/loopguard"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/queries"
)

// Review is what an action would do, as of now. Nothing is written for it.
type Review struct {
	queries.Detail
	Action Action
	// Obstacle is why it cannot be done, and what to do, in sentences; empty where
	// it can.
	Obstacle string
	// Next stands first in the task's queue; nil where none waits.
	Head *tasks.Task
	// Stands is where the task would stand with the priority that it has.
	Current index.Supposed
	// Choices are the classes that it can be given, the highest first. For Front
	// it is the one that puts it first, or none.
	Choices []Choice
	Pods    int // of a group of pods without a job
}

// Choice is a priority class, and where a task would stand with it.
type Choice struct {
	Name string // of its object
	index.Supposed
}

// Review is what an action on a task that user may see would do. It is
// governance.NotFound for a task that they may not see.
func (s *Service) Review(ctx context.Context, user governance.User, at tasks.Address, action Action) (Review, error) {
	seen, _, err := s.Tasks.Suppose(ctx, user, at)
	if err != nil {
		return Review{}, err
	}
	at.UID = seen.UID
	reader, err := s.Cluster.Reader()
	if err != nil {
		return Review{}, err
	}
	var found []explain.PriorityClass
	if action.classes() && action.fits(seen.Task) {
		if found, err = classes(ctx, reader, seen.Team); err != nil {
			return Review{}, err
		}
	}
	priorities := []int32{seen.Priority}
	for _, c := range found {
		priorities = append(priorities, c.Priority)
	}
	detail, supposed, err := s.Tasks.Suppose(ctx, user, at, priorities...)
	if err != nil {
		return Review{}, err
	}
	r := Review{Detail: detail, Action: action, Current: supposed[0], Head: s.Tasks.Index.Head(detail.Namespace, detail.Queue)}
	if detail.Kind == podGroup {
		r.Pods = len(objects(detail.Task))
	}
	for i, c := range found {
		choice := Choice{Name: c.Name, Supposed: supposed[i+1]}
		switch {
		case action == Class:
			r.Choices = append([]Choice{choice}, r.Choices...)
		case len(r.Choices) == 0 && choice.Position == 1 && c.Name != detail.PriorityClass: // the lowest that does
			r.Choices = []Choice{choice}
		}
	}
	r.Obstacle, err = s.obstacle(ctx, user, r)
	return r, err
}

// obstacle says why an action cannot be done now; empty where it can.
func (s *Service) obstacle(ctx context.Context, user governance.User, r Review) (string, error) {
	t := r.Task
	if !r.Action.fits(t) {
		return unfit(r.Action, t), nil
	}
	job := r.Action.classes()
	if job {
		if why := unclassed(t); why != "" {
			return why, nil
		}
	}
	if len(objects(t)) == 0 {
		return loose, nil
	}
	missing, err := s.missing(ctx, user, t, r.Action)
	if err != nil {
		return "", err
	}
	if missing != nil {
		return fmt.Sprintf("You may not do this: it needs the right to %s. Ask a cluster admin.", missing), nil
	}
	switch {
	case job && classless(t):
		return "It got its quota without a priority class, and Kueue gives one only to a task without quota. Stop it, change its class while it is stopped, then resume it: three steps, each with a page of its own. What it had not saved is lost when it is stopped.", nil
	case r.Action == Front && r.Position == 1:
		return "It is first in its queue already.", nil
	case r.Action == Front && len(r.Choices) == 0:
		return "No priority class puts it ahead of all tasks before it. " + flat(r), nil
	}
	verb, kind := r.Action.right(t)
	resource, err := s.resource(kind)
	if err != nil {
		return "", err
	}
	may, err := s.Access.ConsoleMay(ctx, user, verb, resource, t.Namespace)
	if err != nil || may {
		return "", err
	}
	return fmt.Sprintf("You may do this, and the console may not do it for you: its rights end before %s. With kubectl: %s", called(resource), byHand(r, called(resource))), nil
}

// loose is said of pods that nothing stands for.
const loose = "Kueue has created no Workload for these pods, and they have no job. Delete them with kubectl."

// flat says why classes do not help.
func flat(r Review) string {
	if r.Current.Outranked == 0 {
		return "All tasks ahead of it have its priority and have waited longer, and no class has a higher priority: under first come, first served all classes count the same."
	}
	return "Some of them have the highest class."
}

// unfit says why an action means nothing to a task as it is.
func unfit(action Action, t *tasks.Task) string {
	switch {
	case t.State.Finished():
		return "It has ended. A task that has ended can only be deleted."
	case t.NoWorkload:
		return "Kueue has made no Workload of it, so that there is nothing to stop, to resume or to move. Its page says why."
	case action == Resume && t.State == tasks.Stopping:
		return "It is stopping still. It can be resumed once its pods have ended."
	case action == Resume:
		return "It is not stopped."
	case t.State == tasks.Stopped:
		return "It is stopped. It can be resumed, or deleted."
	}
	return "It does not wait: it has its quota."
}

// byHand is the command that does what the console may not.
func byHand(r Review, resource string) string {
	switch {
	case r.Action == Delete:
		return fmt.Sprintf("kubectl delete %s %s -n %s", resource, r.Name, r.Namespace)
	case r.Action == Front:
		return fmt.Sprintf("kubectl label %s %s -n %s --overwrite %s=%s", resource, r.Name, r.Namespace, labelClass, r.Choices[0].Name)
	case r.Action == Class:
		return fmt.Sprintf("kubectl label %s %s -n %s --overwrite %s=CLASS", resource, r.Name, r.Namespace, labelClass)
	}
	if _, held := r.Hold(); held {
		return fmt.Sprintf("kubectl patch %s %s -n %s --type=merge -p '{\"metadata\":{\"annotations\":{%q:null}},\"spec\":{\"active\":%t}}'",
			resource, r.Main.Name, r.Namespace, loopguard.MarkAnnotation, r.Action == Resume)
	}
	return fmt.Sprintf("kubectl patch %s %s -n %s --type=merge -p '{\"spec\":{\"active\":%t}}'", resource, r.Main.Name, r.Namespace, r.Action == Resume)
}
