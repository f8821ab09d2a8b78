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
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/tasks/explain"

	corev1 "k8s.io/api/core/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Shares is how Kueue shares idle compute between teams.
type Shares struct {
	// Fair reports that Kueue shares by shares; otherwise first come, first served.
	Fair  bool
	Teams []TeamShare // that the reader sees, the lowest share first; without Fair empty
	Outlook
}

// TeamShare is the share of one team, as Kueue computes it.
type TeamShare struct {
	Team, Queue string
	Weight      float64
	// Share is how much the team borrows of the resource of which it borrows most, in
	// thousandths of what the cohort can lend, divided by the weight. 0 for a team
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
	var queues kueue.ClusterQueueList
	if err := cluster.List(ctx, v.reader, &queues); err != nil {
		return Shares{}, err
	}
	var all Shares
	for i := range queues.Items {
		q := &queues.Items[i]
		team := v.teams.OfClusterQueue(q.Name)
		if q.Status.FairSharing == nil || team == "" {
			continue
		}
		all.Fair = true
		if v.names != nil && !v.names.own[q.Name] {
			continue
		}
		one := TeamShare{Team: team, Queue: q.Name, Weight: weightOf(q.Spec.FairSharing), Share: float64(q.Status.FairSharing.WeightedShare), Waiting: int(q.Status.PendingWorkloads)}
		if q.Status.FairSharing.WeightedShare == math.MaxInt64 {
			one.Share = math.Inf(1)
		}
		all.Teams = append(all.Teams, one)
	}
	slices.SortFunc(all.Teams, func(a, b TeamShare) int {
		return cmp.Or(cmp.Compare(a.Share, b.Share), strings.Compare(a.Team, b.Team))
	})
	all.Outlook = v.visibleOutlook(s.outlook())
	return all, nil
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

// moreIdle adds idle quota to each cohort whose queues have a FlavorResource, and as
// much of the other resources of its flavor as any task needs.
func moreIdle(s *simulate.Snapshot, fr quota.FlavorResource, amount resources.Amount) (c simulate.Change) {
	names := map[string]map[string]bool{} // resources of the flavor by cohort
	for _, q := range s.ClusterQueues {
		cohort := string(q.Spec.CohortName)
		for of := range quota.ResourceQuotas(q.Spec.ResourceGroups) {
			if cohort == "" || of.Flavor != fr.Flavor {
				continue
			}
			if names[cohort] == nil {
				names[cohort] = map[string]bool{}
			}
			names[cohort][of.Resource] = true
		}
	}
	for name, covered := range names {
		if !covered[fr.Resource] {
			continue
		}
		next := &kueue.Cohort{}
		for _, o := range s.Cohorts {
			if o.Name == name {
				next = o.DeepCopy()
			}
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
