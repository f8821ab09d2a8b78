package queries

import (
	"context"
	"slices"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/controllers/loopguard"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/index"

	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Service answers the pages about tasks.
type Service struct {
	Cluster   *cluster.Cluster
	Access    *access.Service
	Guard     interface{ Loops() []loopguard.Loop } // nil for none
	Index     *index.Index
	Simulator Simulator // nil for none
	// InstanceTypeLabel is the node label of the instance type; empty for the default.
	InstanceTypeLabel string
	// AdviceChanges signals that the advice about a task changed.
	AdviceChanges cluster.Notifier

	advisor    advisor
	outlooks   outlooks
	visibility visibilityCache
	shown      *lru.Cache // shownVerdict by tasks.Key
	briefs     briefs
	owners     podOwnersCache
}

// New returns a service whose index is filled once the cluster runs.
func New(c *cluster.Cluster, permission *access.Service) *Service {
	s := &Service{Cluster: c, Access: permission, Index: index.New(time.Now), shown: lru.New(maxShown)}
	s.Index.Watch(c)
	return s
}

// Item is a task as one viewer sees it.
type Item struct {
	*tasks.Task
	Team     string // that the viewer sees; empty for none
	Position int    // in its queue, from 1; 0 while it does not wait
	// Message and PendingMessage are those of the task, redacted.
	Message, PendingMessage string
	UnscheduledPods         int // pods that wait for a node though it has its quota
	// Policy has the sizes of an ElasticJob: in lists only. nil for any other task.
	Policy *v1alpha1.ElasticPolicy
	// Brief is why the task does not start, without names: in lists only. nil if
	// there is nothing to explain, or it is not computed yet.
	Brief *explain.Verdict
}

// List is one page of tasks.
type List struct {
	Items       []Item
	Total       int                 // of the whole list
	Phases      map[index.Phase]int // how many the query selects in each, of whatever state
	Page, Pages int                 // from 1
	// The choices of filters, of what the viewer sees.
	Teams, PriorityClasses, Kinds, Pools []string
	States                               map[tasks.State]int // how many the query selects in each, of whatever state
	ByPriorityClass                      []index.PriorityClassRow
	Since                                time.Time // begin of the averages: not before Started
	Started                              time.Time // since when the console counts
}

// viewer is what one user sees of the cluster's tasks.
type viewer struct {
	user   string // empty for no user
	scope  access.Scope
	reader client.Reader
	teams  clusterstate.Teams // all
	names  *redactor
	index  *index.Index
}

// view returns the viewer of a user, or governance.Unavailable if tasks cannot be
// read.
func (s *Service) view(ctx context.Context, user governance.User) (v viewer, err error) {
	scope, err := s.Scope(ctx, user)
	if err != nil {
		return v, err
	}
	v, err = s.within(ctx, scope)
	v.user = user.Name
	return v, err
}

// Scope returns which tasks a user may see now.
func (s *Service) Scope(ctx context.Context, user governance.User) (access.Scope, error) {
	if _, err := s.Cluster.Reader(); err != nil {
		return access.Scope{}, err
	}
	return s.Access.Scope(ctx, user)
}

// within returns the viewer of a scope.
func (s *Service) within(ctx context.Context, scope access.Scope) (v viewer, err error) {
	v.scope = scope
	if v.reader, err = s.Cluster.Reader(); err != nil {
		return v, err
	}
	switch there, err := s.Cluster.ServesWorkloads(); {
	case err != nil:
		return v, err
	case there:
		v.index = s.Index
	default: // the watch still has those of before
		v.index = index.New(s.Index.Now)
	}
	if v.teams, err = clusterstate.ReadTeams(ctx, v.reader); err != nil {
		return v, err
	}
	v.names, err = newRedactor(ctx, v.reader, v.scope, v.teams)
	return v, err
}

// team returns the team of a task; empty for none, and for one that the viewer does not
// see.
func (v viewer) team(p tasks.Place) string {
	if team := v.teams.Of(p); v.seesTeam(team) {
		return team
	}
	return ""
}

// seesTeam reports whether the viewer sees a team: its namespace decides.
func (v viewer) seesTeam(team string) bool {
	namespace := v.teams.Namespace(team)
	return namespace != "" && v.seesNamespace(namespace)
}

// teamNames returns the names of the teams that the viewer sees, sorted.
func (v viewer) teamNames() []string {
	return slices.DeleteFunc(v.teams.Names(), func(team string) bool { return !v.seesTeam(team) })
}

func (v viewer) item(t *tasks.Task, place int) Item {
	i := Item{Task: t, Team: v.team(t.Place()), Position: place, Message: v.names.redact(t.Message), PendingMessage: v.names.redact(t.PendingMessage)}
	if t.NoWorkload && !t.State.Finished() {
		i.Message = "Kueue has created no Workload for it"
		if t.Queue == "" {
			i.Message = "It names no queue, so that no quota counts it"
		}
	}
	return i
}

// List returns a page of the tasks that user may see. Teams are names; one that
// they may not see has no tasks.
func (s *Service) List(ctx context.Context, user governance.User, q index.Query, teams []string) (List, error) {
	scope, err := s.Scope(ctx, user)
	if err != nil {
		return List{}, err
	}
	return s.ListWithin(ctx, scope, q, teams)
}

// ListWithin is List for a scope.
func (s *Service) ListWithin(ctx context.Context, scope access.Scope, q index.Query, teams []string) (List, error) {
	v, err := s.within(ctx, scope)
	if err != nil {
		return List{}, err
	}
	f := v.index.Query(q, v.of(teams))
	l := List{Total: f.Total, Phases: f.Phases, States: f.States, Page: f.Page, Pages: f.Pages, Teams: v.teamNames()}
	for i, t := range f.Tasks {
		item := v.item(t, f.Positions[i])
		item.UnscheduledPods = f.UnscheduledPods[i]
		job, err := v.elasticJob(ctx, t)
		if err != nil {
			return List{}, err
		}
		if job != nil {
			item.Policy = &job.Spec.ElasticPolicy
		}
		l.Items = append(l.Items, item)
	}
	if q.Explain {
		s.explainAll(ctx, l.Items, f.PodsMissing, q.Patience, briefAge)
	}
	l.ByPriorityClass, l.Since = v.index.Classes(v.of(teams), q.Within)
	everything, started := v.index.Classes(v.of(nil), 0)
	l.Started = started
	for _, row := range everything {
		l.PriorityClasses = append(l.PriorityClasses, row.PriorityClass)
	}
	l.Kinds, l.Pools = v.index.Choices(v.of(nil))
	return l, nil
}

// ClassesWithin returns a List without tasks: the figures of each priority class,
// of these teams or, without any, of all. Waits and runs completed within a
// duration of up to a day, or for 0 since the console started.
func (s *Service) ClassesWithin(ctx context.Context, scope access.Scope, teams []string, within time.Duration) (List, error) {
	v, err := s.within(ctx, scope)
	if err != nil {
		return List{}, err
	}
	l := List{Teams: v.teamNames()}
	l.ByPriorityClass, l.Since = v.index.Classes(v.of(teams), within)
	_, l.Started = v.index.Classes(func(tasks.Place) bool { return false }, 0)
	return l, nil
}

// HeadWithin returns the first n tasks in the queues of a team, and how many wait
// there. Several queues take turns, and those of shares are ordered by usage. patience
// is that of Query.
func (s *Service) HeadWithin(ctx context.Context, scope access.Scope, team string, n int, patience time.Duration) (head []Item, of int, err error) {
	v, err := s.within(ctx, scope)
	if err != nil {
		return nil, 0, err
	}
	list, of := v.index.Heads(v.queueOf(team), n)
	shares, err := v.queueShares(ctx, team)
	if err != nil {
		return nil, 0, err
	}
	if len(shares) > 1 && sampled(shares) {
		list, of = s.headOfShares(ctx, v, team, shares, n)
	}
	for _, first := range list {
		head = append(head, v.item(first.Task, first.Position))
	}
	s.explainAll(ctx, head, make([]bool, len(head)), patience, briefAge)
	return head, of, nil
}

// explainAll sets the brief verdict of each item that has one, and waits up to
// patience for those that are not computed, or were last current longer ago than age.
// missing[i] reports that item i lacks pods.
func (s *Service) explainAll(ctx context.Context, items []Item, missing []bool, patience, age time.Duration) {
	var asked []*tasks.Task
	var at []int
	for i := range items {
		if explained(items[i].Task, missing[i]) {
			asked, at = append(asked, items[i].Task), append(at, i)
		}
	}
	verdicts, done := s.verdicts(asked, age)
	if patience > 0 {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case <-done:
			verdicts = s.briefs.kept(asked)
		case <-timer.C:
			verdicts = s.briefs.kept(asked)
		case <-ctx.Done():
		}
	}
	for i, verdict := range verdicts {
		items[at[i]].Brief = verdict
	}
}

// of returns a predicate of the places whose tasks the viewer sees, of these teams; no
// teams is all. It is nil if that selects every place.
func (v viewer) of(teams []string) func(tasks.Place) bool {
	if v.scope.All && len(teams) == 0 {
		return nil
	}
	return func(p tasks.Place) bool {
		return v.seesNamespace(p.Namespace) && (len(teams) == 0 || slices.Contains(teams, v.team(p)))
	}
}

// queueOf returns a predicate of the LocalQueues of a team that the viewer sees.
func (v viewer) queueOf(team string) func(index.QueueKey) bool {
	return func(key index.QueueKey) bool {
		return v.seesNamespace(key.Namespace) && v.team(tasks.Place{Namespace: key.Namespace, LocalQueue: key.Queue}) == team
	}
}

// seesNamespace reports whether the viewer sees a namespace, which is empty for what is not
// known any more.
func (v viewer) seesNamespace(namespace string) bool {
	return v.scope.All || v.scope.Includes(namespace)
}

// WaitForTask waits until a job is a task, shortly after it was created, or ctx
// ends. It reports whether the task exists then.
func (s *Service) WaitForTask(ctx context.Context, namespace, kind, name, uid string) bool {
	t := s.wait(ctx, tasks.Address{Namespace: namespace, Kind: kind, Name: name, UID: uid}, func(t *tasks.Task) bool { return t != nil })
	return t != nil
}

// findOrWait returns a task. Shortly after its job was created, it waits until
// Kueue has created the Workload, or the job is a task without one.
func (s *Service) findOrWait(ctx context.Context, x *index.Index, at tasks.Address) *tasks.Task {
	if t, isNew := x.FindOrNew(at); !isNew {
		return t
	}
	ctx, cancel := context.WithTimeout(ctx, index.WorkloadGrace+time.Second)
	defer cancel()
	return x.Wait(ctx, s.Cluster.TaskChanges.Subscribe(ctx), at, func(_ *tasks.Task, isNew bool) bool { return !isNew })
}

// WaitForPriorityClass waits until Kueue has copied the priority class of a job
// into its Workload, the task is deleted, or ctx ends.
func (s *Service) WaitForPriorityClass(ctx context.Context, at tasks.Address, class string) {
	s.wait(ctx, at, func(t *tasks.Task) bool { return t == nil || t.PriorityClass == class })
}

func (s *Service) wait(ctx context.Context, at tasks.Address, is func(*tasks.Task) bool) *tasks.Task {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return s.Index.Wait(ctx, s.Cluster.TaskChanges.Subscribe(ctx), at, func(t *tasks.Task, _ bool) bool { return is(t) })
}
