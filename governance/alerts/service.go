package alerts

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/cluster/leader"
	"kuota.dev/kuota/governance/controllers/loopguard"
	"kuota.dev/kuota/governance/observe/capacity"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/record/activity"
	"kuota.dev/kuota/governance/record/audit"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/queries"
)

const (
	// interval is how often rules are evaluated, and how often replicas that do not lead
	// read what the leader saved.
	interval = 5 * time.Second
	// resolvedKept is how long resolved alerts are shown.
	resolvedKept = 7 * 24 * time.Hour
	// loopMemory is how long after its start the loop guard may not know a loop that goes on.
	loopMemory = 2 * time.Minute
	// maxHeads bounds the waiting tasks that are explained, those that wait longest.
	maxHeads = 200
	// headWait is how long a task waits before it is explained: Kueue admits within that.
	headWait = 10 * time.Second
	// prepareInterval is how old what a Sender needs without the API server is at most.
	prepareInterval = time.Minute
	// patience is how long an evaluation waits for explanations.
	patience = 2 * time.Second
)

// Store is the part of history.Store that keeps alerts.
type Store interface {
	history.Asider
	CountSetAside(ctx context.Context, since time.Time) (n int, latest *history.SetAside, err error)
	SaveAlerts(ctx context.Context, changed []history.Alert, dropped []string) error
	Alerts(ctx context.Context, resolvedSince time.Time) (open, resolved []history.Alert, err error)
	AddSilence(ctx context.Context, n history.Silence) error
	EndSilence(ctx context.Context, id string, at time.Time) error
	Silences(ctx context.Context, after time.Time) ([]history.Silence, error)
}

// Service evaluates the rules while this replica leads, and knows the alerts on every
// replica. Its fields must not change while it runs. It is safe for concurrent use.
type Service struct {
	Store    Store
	Tasks    *queries.Service
	Capacity *capacity.Service
	Loops    func() []loopguard.Loop
	Idle     func(ctx context.Context) (idle []Idle, known bool) // nil without Prometheus
	// Trainings returns the tasks that report their progress to Prometheus; nil without one.
	Trainings func(ctx context.Context) (trainings []Training, known bool)
	Contact   func(now time.Time) (age time.Duration, ok bool)
	Access    *access.Service
	Activity  *activity.Log
	Leader    *leader.Leader
	Log       *slog.Logger
	Now       func() time.Time
	// Policy returns the cluster policy, which has thresholds and receivers; nil for none.
	Policy func(ctx context.Context) (*v1alpha1.ClusterPolicy, error)
	// Departments returns the tree of departments; nil for none.
	Departments func(ctx context.Context) (quota.Departments, error)
	// Notices and Sender deliver alerts; nil delivers none.
	Notices Notices
	Sender  Sender
	Persons Persons // nil without notices to people

	mu       sync.Mutex
	open     []history.Alert // that fired, the newest first
	stale    *history.Alert  // that this replica is stale; nil if it is not
	wasStale *history.Alert  // the last one that is over
	silences []history.Silence
	tree     quota.Departments

	notifying sync.Mutex // guards notifier
	notifier  *notifier  // nil before this replica leads, and once another replica leads
}

// Run evaluates while this replica leads, until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	go s.follow(ctx)
	s.Leader.Lead(ctx, func(ctx context.Context) {
		if err := s.lead(ctx); err != nil && ctx.Err() == nil {
			s.Log.Warn("alerts cannot be evaluated; retrying", "error", err)
			_ = governance.Sleep(ctx, interval)
		}
	})
	return nil
}

// follow reads what another replica saved, and the silences, and notices when this replica
// is stale.
func (s *Service) follow(ctx context.Context) {
	limits := Defaults
	for ; ctx.Err() == nil; _ = governance.Sleep(ctx, interval) {
		if policy, err := s.policy(ctx); err == nil {
			limits = Defaults.with(policy)
		}
		s.watchContact(ctx, limits)
		if err := s.load(ctx); err != nil && ctx.Err() == nil {
			s.Log.Debug("alerts cannot be read; retrying", "error", err)
		}
	}
}

func (s *Service) load(ctx context.Context) error {
	if s.Departments != nil {
		if tree, err := s.Departments(ctx); err == nil { // as it was while it cannot be read
			s.mu.Lock()
			s.tree = tree
			s.mu.Unlock()
		}
	}
	silences, err := s.Store.Silences(ctx, s.Now())
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.silences = silences
	s.mu.Unlock()
	if s.Leader.State().Leads {
		return nil
	}
	open, _, err := s.Store.Alerts(ctx, s.Now())
	if err == nil {
		s.publish(open)
	}
	return err
}

// watchContact fires the alert that this replica is stale. Each replica does so by itself:
// without the API server none leads. The last one that led records and sends the alert: the
// database rejects what others write.
func (s *Service) watchContact(ctx context.Context, limits Thresholds) {
	now := s.Now()
	age, _ := s.Contact(now)
	s.mu.Lock()
	before := s.stale
	switch {
	case age < limits.Stale || limits.IsOff(ConsoleStale):
		s.stale = nil
	case before == nil:
		s.stale = &history.Alert{
			ID: rand.Text(), Rule: string(ConsoleStale), Subject: "console", Since: now.Add(-age), Fired: now,
			Summary: "The API server does not answer the console, so that its pages are stale and its controllers do nothing.",
		}
	}
	alert := s.stale
	if s.stale == nil && before != nil {
		ended := *before
		ended.Resolved = now
		alert, s.wasStale = &ended, &ended
	}
	silences := s.silences
	s.mu.Unlock()
	if alert == nil {
		return
	}
	if !s.ledLast() {
		return
	}
	err := s.Store.SaveAlerts(ctx, []history.Alert{*alert}, nil)
	if err == nil && alert.Resolved.IsZero() { // the leader sends its end
		err = s.notify(ctx, s.receivers(ctx), s.visible(access.Scope{All: true}, []history.Alert{*alert}, silences, now))
	}
	switch {
	case errors.Is(err, history.ErrNotLeader):
		s.notifying.Lock()
		s.notifier = nil
		s.notifying.Unlock()
	case err != nil:
		s.Log.Warn("the alert that the console is stale is not saved", "error", err)
	}
}

// ledLast reports whether no other replica led since this one, as far as this one knows.
func (s *Service) ledLast() bool {
	s.notifying.Lock()
	defer s.notifying.Unlock()
	return s.notifier != nil
}

// fence fails unless this replica sends: while its Lease cannot be renewed, it sends until
// the database refuses what it writes, because another replica leads.
func (s *Service) fence(ctx context.Context) error {
	s.mu.Lock()
	stale := s.stale
	s.mu.Unlock()
	switch {
	case s.Leader.State().Leads:
		return nil
	case stale == nil:
		return errors.New("this replica does not lead")
	}
	return s.Store.SaveAlerts(ctx, []history.Alert{*stale}, nil)
}

// publish sets the alerts that pages show: those that fired.
func (s *Service) publish(open []history.Alert) {
	open = slices.DeleteFunc(open, func(a history.Alert) bool { return a.Fired.IsZero() })
	slices.SortFunc(open, func(a, b history.Alert) int { return cmp.Or(b.Fired.Compare(a.Fired), cmp.Compare(a.ID, b.ID)) })
	s.mu.Lock()
	s.open = open
	s.mu.Unlock()
}

// lead evaluates until ctx ends, and continues with the alerts that the replica
// before saved.
func (s *Service) lead(ctx context.Context) error {
	began := s.Now()
	open, ended, err := s.Store.Alerts(ctx, began.Add(-notifyResolved))
	if err != nil {
		return err
	}
	if err := s.beginNotifying(ctx); err != nil {
		return err
	}
	if s.Sender != nil {
		var sending sync.WaitGroup
		defer sending.Wait()
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		sending.Go(func() { s.send(ctx, s.fence) })
	}
	var prepared time.Time
	m := newMachine(open, began)
	unsaved := map[string]history.Alert{}
	var drops []string
	for ; ctx.Err() == nil; _ = governance.Sleep(ctx, interval) {
		in, complete, err := s.read(ctx)
		if err != nil {
			if governance.KindOf(err) != governance.Unavailable {
				s.Log.Warn("alerts are not evaluated", "error", err)
			}
			continue
		}
		complete[PreemptionLoop] = in.Now.Sub(began) >= loopMemory
		thresholds := s.thresholds(ctx)
		found, err := in.findings(thresholds, complete)
		if err != nil {
			s.Log.Error("a rule cannot be evaluated; its alerts stay as they are", "error", err)
		}
		changed, dropped := m.step(in.Now, thresholds, complete, found)
		for _, a := range changed {
			unsaved[a.ID] = a
		}
		drops = append(drops, dropped...)
		if len(unsaved)+len(drops) > 0 {
			list := slices.Collect(maps.Values(unsaved))
			var err error
			if len(drops) > 0 {
				err = s.Store.SaveAlerts(ctx, nil, drops)
			}
			if err == nil {
				err = history.WriteOrSetAside(ctx, s.Store, "alerts", list, func(ctx context.Context, list []history.Alert) error { return s.Store.SaveAlerts(ctx, list, nil) })
			}
			switch {
			case errors.Is(err, history.ErrNotLeader):
				return err
			case err != nil:
				s.Log.Warn("alerts are not saved; retrying", "error", err)
			default:
				clear(unsaved)
				drops = nil
			}
		}
		for _, a := range changed {
			if !a.Resolved.IsZero() {
				ended = appendEnded(ended, a)
			}
		}
		s.mu.Lock()
		if s.wasStale != nil {
			ended = appendEnded(ended, *s.wasStale)
		}
		s.mu.Unlock()
		ended = slices.DeleteFunc(ended, func(a history.Alert) bool { return in.Now.Sub(a.Resolved) > notifyResolved })
		all := make([]history.Alert, 0, len(m.open))
		for _, e := range m.open {
			all = append(all, e.Alert)
		}
		s.publish(all)
		if len(unsaved) == 0 { // so that no alert is sent that a restart would forget
			everyone := access.Scope{All: true}
			receivers := s.receivers(ctx)
			if s.Sender != nil && in.Now.Sub(prepared) >= prepareInterval {
				s.Sender.Prepare(ctx, receivers)
				prepared = in.Now
			}
			err := s.notify(ctx, receivers, slices.Concat(s.sendable(), s.visible(everyone, ended, nil, in.Now)))
			if errors.Is(err, history.ErrNotLeader) {
				return err
			} else if err != nil {
				s.Log.Warn("messages about alerts are not saved; retrying", "error", err)
			}
		}
	}
	return nil
}

// appendEnded appends an alert, once.
func appendEnded(ended []history.Alert, a history.Alert) []history.Alert {
	if slices.ContainsFunc(ended, func(e history.Alert) bool { return e.ID == a.ID }) {
		return ended
	}
	return append(ended, a)
}

// thresholds returns the defaults with what the policy sets.
func (s *Service) thresholds(ctx context.Context) Thresholds {
	policy, err := s.policy(ctx)
	if err != nil {
		return Defaults
	}
	return Defaults.with(policy)
}

// policy returns what the cluster policy says about alerts; nil for nothing.
func (s *Service) policy(ctx context.Context) (*v1alpha1.Alerts, error) {
	if s.Policy == nil {
		return nil, nil
	}
	policy, err := s.Policy(ctx)
	if policy == nil || err != nil {
		return nil, err
	}
	return policy.Spec.Alerts, nil
}

// read returns the state of the cluster, and the rules that can find everything in it.
func (s *Service) read(ctx context.Context) (in *Input, complete map[Rule]bool, err error) {
	in = &Input{Now: s.Now(), Tasks: s.Tasks.Index.Tasks()}
	reader, err := s.Tasks.Cluster.Reader()
	if err != nil {
		return nil, nil, err
	}
	if in.Teams, err = clusterstate.ReadTeams(ctx, reader); err != nil {
		return nil, nil, err
	}
	var allocations v1alpha1.ComputeAllocationList
	var departments v1alpha1.DepartmentList
	if err := cluster.List(ctx, reader, &allocations, &departments); err != nil {
		return nil, nil, err
	}
	in.Allocations, in.Departments = allocations.Items, departments.Items
	if in.Policy, err = clusterstate.Policy(ctx, reader); err != nil {
		return nil, nil, err
	}
	complete = map[Rule]bool{}
	for _, d := range Rules {
		complete[d.Rule] = d.Rule != TaskIdle && d.Rule != NoCheckpoint && d.Rule != TrainingSlow
	}
	if in.Capacity, err = s.Capacity.Snapshot(ctx); err != nil && governance.KindOf(err) != governance.Unavailable {
		return nil, nil, err
	}
	complete[QuotaIdle], complete[NodesLost] = in.Capacity != nil, in.Capacity != nil
	in.Heads, complete[OwnQuotaWaits] = s.heads(ctx, in)
	complete[NotAdmitted] = complete[OwnQuotaWaits]
	in.Refused, in.LastRefused, err = s.Store.CountSetAside(ctx, in.Now.Add(-refusedPeriod))
	complete[HistoryRefused] = err == nil
	for _, l := range s.Loops() {
		in.Loops = append(in.Loops, Loop{l, s.Tasks.LoopVictim(l)})
	}
	if s.Idle != nil {
		in.Idle, complete[TaskIdle] = s.Idle(ctx)
	}
	if s.Trainings != nil {
		in.Trainings, complete[NoCheckpoint] = s.Trainings(ctx)
		complete[TrainingSlow] = complete[NoCheckpoint]
	}
	return in, complete, nil
}

// heads returns the first waiting task of each LocalQueue with its explanation. It
// reports false while one is not computed.
func (s *Service) heads(ctx context.Context, in *Input) (heads []Head, complete bool) {
	var first []*tasks.Task
	for _, list := range s.Tasks.Index.Waiting(func(index.QueueKey) bool { return true }) {
		if len(list) > 0 && in.Now.Sub(list[0].WaitingSince) >= headWait {
			first = append(first, list[0])
		}
	}
	slices.SortFunc(first, func(a, b *tasks.Task) int {
		return cmp.Or(a.WaitingSince.Compare(b.WaitingSince), cmp.Compare(a.UID, b.UID))
	})
	first = first[:min(maxHeads, len(first))]
	complete = true
	for i, verdict := range s.Tasks.Verdicts(ctx, first, patience) {
		heads = append(heads, Head{first[i], verdict})
		complete = complete && verdict != nil
	}
	return heads, complete
}

// State is what a reader sees of alerts.
type State struct {
	Firing   []Alert // the newest first
	Resolved []Alert // of the last week, the latest first
	Silences []history.Silence
	Thresholds
	// Receivers and the deliveries of the last week, for a scope of all teams.
	Receivers  []v1alpha1.AlertReceiver
	Deliveries []history.Delivery
}

// Alert is an alert as pages show it.
type Alert struct {
	history.Alert
	Description
	Silence     *history.Silence // that hides it; nil for none
	Departments []string         // that its team is in, or that it is about, and those above, the nearest first
}

// Department returns the nearest of the departments; empty for none.
func (a Alert) Department() string {
	if len(a.Departments) == 0 {
		return ""
	}
	return a.Departments[0]
}

// Firing returns the alerts that fire, as a scope sees them.
func (s *Service) Firing(scope access.Scope) []Alert {
	s.mu.Lock()
	open, silences := s.open, s.silences
	if s.stale != nil {
		others := slices.DeleteFunc(slices.Clone(open), func(a history.Alert) bool { return a.Rule == string(ConsoleStale) })
		open = append([]history.Alert{*s.stale}, others...)
	}
	s.mu.Unlock()
	return s.visible(scope, open, silences, s.Now())
}

// sendable returns the alerts that an evaluation sends: all but that this replica is stale,
// which watchContact sends.
func (s *Service) sendable() []Alert {
	return slices.DeleteFunc(s.Firing(access.Scope{All: true}), func(a Alert) bool { return a.Alert.Rule == string(ConsoleStale) })
}

// Count returns how many alerts fire that are not silenced.
func (s *Service) Count(scope access.Scope) (n int) {
	for _, a := range s.Firing(scope) {
		if a.Silence == nil {
			n++
		}
	}
	return n
}

// Within returns the alerts and, for a scope of all teams, the silences.
func (s *Service) Within(ctx context.Context, scope access.Scope) (state State, err error) {
	now := s.Now()
	state.Firing, state.Thresholds = s.Firing(scope), s.thresholds(ctx)
	_, resolved, err := s.Store.Alerts(ctx, now.Add(-resolvedKept))
	if err != nil {
		return state, &governance.Error{Kind: governance.Unavailable, Op: "list alerts", Message: "The history database does not answer, so that resolved alerts and silences are not shown.", Err: err}
	}
	state.Resolved = s.visible(scope, resolved, nil, now)
	if scope.All {
		s.mu.Lock()
		state.Silences = slices.DeleteFunc(slices.Clone(s.silences), func(n history.Silence) bool { return !n.Until.After(now) })
		s.mu.Unlock()
		if state.Receivers = s.receivers(ctx); s.Notices != nil {
			if state.Deliveries, err = s.Notices.Deliveries(ctx, history.DeliveryQuery{Since: now.Add(-resolvedKept)}); err != nil {
				return state, unavailable(err)
			}
		}
	}
	return state, nil
}

// departmentOf returns the department that an alert is about; empty for others.
func departmentOf(a history.Alert) string {
	rest, ok := strings.CutPrefix(a.Subject, departmentSubject)
	if !ok || a.Team != "" {
		return ""
	}
	name, _, _ := strings.Cut(rest, "/")
	return name
}

// visible returns those of the alerts that a scope sees.
func (s *Service) visible(scope access.Scope, list []history.Alert, silences []history.Silence, now time.Time) (seen []Alert) {
	s.mu.Lock()
	tree := s.tree
	s.mu.Unlock()
	for _, a := range list {
		if !scope.All && !scope.Includes(a.Namespace) && !scope.IncludesDepartment(departmentOf(a)) {
			continue
		}
		description, ok := Describe(Rule(a.Rule))
		if !ok { // of another version
			description = Description{Rule: Rule(a.Rule), Title: a.Rule, Severity: Info}
		}
		alert := Alert{Alert: a, Description: description, Departments: tree.Chain(cmp.Or(departmentOf(a), tree.DepartmentOf(a.Team)))}
		for i := range silences {
			if n := &silences[i]; n.Until.After(now) && (n.Rule == "" || n.Rule == a.Rule) && (n.Team == "" || n.Team == a.Team) {
				alert.Silence = n
			}
		}
		seen = append(seen, alert)
	}
	return seen
}

// MaySilence reports whether user may silence alerts: those who may edit the policy.
func (s *Service) MaySilence(ctx context.Context, user governance.User) (bool, error) {
	return s.Access.MayEditPolicy(ctx, user)
}

// Silence silences alerts until n.Until.
func (s *Service) Silence(ctx context.Context, user governance.User, n history.Silence) error {
	if err := s.allowed(ctx, user); err != nil {
		return err
	}
	n.ID, n.Created, n.Actor = rand.Text(), s.Now(), user.Name
	if err := s.Store.AddSilence(ctx, n); err != nil {
		return unavailable(err)
	}
	s.record(user, audit.Silence, cmp.Or(n.Rule, "all"), n.Reason, n.Team, "until "+moment(n.Until))
	return s.refresh(ctx)
}

// EndSilence ends a silence.
func (s *Service) EndSilence(ctx context.Context, user governance.User, id string) error {
	if err := s.allowed(ctx, user); err != nil {
		return err
	}
	s.mu.Lock()
	i := slices.IndexFunc(s.silences, func(n history.Silence) bool { return n.ID == id })
	var n history.Silence
	if i >= 0 {
		n = s.silences[i]
	}
	s.mu.Unlock()
	if i < 0 {
		return nil // it ended
	}
	if err := s.Store.EndSilence(ctx, id, s.Now()); err != nil {
		return unavailable(err)
	}
	s.record(user, audit.EndSilence, cmp.Or(n.Rule, "all"), "", n.Team)
	return s.refresh(ctx)
}

func (s *Service) refresh(ctx context.Context) error {
	if err := s.load(ctx); err != nil {
		return unavailable(err)
	}
	return nil
}

func unavailable(err error) error {
	return &governance.Error{Kind: governance.Unavailable, Op: "silence alerts", Message: "The history database does not answer. Nothing was changed; try again in a moment.", Err: err}
}

func (s *Service) allowed(ctx context.Context, user governance.User) error {
	may, err := s.MaySilence(ctx, user)
	if err == nil && !may {
		err = &governance.Error{Kind: governance.Forbidden, Op: "silence alerts", Message: "Only users who may change the cluster policy can silence alerts."}
	}
	return err
}

func (s *Service) record(user governance.User, action audit.Action, name, reason, team string, changes ...string) {
	s.Activity.Add(history.Activity{
		ID: rand.Text(), At: s.Now(), Actor: user.Name, Address: user.From, Source: history.SourceConsole, Action: string(action),
		Kind: "Alert", Name: name, Team: team, Changes: changes, Reason: reason, Outcome: history.Succeeded,
	})
}
