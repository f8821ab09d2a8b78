package capacity

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/report/usage"
	"kuota.dev/kuota/governance/spec/describe"
	"kuota.dev/kuota/governance/tasks/index"

	corev1 "k8s.io/api/core/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// input is everything that a snapshot is computed from.
type input struct {
	at          time.Time
	cohort      string // whose tree has all team queues, and whose own quota is allocated to no team
	prices      *v1alpha1.Prices
	typeLabel   string
	catalog     catalog.Catalog
	nodes       corev1.NodeList
	cohorts     kueue.CohortList
	queues      []*kueue.ClusterQueue
	localQueues []*kueue.LocalQueue
	allocations []*v1alpha1.ComputeAllocation
	departments v1alpha1.DepartmentList
	occupied    index.ClusterUsage
}

// queue is the quota and the usage of a ClusterQueue.
type queue struct {
	team         string // empty for a queue without a team
	cohort       string
	nominal      quota.FlavorResourceQuantities
	lendingLimit quota.FlavorResourceQuantities
	usage        quota.FlavorResourceQuantities
}

// cohort is a Cohort with an object.
type cohort struct {
	name, parent string
	quotas       map[quota.FlavorResource]*kueue.ResourceQuota
}

// summing is a snapshot in progress.
type summing struct {
	input
	teams      map[string]*TeamSnapshot // by name; "" is for ClusterQueues without a team
	teamOf     clusterstate.Teams
	order      []string // of teams
	queues     []queue
	pools      map[string]*PoolSnapshot
	poolUsages map[quota.FlavorResource]*usage.PoolUsage
	teamUsages map[string]map[quota.FlavorResource]*usage.TeamUsage // by team
	bound      map[string]map[quota.FlavorResource]resources.Amount
	nodes      []NodeSnapshot
}

func (in input) sum() *Snapshot {
	s := summing{
		input: in, teams: map[string]*TeamSnapshot{"": {}}, teamOf: clusterstate.NewTeams(in.allocations, in.queues, in.localQueues), pools: map[string]*PoolSnapshot{}, poolUsages: map[quota.FlavorResource]*usage.PoolUsage{},
		teamUsages: map[string]map[quota.FlavorResource]*usage.TeamUsage{}, bound: map[string]map[quota.FlavorResource]resources.Amount{},
	}
	s.addTeams()
	s.addQueues()
	s.addPools()
	for i := range in.nodes.Items {
		s.addNode(&in.nodes.Items[i])
	}
	s.addTeamUsages()
	s.addLoans()
	return s.snapshot()
}

func (s *summing) addTeams() {
	tree := quota.NewDepartments(s.departments.Items, s.allocations, s.catalog)
	for _, a := range s.allocations {
		t := &TeamSnapshot{Name: a.Name, DisplayName: a.Spec.DisplayName, Namespace: a.Status.Namespace, Weight: a.Spec.FairShareWeight, Overrides: describe.Active(a), Budget: describe.BudgetUsage(a)}
		t.Held, t.HeldText = describe.Held(a, tree.Above(a.Spec.Department)...)
		s.teams[a.Name] = t
	}
	s.order = slices.Sorted(maps.Keys(s.teams))
	for place, in := range s.occupied.Places {
		t := s.teams[s.teamOf.Of(place)]
		t.Running += in.Running
		t.Waiting += in.Waiting
	}
}

func (s *summing) addQueues() {
	for _, o := range s.input.queues {
		q := queue{team: s.teamOf.OfClusterQueue(o.Name), cohort: string(o.Spec.CohortName), nominal: quota.FlavorResourceQuantities{}, lendingLimit: quota.FlavorResourceQuantities{}, usage: s.occupied.Queues[o.Name]}
		for fr, r := range quota.ResourceQuotas(o.Spec.ResourceGroups) {
			q.nominal[fr] = resources.AmountFromQuantity(fr.Resource, r.NominalQuota)
			q.lendingLimit[fr] = q.nominal[fr]
			if r.LendingLimit != nil {
				q.lendingLimit[fr] = resources.AmountFromQuantity(fr.Resource, *r.LendingLimit)
			}
		}
		s.queues = append(s.queues, q)
		for fr, amount := range q.nominal {
			if amount > 0 {
				s.teamUsage(q.team, fr).Nominal = s.teamUsage(q.team, fr).Nominal.Plus(amount)
			}
		}
		for fr, amount := range q.usage {
			share := s.teamUsage(q.team, fr)
			share.Usage = share.Usage.Plus(amount)
			share.Borrowed = share.Borrowed.Plus(max(0, amount.Minus(q.nominal[fr])))
			share.Own = share.Usage.Minus(share.Borrowed)
		}
		for fr, amount := range s.occupied.Growth[o.Name] {
			s.teamUsage(q.team, fr).Growth = s.teamUsage(q.team, fr).Growth.Plus(amount)
		}
	}
}

func (s *summing) teamUsage(team string, fr quota.FlavorResource) *usage.TeamUsage {
	of := s.teamUsages[team]
	if of == nil {
		of = map[quota.FlavorResource]*usage.TeamUsage{}
		s.teamUsages[team] = of
	}
	if of[fr] == nil {
		of[fr] = &usage.TeamUsage{}
	}
	return of[fr]
}

func (s *summing) poolUsage(fr quota.FlavorResource) *usage.PoolUsage {
	if s.poolUsages[fr] == nil {
		s.poolUsages[fr] = &usage.PoolUsage{}
		s.pool(fr.Flavor)
	}
	return s.poolUsages[fr]
}

func (s *summing) pool(name string) *PoolSnapshot {
	if s.pools[name] == nil {
		s.pools[name] = &PoolSnapshot{Name: name}
	}
	return s.pools[name]
}

func (s *summing) addPools() {
	for _, p := range s.catalog.Pools() {
		pool := s.pool(p.Name)
		pool.Types, pool.AcceleratorModel, pool.AcceleratorMemory = p.Types, p.Instance.AcceleratorModel, p.Instance.AcceleratorMemory
	}
}

func (s *summing) addNode(o *corev1.Node) {
	n := NodeSnapshot{
		Name: o.Name, Pool: s.catalog.PoolOf(o), Type: o.Labels[s.typeLabel], Created: o.CreationTimestamp.Time,
		Physical: quota.Resources{}, Allocatable: quota.Resources{}, Bound: quota.Resources{}, Outside: quota.Resources{}, Free: quota.Resources{}, Teams: map[string]quota.Resources{},
	}
	if n.Pool == "" {
		return
	}
	n.State, n.Since, n.Message = stateOf(o)
	works := catalog.Schedulable(o)
	on := s.occupied.Nodes[o.Name]
	n.Pods = on.Pods
	for name, amount := range o.Status.Allocatable {
		n.Allocatable[string(name)] = resources.AmountFromQuantity(string(name), amount)
		n.Free[string(name)] = 0
		if works {
			n.Free[string(name)] = max(0, n.Allocatable[string(name)].Minus(on.Requests[string(name)]))
		}
	}
	pool := s.pool(n.Pool)
	pool.Nodes++
	switch n.State {
	case Ready:
		pool.Ready++
	case Recovering:
		pool.Recovering++
	case Cordoned:
		pool.Cordoned++
	}
	admitted := map[string]quota.Resources{} // by team
	for place, asked := range on.Admitted {
		team := s.teamOf.Of(place)
		if admitted[team] == nil {
			admitted[team] = quota.Resources{}
		}
		admitted[team].Add(asked)
	}
	all := s.catalog.NodeResources(o)
	for resource, has := range all {
		one := usage.Node{Physical: physical(o, resource, has, all), Requests: map[string]resources.Amount{}, Outside: on.Requests[resource]}
		if works {
			one.Usable = min(has.Reported, one.Physical)
		}
		for team, asked := range admitted {
			one.Requests[team] = asked[resource]
			one.Outside = one.Outside.Minus(asked[resource])
		}
		parts := one.Usage(s.order)
		fr := quota.FlavorResource{Flavor: n.Pool, Resource: resource}
		sum := s.poolUsage(fr)
		for team, amount := range parts.Bound {
			n.Bound[resource] = n.Bound[resource].Plus(amount)
			if n.Teams[team] == nil {
				n.Teams[team] = quota.Resources{}
			}
			n.Teams[team][resource] = amount
			if s.bound[team] == nil {
				s.bound[team] = map[quota.FlavorResource]resources.Amount{}
			}
			s.bound[team][fr] = s.bound[team][fr].Plus(amount)
		}
		n.Physical[resource], n.Outside[resource] = one.Physical, parts.Outside
		sum.Physical = sum.Physical.Plus(one.Physical)
		sum.Outside = sum.Outside.Plus(parts.Outside)
		sum.Unhealthy = sum.Unhealthy.Plus(parts.Unhealthy)
		sum.Idle = sum.Idle.Plus(parts.Idle)
		sum.LargestFree = max(sum.LargestFree, min(n.Free[resource], parts.Idle))
		switch n.State {
		case Recovering:
			sum.Recovering = sum.Recovering.Plus(one.Physical)
		case Cordoned:
			sum.Cordoned = sum.Cordoned.Plus(one.Physical)
		}
	}
	s.nodes = append(s.nodes, n)
}

// physical returns the amount of a resource that a node has. Accelerators that
// are partitioned count as partitions only.
func physical(o *corev1.Node, resource string, has catalog.NodeResource, all map[string]catalog.NodeResource) resources.Amount {
	if resource == catalog.GPU && has.Reported < has.Nominal {
		for name, other := range all {
			if catalog.IsPartition(name) && other.Reported > 0 {
				return has.Reported
			}
		}
	}
	return has.Nominal
}

// stateOf returns the state of a node, its start and its reason.
func stateOf(o *corev1.Node) (state NodeState, since time.Time, why string) {
	reports := false
	for i := range o.Status.Conditions {
		if c := &o.Status.Conditions[i]; c.Type == corev1.NodeReady {
			reports, since = true, c.LastTransitionTime.Time
			if c.Status != corev1.ConditionTrue {
				return Recovering, since, cmp.Or(c.Message, c.Reason, "The node reports no reason.")
			}
		}
	}
	switch {
	case !reports:
		return Recovering, o.CreationTimestamp.Time, "The node has not reported its status yet."
	case o.Spec.Unschedulable:
		since = time.Time{}
		for i := range o.Spec.Taints {
			if t := &o.Spec.Taints[i]; t.Key == corev1.TaintNodeUnschedulable && t.TimeAdded != nil {
				since = t.TimeAdded.Time
			}
		}
		return Cordoned, since, "Cordoned: it accepts no new pods."
	case !catalog.Schedulable(o):
		return Recovering, time.Time{}, "Its accelerators are being partitioned."
	}
	return Ready, since, ""
}

// addTeamUsages divides the bound usage of each team into own and borrowed, and
// computes the usage that is not bound to nodes. What no node reports, such as licenses, is
// used as soon as Kueue counts it.
func (s *summing) addTeamUsages() {
	for team, usages := range s.bound {
		for fr := range usages {
			s.teamUsage(team, fr)
		}
	}
	for team, usages := range s.teamUsages {
		for fr, share := range usages {
			bound := s.bound[team][fr]
			if !s.catalog.OnNodes(fr.Resource) {
				bound = share.Usage
			}
			share.OwnBound = min(bound, share.Nominal)
			share.BorrowedBound = bound.Minus(share.OwnBound)
			share.Unbound = max(0, share.Usage.Minus(bound))
			sum := s.poolUsage(fr)
			sum.Nominal = sum.Nominal.Plus(share.Nominal)
			sum.Usage = sum.Usage.Plus(share.Usage)
			sum.Borrowed = sum.Borrowed.Plus(share.Borrowed)
			sum.Growth = sum.Growth.Plus(share.Growth)
			sum.OwnGrowth = sum.OwnGrowth.Plus(share.OwnGrowth())
			sum.OwnBound = sum.OwnBound.Plus(share.OwnBound)
			sum.BorrowedBound = sum.BorrowedBound.Plus(share.BorrowedBound)
			sum.Unbound = sum.Unbound.Plus(share.Unbound)
		}
	}
}

// addLoans apportions the borrowed usage to lenders.
func (s *summing) addLoans() {
	objects := quota.NewCohorts(s.cohorts.Items)
	root := objects.Root(s.cohort)
	inTree := func(cohort string) bool { return root != "" && objects.Root(cohort) == root }
	var cohorts []cohort
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		if !inTree(name) {
			continue
		}
		c := cohort{name, objects.Parent(name), map[quota.FlavorResource]*kueue.ResourceQuota{}}
		for fr, r := range quota.ResourceQuotas(objects[name].Spec.ResourceGroups) {
			c.quotas[fr] = r
			switch amount := resources.AmountFromQuantity(fr.Resource, r.NominalQuota); {
			case amount == 0:
			case name == s.cohort:
				s.poolUsage(fr).Unallocated = amount
			default:
				s.poolUsage(fr).Reserve = s.poolUsage(fr).Reserve.Plus(amount)
			}
		}
		cohorts = append(cohorts, c)
	}
	members := slices.DeleteFunc(slices.Clone(s.queues), func(q queue) bool { return !inTree(q.cohort) })
	slices.SortStableFunc(members, func(a, b queue) int { return strings.Compare(a.team, b.team) })
	borrowed := map[quota.FlavorResource]bool{}
	for _, q := range members {
		for fr, amount := range q.usage {
			if amount > q.nominal[fr] {
				borrowed[fr] = true
			}
		}
	}
	for fr := range borrowed {
		queues := make([]usage.Queue, len(members))
		for i, q := range members {
			queues[i] = usage.Queue{Name: q.team, Cohort: q.cohort, Nominal: q.nominal[fr], LendingLimit: q.lendingLimit[fr], Usage: q.usage[fr]}
		}
		own := make([]usage.Cohort, len(cohorts))
		for i, c := range cohorts {
			own[i] = c.of(fr)
		}
		pool, lent := s.poolUsage(fr), usage.ApportionLoans(queues, own)
		for i, amount := range lent.ByCohort {
			if cohorts[i].name == s.cohort {
				pool.BorrowedUnallocated = amount
			} else {
				pool.BorrowedReserve = pool.BorrowedReserve.Plus(amount)
			}
		}
		bound := usage.Apportion(max(0, pool.BorrowedBound.Minus(pool.BorrowedUnallocated).Minus(pool.BorrowedReserve)), lent.ByQueue)
		for i, amount := range lent.ByQueue {
			if amount > 0 {
				of := s.teamUsage(members[i].team, fr)
				of.LentToCohort, of.LentBound = of.LentToCohort.Plus(amount), of.LentBound.Plus(bound[i])
				pool.LentToCohort = pool.LentToCohort.Plus(amount)
			}
		}
	}
}

// of returns the quota of one FlavorResource.
func (c cohort) of(fr quota.FlavorResource) usage.Cohort {
	own := usage.Cohort{Name: c.name, Parent: c.parent, LendingLimit: resources.Unlimited}
	if r := c.quotas[fr]; r != nil {
		own.Nominal = resources.AmountFromQuantity(fr.Resource, r.NominalQuota)
		if r.LendingLimit != nil {
			own.LendingLimit = resources.AmountFromQuantity(fr.Resource, *r.LendingLimit)
		}
	}
	return own
}

func (s *summing) snapshot() *Snapshot {
	snapshot := &Snapshot{At: s.at, Nodes: s.nodes, Prices: s.prices, teamOf: s.teamOf}
	slices.SortFunc(snapshot.Nodes, func(a, b NodeSnapshot) int { return strings.Compare(a.Name, b.Name) })
	for fr, sum := range s.poolUsages {
		if !s.catalog.OnNodes(fr.Resource) {
			sum.Physical = max(sum.Nominal.Plus(sum.Reserve), sum.Usage)
			sum.Idle = sum.Physical.Minus(sum.Usage)
		}
		pool := s.pools[fr.Flavor]
		pool.Resources = append(pool.Resources, PoolResource{fr.Resource, *sum})
	}
	for _, name := range slices.Sorted(maps.Keys(s.pools)) {
		pool := s.pools[name]
		slices.SortFunc(pool.Resources, func(a, b PoolResource) int { return quota.Compare(a.Resource, b.Resource) })
		snapshot.Pools = append(snapshot.Pools, *pool)
	}
	for _, name := range s.order {
		t := s.teams[name]
		for fr, share := range s.teamUsages[name] {
			t.Resources = append(t.Resources, TeamResource{fr.Flavor, fr.Resource, *share})
		}
		slices.SortFunc(t.Resources, compareResources)
		switch {
		case name != "":
			snapshot.Teams = append(snapshot.Teams, *t)
		case len(t.Resources) > 0 || t.Running > 0 || t.Waiting > 0:
			snapshot.Others = t
		}
	}
	return snapshot
}

func compareResources(a, b TeamResource) int {
	return cmp.Or(quota.Compare(a.Resource, b.Resource), strings.Compare(a.Flavor, b.Flavor))
}
