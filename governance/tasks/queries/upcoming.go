package queries

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/kueue/simulate"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/index"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Upcoming are the tasks that wait, of all teams, in the order in which Kueue tries to
// admit them.
type Upcoming struct {
	At          time.Time
	Items       []UpcomingItem // of a page
	Page, Pages int            // from 1
	// Total counts the waiting tasks that the filters select, and Waiting all that the
	// viewer sees.
	Total, Waiting int
	FairSharing    bool // of a queue that the viewer sees: Kueue compares shares
	// The choices of filters, of the waiting tasks that the viewer sees.
	Teams, PriorityClasses []string
}

// UpcomingItem is a task that waits. Its Position is that in its LocalQueue.
type UpcomingItem struct {
	Item
	Order int // among those that the query selects, from 1; 0 if Kueue does not try it now
	// ClusterQueuePosition counts from 1. It is 0 if the viewer may not see all tasks of
	// the ClusterQueue, which Shared reports, or if there is no ClusterQueue.
	ClusterQueuePosition int
	Shared               bool
}

// UpcomingQuery selects waiting tasks. Teams and PriorityClasses without values select
// all.
type UpcomingQuery struct {
	Teams, PriorityClasses []string      // of a class, the name of its object; "" is none
	Page                   int           // from 1; the nearest one that exists
	All                    bool          // on one page
	Patience               time.Duration // how long to wait for verdicts that are not computed yet
}

// matches reports whether the query selects a task that the viewer sees.
func (q UpcomingQuery) matches(v viewer, t *tasks.Task) bool {
	return v.seesNamespace(t.Namespace) && (len(q.Teams) == 0 || slices.Contains(q.Teams, v.team(t.Place()))) && (len(q.PriorityClasses) == 0 || slices.Contains(q.PriorityClasses, t.PriorityClass))
}

// UpcomingWithin returns a page of the waiting tasks that a scope may see, in the order in
// which Kueue tries to admit them. The first index.PageSize of the page have verdicts.
//
// In each cycle Kueue takes the first task of each ClusterQueue and compares these, with
// fair sharing level by level of the Cohorts. The order assumes that each task starts before
// the next one is compared, with the present usage of all queues, see explain.Turn. In a
// flat cohort what decides over a task is its own queue alone; in other trees all queues
// count, also those that the viewer does not see. So all readers see the same relative order.
func (s *Service) UpcomingWithin(ctx context.Context, scope access.Scope, q UpcomingQuery) (Upcoming, error) {
	v, err := s.within(ctx, scope)
	if err != nil {
		return Upcoming{}, err
	}
	u, err := s.upcoming(ctx, v, q)
	if err != nil {
		return Upcoming{}, err
	}
	items := make([]Item, min(len(u.Items), index.PageSize))
	for i := range items {
		items[i] = u.Items[i].Item
	}
	s.explainAll(ctx, items, make([]bool, len(items)), q.Patience, briefAge)
	for i := range items {
		u.Items[i].Item = items[i]
	}
	return u, nil
}

// upcoming is UpcomingWithin for a viewer, without verdicts.
func (s *Service) upcoming(ctx context.Context, v viewer, q UpcomingQuery) (Upcoming, error) {
	lines, err := s.lines(ctx, v)
	if err != nil {
		return Upcoming{}, err
	}
	u := Upcoming{At: v.index.Now()}
	u.count(v, lines, q)
	var from, to int
	u.Page, u.Pages, from, to = index.PageOf(u.Total, q.Page, q.All)
	order, later, left := 0, []waiting{}, u.Total // left are those that the query selects
	c := newContest()
	advance := func(l *line) (more bool) {
		before := len(later)
		more = l.next(&later)
		for _, w := range later[before:] {
			if q.matches(v, w.task) {
				left--
			}
		}
		return more
	}
	for _, l := range lines {
		if u.FairSharing = u.FairSharing || l.fair; advance(l) {
			c.field(l.path).insert(entrant{line: l})
		}
	}
	c.begin()
	for left > 0 && order < to {
		l, again := c.next()
		if l == nil {
			break
		}
		head := l.head
		l.contender.Take(l.turn)
		again(advance(l))
		if !q.matches(v, head.task) {
			continue
		}
		left--
		if order++; order > from {
			u.add(v, head, order)
		}
	}
	later = slices.DeleteFunc(later, func(w waiting) bool { return !q.matches(v, w.task) })
	slices.SortFunc(later, func(a, b waiting) int { return index.InQueue(a.task, b.task) })
	for i, w := range later {
		if at := order + i; from <= at && at < to {
			u.add(v, w, 0)
		}
	}
	return u, nil
}

// count sets the numbers, the choices of filters, and the end of each line: after the
// last task that the query selects, unless it counts for other lines.
func (u *Upcoming) count(v viewer, lines []*line, q UpcomingQuery) {
	teams, classes := map[string]bool{}, map[string]bool{}
	for _, l := range lines {
		for i, t := range l.list {
			if !v.seesNamespace(t.Namespace) {
				continue
			}
			u.Waiting++
			if teams[v.team(t.Place())], classes[t.PriorityClass] = true, true; q.matches(v, t) {
				u.Total, l.end = u.Total+1, i+1
			}
		}
		if l.nested {
			l.end = len(l.list)
		}
	}
	delete(teams, "")
	u.Teams, u.PriorityClasses = slices.Sorted(maps.Keys(teams)), slices.Sorted(maps.Keys(classes))
}

// add adds a task. order is 0 if Kueue does not try it now.
func (u *Upcoming) add(v viewer, w waiting, order int) {
	place, _ := v.index.Position(w.task)
	item := UpcomingItem{Item: v.item(w.task, place), Order: order, ClusterQueuePosition: w.position, Shared: w.line.shared}
	if w.line.shared {
		item.ClusterQueuePosition = 0
	}
	u.Items = append(u.Items, item)
}

// waiting is a task of a line. position is that in its ClusterQueue, from 1; 0 for none.
type waiting struct {
	task     *tasks.Task
	line     *line
	position int
}

// line is the tasks that wait in one ClusterQueue, in its order.
type line struct {
	list      []*tasks.Task
	shared    bool // with namespaces that the viewer does not see
	contender explain.Contender
	fair      bool                    // Kueue compares shares
	nested    bool                    // in a tree with several levels of Cohorts
	path      []string                // its Cohorts with fair sharing, the root last
	cycle     []string                // its Cohorts, if they form a cycle
	stopped   map[index.QueueKey]bool // LocalQueues
	now       time.Time
	at, end   int     // in list: of the next task, and behind the last
	head      waiting // the one before it
	turn      explain.Turn
}

// next sets the next task that Kueue tries, and appends those before it that Kueue does
// not try now to later. It returns false at the end.
func (l *line) next(later *[]waiting) bool {
	for l.at < l.end {
		t := l.list[l.at]
		l.at++
		l.head = waiting{task: t, line: l, position: l.at}
		if l.contender.Queue == nil {
			l.head.position = 0
		}
		asked := explainInput(t)
		if !explain.Considered(asked, &explain.Cluster{Now: l.now, LocalQueue: t.Queue, LocalQueueStopped: l.stopped[index.QueueKey{Namespace: t.Namespace, Queue: t.Queue}], Queue: l.contender.Queue, CohortCycle: l.cycle}) {
			*later = append(*later, l.head)
			continue
		}
		l.turn = l.contender.Turn(asked, index.QueuedAt(t))
		return true
	}
	return false
}

// refresh computes the turn of the head with the present usage.
func (l *line) refresh() {
	l.turn = l.contender.Turn(explainInput(l.head.task), index.QueuedAt(l.head.task))
}

// compare orders lines by whose head Kueue processes first in a Cohort at a depth. Ties are
// broken by name: Kueue leaves them to chance.
func (l *line) compare(other *line, depth int) int {
	a, b := l.head.task, other.head.task
	return cmp.Or(l.turn.Compare(other.turn, depth), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// lines returns the line of each ClusterQueue in which the viewer sees a waiting task.
// Tasks of a LocalQueue without a ClusterQueue are a line that Kueue tries nothing of.
func (s *Service) lines(ctx context.Context, v viewer) ([]*line, error) {
	locals, err := cluster.All[kueue.LocalQueue](ctx, v.reader)
	if err != nil {
		return nil, err
	}
	of, stopped := make(map[index.QueueKey]*kueue.LocalQueue, len(locals)), map[index.QueueKey]bool{}
	seen, hides := map[string]bool{}, map[string]bool{} // ClusterQueues with namespaces that the viewer sees, and others
	for _, q := range locals {
		key := index.QueueKey{Namespace: q.Namespace, Queue: q.Name}
		of[key], stopped[key] = q, isStopped(q.Spec.StopPolicy)
		if v.seesNamespace(key.Namespace) {
			seen[string(q.Spec.ClusterQueue)] = true
		} else {
			hides[string(q.Spec.ClusterQueue)] = true
		}
	}
	around := newSurvey(v)
	if err := around.readQueues(ctx); err != nil {
		return nil, err
	}
	nested := around.nested()
	counts := map[string]bool{} // trees whose queues all count, of those that the viewer sees
	for name := range seen {
		if root := around.roots[name]; nested[root] {
			counts[root] = true
		}
	}
	lists := v.index.Waiting(func(key index.QueueKey) bool {
		return v.seesNamespace(key.Namespace) || of[key] != nil && (seen[string(of[key].Spec.ClusterQueue)] || counts[around.roots[string(of[key].Spec.ClusterQueue)]])
	})
	byQueue := map[string][]index.QueueKey{}
	for key := range lists {
		name := ""
		if of[key] != nil {
			name = string(of[key].Spec.ClusterQueue)
		}
		byQueue[name] = append(byQueue[name], key)
	}
	contests := around.contests(byQueue)
	var lines []*line
	asks := maxAsked
	for name, keys := range byQueue {
		l := &line{stopped: stopped, now: v.index.Now(), shared: hides[name], nested: nested[around.roots[name]]}
		lines = append(lines, l)
		var parts [][]*tasks.Task
		for _, key := range keys {
			parts = append(parts, lists[key])
		}
		l.list = index.MergeQueues(parts...)
		own := around.queues[name]
		if own == nil {
			continue
		}
		l.fair = own.Status.FairSharing != nil
		path, cycle := around.objects.Path(string(own.Spec.CohortName))
		switch {
		case cycle:
			l.cycle = path
		case l.fair:
			l.path = path
		}
		l.contender = explain.Contender{Queue: v.clusterQueue(own), Flavors: map[string]kueue.ResourceFlavorSpec{}, Contest: contests[name]}
		if ordersByUsage(own) {
			asks -= len(keys)
			if err := s.orderByUsage(ctx, v, l, keys, of, asks >= 0); err != nil {
				return nil, err
			}
		}
		for _, flavor := range l.contender.Queue.Flavors {
			found, err := around.flavor(ctx, flavor)
			if err != nil {
				return nil, err
			}
			if found != nil {
				l.contender.Flavors[flavor] = *found
			}
		}
	}
	return lines, nil
}

// orderByUsage orders a line whose ClusterQueue takes the LocalQueue with the lowest
// usage first, as Kueue sampled it last. The first tasks are in Kueue's own order if ask
// is set and the visibility API answers.
func (s *Service) orderByUsage(ctx context.Context, v viewer, l *line, keys []index.QueueKey, of map[index.QueueKey]*kueue.LocalQueue, ask bool) error {
	weights, err := v.usageWeights(ctx)
	if err != nil {
		return err
	}
	relative, sampled := map[index.QueueKey]float64{}, false
	for _, key := range keys {
		share := queueShare(of[key], weights)
		relative[key], sampled = share.relative(), sampled || !share.SampledAt.IsZero()
	}
	if !sampled {
		return nil
	}
	l.list = slices.Clone(l.list)
	slices.SortStableFunc(l.list, func(a, b *tasks.Task) int {
		return cmp.Compare(relative[index.QueueKey{Namespace: a.Namespace, Queue: a.Queue}], relative[index.QueueKey{Namespace: b.Namespace, Queue: b.Queue}])
	})
	if head := l.list[:min(len(l.list), windowStep)]; ask {
		if places := s.placesByKueue(ctx, v, head); places != nil {
			slices.SortStableFunc(head, func(a, b *tasks.Task) int {
				return cmp.Compare(places[simulate.WorkloadKey(a.Main)], places[simulate.WorkloadKey(b.Main)])
			})
		}
	}
	return nil
}

// contests returns the contest of each of these ClusterQueues: those of a tree share one.
func (s *survey) contests(names map[string][]index.QueueKey) map[string]*explain.Contest {
	trees, queues := map[string]*tree{}, map[string]*explain.Queue{} // trees by the name of a queue
	byRoot := map[string]*tree{}
	for name := range names {
		own, root := s.queues[name], s.roots[name]
		switch {
		case own == nil:
			continue
		case root == "":
			alone := s.cohortMember(own)
			alone.Cohort = ""
			trees[name] = &tree{queues: map[string]*explain.Queue{name: alone}}
		case byRoot[root] == nil:
			byRoot[root] = s.members(root)
			fallthrough
		default:
			trees[name] = byRoot[root]
		}
		maps.Copy(queues, trees[name].queues)
	}
	s.index.SetUsage(queues)
	made, contests := map[*tree]*explain.Contest{}, map[string]*explain.Contest{}
	for name, of := range trees {
		if made[of] == nil {
			made[of] = explain.NewContest(of.queues, of.cohorts, s.queues[name].Status.FairSharing != nil)
		}
		contests[name] = made[of]
	}
	return contests
}

// nested returns the roots of trees with several levels of Cohorts.
func (s *survey) nested() map[string]bool {
	found := map[string]bool{}
	for name, o := range s.objects {
		if root := s.objects.Root(name); o.Spec.ParentName != "" && root != "" {
			found[root] = true
		}
	}
	return found
}
