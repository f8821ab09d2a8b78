package actions

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/controllers/loopguard"
	"kuota.dev/kuota/governance/kueue/admitted"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/queries"
)

// Review is what an action would do now.
type Review struct {
	queries.Detail
	Action Action
	// Obstacle is why the action cannot be done, and what to do; empty if it can.
	Obstacle string
	// Head is the first task of the queue; nil if none waits.
	Head *tasks.Task
	// Current is the queue position with the current priority.
	Current index.Supposed
	// Choices are the priority classes to choose from, the highest first. For Front it is
	// the lowest class that moves the task to the front, or none.
	Choices  []Choice
	Numbers  bool            // for Class: whether numbers can be chosen too
	Pods     int             // of a pod group
	Replicas int32           // that Resume gives to a serving task, or that it has, for Scale; 0 for any other
	Growth   quota.Resources // of the usage of an ElasticJob: by growth; empty for none
	Resizing *Resizing       // for Resize
}

// Choice is a priority class and the queue position with it.
type Choice struct {
	Name string // of its object
	index.Supposed
}

// Review returns what an action would do. It returns governance.NotFound for a task
// that user may not see.
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
	if action.changesClass() && action.applies(seen.Task) {
		if found, err = classes(ctx, reader, seen.Team); err != nil {
			return Review{}, err
		}
		found = explain.WithTimeLimit(found, seen.TimeLimit)
	}
	numbers := false
	switch action {
	case Front: // the lowest class that does
		found = slices.DeleteFunc(found, func(c explain.PriorityClass) bool {
			return c.Name == seen.PriorityClass || s.Tasks.Index.Suppose(seen.Task, c.Priority).Position > 1
		})
		found = found[:min(len(found), 1)]
	case Class:
		classes, of := queries.WithoutNumbers(found)
		found, numbers = classes, len(of) > 0
	}
	priorities := []int32{seen.Priority}
	for _, c := range found {
		priorities = append(priorities, c.Priority)
	}
	detail, supposed, err := s.Tasks.Suppose(ctx, user, at, priorities...)
	if err != nil {
		return Review{}, err
	}
	r := Review{Detail: detail, Action: action, Numbers: numbers, Current: supposed[0], Head: s.Tasks.Index.Head(detail.Namespace, detail.Queue)}
	r.Growth = growth(detail.Task)
	if detail.IsServing() {
		r.Replicas = resumedReplicas(detail.Task)
	}
	if action == Scale && action.applies(detail.Task) && len(objects(detail.Task)) > 0 {
		writer, err := s.Cluster.ClientAs(user)
		if err != nil {
			return Review{}, err
		}
		now, err := s.readScale(ctx, detail.Task, writer)
		if err != nil && governance.KindOf(err) != governance.Forbidden { // which obstacle reports
			return Review{}, err
		}
		r.Replicas = int32(now.replicas)
	}
	if action == Resize && action.applies(detail.Task) {
		if r.Resizing, err = s.resizing(ctx, detail.Task); err != nil {
			return Review{}, err
		}
	}
	if detail.Kind == tasks.PodGroup {
		r.Pods = len(objects(detail.Task))
	}
	for i, c := range found {
		choice := Choice{Name: c.Name, Supposed: supposed[i+1]}
		switch {
		case action == Class:
			r.Choices = append([]Choice{choice}, r.Choices...)
		case len(r.Choices) == 0 && choice.Position == 1 && c.Name != detail.PriorityClass: // the lowest one that does
			r.Choices = []Choice{choice}
		}
	}
	r.Obstacle, err = s.obstacle(ctx, user, r)
	return r, err
}

// growth returns what growth of an ElasticJob uses.
func growth(t *tasks.Task) quota.Resources {
	used := quota.Resources{}
	for _, w := range t.Parts {
		if t.IsGrowth(w) {
			for set := range admitted.PodSets(w) {
				used.Add(set.Usage)
			}
		}
	}
	return used
}

// obstacle returns why an action cannot be done now; empty if it can.
func (s *Service) obstacle(ctx context.Context, user governance.User, r Review) (string, error) {
	t, job := r.Task, r.Action.changesClass()
	if why := never(r.Action, t); why != "" {
		return why, nil
	}
	missing, err := s.missing(ctx, user, t, r.Action)
	if err != nil {
		return "", err
	}
	if missing != nil {
		return fmt.Sprintf("You may not do this: it needs the right to %s. Ask a cluster admin.", missing), nil
	}
	switch {
	case job && admittedWithoutClass(t):
		return "It got its quota without a priority class, and Kueue gives one only to a task without quota. Stop it, change its class while it is stopped, then resume it: three steps, each with a page of its own. What it had not saved is lost when it is stopped.", nil
	case r.Action == Resize && r.Resizing == nil:
		return "It was deleted meanwhile.", nil
	case r.Action == Front && r.Position == 1:
		return "It is first in its queue already.", nil
	case r.Action == Front && len(r.Choices) == 0:
		return "No priority class puts it ahead of all tasks before it. " + noClassHelps(r), nil
	}
	verb, resource, err := s.permission(r.Action, t)
	if err != nil {
		return "", err
	}
	may, err := s.Access.ConsoleMay(ctx, user, verb, resource, t.Namespace)
	if err != nil || may {
		return "", err
	}
	return fmt.Sprintf("You may do this, and the console may not do it for you: its rights end before %s. With kubectl: %s", kubectlName(resource), kubectlCommand(r, kubectlName(resource))), nil
}

// never returns why no user can run an action on a task in its present state; empty if some can.
func never(action Action, t *tasks.Task) string {
	switch {
	case !action.applies(t):
		return notApplicable(action, t)
	case action.changesClass() && classFixed(t) != "":
		return classFixed(t)
	case len(objects(t)) == 0:
		return noObjects
	}
	return ""
}

// noObjects is the obstacle for pods without a Workload and a job.
const noObjects = "Kueue has created no Workload for these pods, and they have no job. Delete them with kubectl."

// noClassHelps returns why no priority class moves the task to the front.
func noClassHelps(r Review) string {
	if r.Current.Outranked == 0 {
		return "All tasks ahead of it have its priority and have waited longer, and no class has a higher priority: under first come, first served all classes count the same."
	}
	return "Some of them have the highest class."
}

// notApplicable returns why an action does not apply to a task in its state.
func notApplicable(action Action, t *tasks.Task) string {
	switch {
	case t.State.Finished():
		return "It has ended. Ended tasks can be submitted again or deleted."
	case action == Resize && t.Kind != v1alpha1.ElasticJobKind:
		return "Only an ElasticJob has sizes that can change."
	case action == Scale && t.IsServing():
		return "Kueue admits all replicas of a " + t.Kind + " at once, and their number cannot change while it runs. Stop it and submit it again with another one."
	case action == Scale:
		return "Only a service has replicas."
	case t.NoWorkload:
		return "Kueue has created no Workload for it, so there is nothing to stop, resume or move. See its page for the reason."
	case action == Resume && t.State == tasks.Stopping:
		return "It is stopping still. It can be resumed once its pods have ended."
	case action == Resume:
		return "It is not stopped."
	case t.State == tasks.Stopped:
		return "It is stopped. It can be resumed, or deleted."
	}
	return "It does not wait: it has its quota."
}

// kubectlCommand returns the command for an action that the console may not do.
func kubectlCommand(r Review, resource string) string {
	switch {
	case r.Action == Delete:
		return fmt.Sprintf("kubectl delete %s %s -n %s", resource, r.Name, r.Namespace)
	case r.Action == Front:
		return fmt.Sprintf("kubectl label %s %s -n %s --overwrite %s=%s", resource, r.Name, r.Namespace, desired.PriorityClassLabel, r.Choices[0].Name)
	case r.Action == Resize:
		return fmt.Sprintf("kubectl patch %s %s -n %s --type=merge -p '{\"spec\":{\"elasticPolicy\":{\"minReplicas\":MIN,\"maxReplicas\":MAX}}}'", resource, r.Name, r.Namespace)
	case r.Action == Class:
		return fmt.Sprintf("kubectl label %s %s -n %s --overwrite %s=CLASS", resource, r.Name, r.Namespace, desired.PriorityClassLabel)
	}
	switch _, held := r.Hold(); {
	case r.Action == Scale:
		return fmt.Sprintf("kubectl scale %s %s -n %s --replicas=REPLICAS", strings.TrimSuffix(resource, "/scale"), r.Name, r.Namespace)
	case r.Action.scales(r.Task):
		replicas := int32(0)
		if r.Action == Resume {
			replicas = resumedReplicas(r.Task)
		}
		return fmt.Sprintf("kubectl scale %s %s -n %s --replicas=%d", strings.TrimSuffix(resource, "/scale"), r.Name, r.Namespace, replicas)
	case held:
		return fmt.Sprintf("kubectl patch %s %s -n %s --type=merge -p '{\"metadata\":{\"annotations\":{%q:null}},\"spec\":{\"active\":%t}}'",
			resource, r.Main.Name, r.Namespace, loopguard.MarkAnnotation, r.Action == Resume)
	case r.Kind == v1alpha1.ElasticJobKind:
		return fmt.Sprintf("kubectl patch %s %s -n %s --type=merge -p '{\"spec\":{\"suspend\":%t}}'", resource, r.Name, r.Namespace, r.Action == Stop)
	}
	return fmt.Sprintf("kubectl patch %s %s -n %s --type=merge -p '{\"spec\":{\"active\":%t}}'", resource, r.Main.Name, r.Namespace, r.Action == Resume)
}
