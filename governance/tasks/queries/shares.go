package queries

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/kueue/simulate"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/tasks/explain"

	corev1 "k8s.io/api/core/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Shares is how Kueue shares idle compute between teams.
type Shares struct {
	// Fair reports that Kueue shares by shares; otherwise first come, first served.
	Fair bool
	// Nodes are the teams that the reader sees, and the Cohorts above them but the root,
	// each before what is below it; without Fair empty. Kueue compares the nodes of one
	// parent, which follow each other with the lowest share first.
	Nodes []NodeShare
	Outlook
}

// NodeShare is the share of a team, or of a Cohort below the root, as Kueue computes it.
type NodeShare struct {
	Team, Queue string // empty for a Cohort
	OfShare     string // the share of the team that the queue is of; empty for the team's own
	Cohort      string // the words that name it; empty for a team
	Level       int    // 0 below the root
	Weight      float64
	// Share is how much the node borrows of the resource of which it borrows most, in
	// thousandths of what its parent can have, divided by the weight. 0 for one
	// that does not borrow; +Inf for one with weight 0 that does.
	Share   float64
	Waiting int // tasks
}

// Outlook is what Kueue's scheduler does next, by a simulation.
type Outlook struct {
	Computing bool
	Failed    error // why it could not be simulated; nil if it was
	At        time.Time
	Next      []Next
	// Preempted are the tasks that are preempted next, each with the one for which.
	Preempted []Preemption
}

// Next is the task that starts when compute becomes idle.
type Next struct {
	quota.FlavorResource
	Amount resources.Amount // the least that starts one
	Tasks  []explain.AdmittedWorkload
	Tied   bool
}

// Preemption is a task that is preempted for another one.
type Preemption struct{ Of, For []explain.AdmittedWorkload } // one each, or what of it is visible

// outlooks computes the outlook while a page shows it. Its zero value is ready.
type outlooks struct {
	mu      sync.Mutex
	latest  Outlook // for a reader who sees everything
	took    time.Duration
	changes uint64
	running bool
}

const (
	// triedResources is how many pools and resources the next task is looked for in.
	triedResources = 4
	// mostIdle is the most idle compute that is tried.
	mostIdle = 1024
)

// SharesWithin returns the shares that a scope may see.
func (s *Service) SharesWithin(ctx context.Context, scope access.Scope) (Shares, error) {
	v, err := s.within(ctx, scope)
	if err != nil {
		return Shares{}, err
	}
	queues, err := cluster.All[kueue.ClusterQueue](ctx, v.reader)
	if err != nil {
		return Shares{}, err
	}
	var cohorts kueue.CohortList
	if err := cluster.List(ctx, v.reader, &cohorts); err != nil {
		return Shares{}, err
	}
	var all Shares
	below := map[string][]NodeShare{} // by parent; empty for the root
	for _, q := range queues {
		team := v.teams.OfClusterQueue(q.Name)
		if q.Status.FairSharing == nil || team == "" {
			continue
		}
		all.Fair = true
		if v.names != nil && !v.names.own[q.Name] {
			continue
		}
		one := NodeShare{Team: team, OfShare: q.Labels[desired.LabelShare], Queue: q.Name, Weight: weightOf(q.Spec.FairSharing), Share: shareOf(q.Status.FairSharing), Waiting: int(q.Status.PendingWorkloads)}
		below[string(q.Spec.CohortName)] = append(below[string(q.Spec.CohortName)], one)
	}
	all.Nodes = shareTree(quota.NewCohorts(cohorts.Items), below)
	all.Outlook = v.visibleOutlook(s.outlook())
	return all, nil
}

func shareOf(f *kueue.FairSharingStatus) float64 {
	switch {
	case f == nil:
		return 0
	case f.WeightedShare == math.MaxInt64:
		return math.Inf(1)
	}
	return float64(f.WeightedShare)
}

// shareTree returns the shares of teams, by Cohort, with those of the Cohorts above them.
func shareTree(objects quota.Cohorts, teams map[string][]NodeShare) (list []NodeShare) {
	type child struct {
		NodeShare
		cohort string // empty for a team
	}
	children, known := map[string][]child{}, map[string]bool{} // children by parent; empty for a root
	under := func(cohort string) string {
		if objects.Parent(cohort) == "" {
			return ""
		}
		return cohort
	}
	for name, shares := range teams {
		for _, one := range shares {
			children[under(name)] = append(children[under(name)], child{NodeShare: one})
		}
		path, cycle := objects.Path(name)
		for _, above := range path {
			if o := objects[above]; !cycle && o != nil && o.Spec.ParentName != "" && !known[above] {
				known[above] = true
				one := NodeShare{Cohort: objects.Title(above), Weight: weightOf(o.Spec.FairSharing), Share: shareOf(o.Status.FairSharing)}
				of := under(string(o.Spec.ParentName))
				children[of] = append(children[of], child{one, above})
			}
		}
	}
	var add func(of string, level int) (waiting int)
	add = func(of string, level int) (waiting int) {
		slices.SortFunc(children[of], func(a, b child) int {
			return cmp.Or(cmp.Compare(a.Share, b.Share), strings.Compare(a.Cohort, b.Cohort), strings.Compare(a.Team, b.Team))
		})
		for _, c := range children[of] {
			c.Level = level
			at := len(list)
			if list = append(list, c.NodeShare); c.cohort != "" {
				list[at].Waiting = add(c.cohort, level+1)
			}
			waiting += list[at].Waiting
		}
		return waiting
	}
	add("", 0)
	return list
}

// visibleOutlook returns an outlook with the names that the viewer may see.
func (v viewer) visibleOutlook(o Outlook) Outlook {
	o.Next, o.Preempted = slices.Clone(o.Next), slices.Clone(o.Preempted)
	for i := range o.Next {
		o.Next[i].Tasks = v.visibleWorkloads(o.Next[i].Tasks)
	}
	for i := range o.Preempted {
		p := &o.Preempted[i]
		p.Of, p.For = v.visibleWorkloads(p.Of), v.visibleWorkloads(p.For)
	}
	// Pairs without a name would reveal how many there are.
	o.Preempted = slices.DeleteFunc(o.Preempted, func(p Preemption) bool { return !named(p.Of) && !named(p.For) })
	return o
}

func named(list []explain.AdmittedWorkload) bool {
	return slices.ContainsFunc(list, func(a explain.AdmittedWorkload) bool { return a.Name != "" })
}

// outlook returns the latest outlook, and computes it in the background if it is old.
func (s *Service) outlook() Outlook {
	if s.Simulator == nil {
		return Outlook{}
	}
	o := &s.outlooks
	o.mu.Lock()
	defer o.mu.Unlock()
	age := s.Index.Now().Sub(o.latest.At)
	changed := o.changes != s.Cluster.TaskChanges.Count()+s.Cluster.AllocationChanges.Count()
	if !o.running && (o.latest.At.IsZero() || changed && age > max(adviceAge, 4*o.took)) {
		o.running = true
		go s.computeOutlook()
	}
	latest := o.latest
	latest.Computing = o.running && latest.At.IsZero()
	return latest
}

func (s *Service) computeOutlook() {
	ctx, cancel := context.WithTimeout(context.Background(), adviceTimeout)
	defer cancel()
	began, changes := time.Now(), s.Cluster.TaskChanges.Count()+s.Cluster.AllocationChanges.Count()
	var latest Outlook
	latest.Failed = governance.Recovered(func() (err error) {
		latest, err = s.lookAhead(ctx)
		return err
	})
	if latest.At.IsZero() {
		latest.At = s.Index.Now()
	}
	o := &s.outlooks
	o.mu.Lock()
	o.latest, o.took, o.changes, o.running = latest, time.Since(began), changes, false
	o.mu.Unlock()
	s.AdviceChanges.Notify()
}

// lookAhead simulates what happens next, and with more idle compute.
func (s *Service) lookAhead(ctx context.Context) (o Outlook, err error) {
	v, err := s.within(ctx, access.Scope{All: true})
	if err != nil {
		return o, err
	}
	snapshot, err := s.Simulator.Snapshot(ctx)
	if err != nil {
		return o, err
	}
	o.At = snapshot.Time
	names := newWorkloadNames(snapshot, v)
	now, err := s.Simulator.Answer(ctx, snapshot, &simulate.Question{Ties: 1})
	if err != nil {
		return o, err
	}
	for _, e := range now.Preempted {
		p := Preemption{Of: names.of([]simulate.Effect{e}, nil), For: names.of([]simulate.Effect{{Workload: e.By}}, nil)}
		o.Preempted = append(o.Preempted, p)
	}
	for _, fr := range wanted(snapshot) {
		next, err := s.next(ctx, snapshot, fr)
		if err != nil {
			return o, err
		}
		if len(next.started) > 0 {
			o.Next = append(o.Next, Next{FlavorResource: fr, Amount: next.amount, Tasks: names.of(next.started, nil), Tied: next.tied})
		}
	}
	return o, nil
}

// nextStart is which Workloads start with some more idle compute.
type nextStart struct {
	amount  resources.Amount
	started []simulate.Effect
	tied    bool
}

// next finds the least idle compute in a pool that starts a task, and which.
func (s *Service) next(ctx context.Context, snapshot *simulate.Snapshot, fr quota.FlavorResource) (found nextStart, err error) {
	try := func(amount resources.Amount) (bool, error) {
		r, err := s.Simulator.Answer(ctx, snapshot, &simulate.Question{Change: moreIdle(snapshot, fr, amount), Ties: 2})
		if err != nil {
			return false, err
		}
		started := slices.DeleteFunc(slices.Clone(r.Started), func(e simulate.Effect) bool { return e.Anyway || e.Usage[fr] == 0 })
		if len(started) > 0 {
			first := started[0].After
			started = slices.DeleteFunc(started, func(e simulate.Effect) bool { return e.After > first })
			found = nextStart{amount: amount, started: started, tied: slices.ContainsFunc(started, func(e simulate.Effect) bool { return e.Tied })}
		}
		return len(started) > 0, nil
	}
	low, high := resources.Amount(0), resources.Amount(1)
	for {
		ok, err := try(high)
		if err != nil {
			return nextStart{}, err
		}
		if ok {
			break
		}
		if low, high = high, high.Times(int64(2)); high > mostIdle {
			return nextStart{}, nil
		}
	}
	for high.Minus(low) > 1 {
		middle := (low.Plus(high)) / 2
		ok, err := try(middle)
		if err != nil {
			return nextStart{}, err
		}
		if ok {
			high = middle
		} else {
			low = middle
		}
	}
	return found, nil
}

// wanted returns the accelerators, by flavor, for which Workloads may wait.
func wanted(s *simulate.Snapshot) (list []quota.FlavorResource) {
	requested := map[string]bool{}
	for _, w := range s.Workloads {
		if w.Status.Admission != nil {
			continue
		}
		for i := range w.Spec.PodSets {
			for j := range w.Spec.PodSets[i].Template.Spec.Containers {
				for name := range w.Spec.PodSets[i].Template.Spec.Containers[j].Resources.Requests {
					requested[string(name)] = true
				}
			}
		}
	}
	for _, q := range s.ClusterQueues {
		if q.Spec.CohortName == "" {
			continue
		}
		for fr := range quota.ResourceQuotas(q.Spec.ResourceGroups) {
			if strings.Contains(fr.Resource, "/") && requested[fr.Resource] && !slices.Contains(list, fr) {
				list = append(list, fr)
			}
		}
	}
	slices.SortFunc(list, func(a, b quota.FlavorResource) int {
		return cmp.Or(strings.Compare(a.Flavor, b.Flavor), strings.Compare(a.Resource, b.Resource))
	})
	return list[:min(len(list), triedResources)]
}

// moreIdle adds idle quota to the root of each tree of Cohorts whose queues have a
// FlavorResource, and as much of the other resources of its flavor as any task needs.
func moreIdle(s *simulate.Snapshot, fr quota.FlavorResource, amount resources.Amount) (c simulate.Change) {
	objects := quota.Cohorts{}
	for _, o := range s.Cohorts {
		objects[o.Name] = o
	}
	names := map[string]map[string]bool{} // resources of the flavor by root
	for _, q := range s.ClusterQueues {
		root := objects.Root(string(q.Spec.CohortName))
		for of := range quota.ResourceQuotas(q.Spec.ResourceGroups) {
			if root == "" || of.Flavor != fr.Flavor {
				continue
			}
			if names[root] == nil {
				names[root] = map[string]bool{}
			}
			names[root][of.Resource] = true
		}
	}
	for name, covered := range names {
		if !covered[fr.Resource] {
			continue
		}
		next := &kueue.Cohort{}
		if o := objects[name]; o != nil {
			next = o.DeepCopy()
		}
		next.Name = name
		for resource := range covered {
			more := resources.Amount(math.MaxInt32 << 10)
			if resource == fr.Resource {
				more = amount
			}
			addQuota(next, quota.FlavorResource{Flavor: fr.Flavor, Resource: resource}, more)
		}
		c.Cohorts = append(c.Cohorts, next)
	}
	slices.SortFunc(c.Cohorts, func(a, b *kueue.Cohort) int { return strings.Compare(a.Name, b.Name) })
	return c
}

// addQuota adds quota to that of a cohort.
func addQuota(c *kueue.Cohort, fr quota.FlavorResource, amount resources.Amount) {
	for of, r := range quota.ResourceQuotas(c.Spec.ResourceGroups) {
		if of == fr {
			r.NominalQuota.Add(amount.Quantity(fr.Resource))
			return
		}
	}
	name := corev1.ResourceName(fr.Resource)
	c.Spec.ResourceGroups = append(c.Spec.ResourceGroups, kueue.ResourceGroup{CoveredResources: []corev1.ResourceName{name}, Flavors: []kueue.FlavorQuotas{{
		Name: kueue.ResourceFlavorReference(fr.Flavor), Resources: []kueue.ResourceQuota{{Name: name, NominalQuota: amount.Quantity(fr.Resource)}}}}})
}
