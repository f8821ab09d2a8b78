package actions

import (
	"context"
	"fmt"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
)

// Obstacles returns why an action cannot be run on each of these tasks, which user sees; empty
// where it can. It asks for less than a review of each: what the write itself refuses is not
// known yet.
func (s *Service) Obstacles(ctx context.Context, user governance.User, action Action, list []*tasks.Task) ([]string, error) {
	why := make([]string, len(list))
	for i, t := range list {
		if why[i] = never(action, t); why[i] != "" {
			continue
		}
		if action.changesClass() && admittedWithoutClass(t) {
			why[i] = "It got its quota without a priority class. Stop it, change its class, then resume it."
			continue
		}
		missing, err := s.missing(ctx, user, t, action)
		if err != nil {
			return nil, err
		}
		if missing != nil {
			why[i] = fmt.Sprintf("You may not do this: it needs the right to %s.", missing)
		}
	}
	return why, nil
}

// PriorityClasses returns the priority classes for tasks of teams, the lowest first.
func (s *Service) PriorityClasses(ctx context.Context) ([]explain.PriorityClass, error) {
	reader, err := s.Cluster.Reader()
	if err != nil {
		return nil, err
	}
	found, err := classes(ctx, reader, "any")
	return found, cluster.Translate("read priority classes", err)
}

// Run runs an action on a task; class is that of Class.
func (s *Service) Run(ctx context.Context, user governance.User, at tasks.Address, action Action, class string) error {
	switch action {
	case Stop:
		return s.Stop(ctx, user, at)
	case Resume:
		return s.Resume(ctx, user, at)
	case Class:
		return s.SetClass(ctx, user, at, class)
	case Delete:
		return s.Delete(ctx, user, at)
	}
	return &governance.Error{Kind: governance.Invalid, Op: "act on task", Message: "This cannot be done to many tasks."}
}
