package departments

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/observe/capacity"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/effective"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/report/usage"
)

// Figures are the sums of a department.
type Figures struct {
	Resources        []Resource // accelerators first, then by pool
	Running, Waiting int        // tasks of all teams below
}

// Resource is one resource of one pool of a department. Used is Own and Borrowed.
type Resource struct {
	quota.FlavorResource
	Quota     resources.Amount
	Allocated resources.Amount // to its teams and departments
	Reserve   resources.Amount // what of Quota is not allocated
	Used      resources.Amount // by all teams below
	Borrowed  resources.Amount // the part of Used that is beyond Quota
	Lent      resources.Amount // idle quota that is used outside
	From, To  []Loan           // of Borrowed and Lent, the largest first
}

// Loan is what a department borrows from, or lends to, another one or a team beside it.
type Loan struct {
	Department, Team string // both empty for unallocated compute, and for what the reader does not see
	Amount           resources.Amount
	// Since is since when the borrower has used more than its quota. Figures leaves it zero.
	Since time.Time
}

// Add adds the amounts of another resource, without its loans.
func (r *Resource) Add(o Resource) {
	for sum, amount := range map[*resources.Amount]resources.Amount{
		&r.Quota: o.Quota, &r.Allocated: o.Allocated, &r.Reserve: o.Reserve, &r.Used: o.Used, &r.Borrowed: o.Borrowed, &r.Lent: o.Lent,
	} {
		*sum = sum.Plus(amount)
	}
}

// Figures returns the figures of the departments of a state, by name. Who lends and borrows
// has a name where the reader sees it; seen are the teams that they see.
func (s *Service) Figures(ctx context.Context, state State, seen func(team string) bool) (map[string]Figures, error) {
	snapshot, err := s.Capacity.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return FiguresOf(state, snapshot, seen), nil
}

// AllFigures returns the figures of all departments, as a reader sees them who sees all teams.
func (s *Service) AllFigures(ctx context.Context) (map[string]Figures, error) {
	state, err := s.whole(ctx)
	if err != nil || len(state.Departments) == 0 {
		return nil, err
	}
	return s.Figures(ctx, state, func(string) bool { return true })
}

// FiguresOf computes Figures from the snapshot of the whole cluster. It is pure.
func FiguresOf(state State, snapshot *capacity.Snapshot, seen func(team string) bool) map[string]Figures {
	c := counting{state: state, teams: map[string]*capacity.TeamSnapshot{}, found: map[string]Figures{}, amounts: map[string]map[quota.FlavorResource]*Resource{}}
	for i := range snapshot.Teams {
		c.teams[snapshot.Teams[i].Name] = &snapshot.Teams[i]
	}
	c.sum("")
	unallocated := map[quota.FlavorResource]resources.Amount{}
	for i := range snapshot.Pools {
		for _, r := range snapshot.Pools[i].Resources {
			unallocated[quota.FlavorResource{Flavor: snapshot.Pools[i].Name, Resource: r.Resource}] = r.Unallocated
		}
	}
	c.lend("", unallocated)
	figures := map[string]Figures{}
	for _, d := range state.Departments {
		f := c.found[d.Name]
		for _, r := range c.amounts[d.Name] {
			one := *r
			one.From, one.To = c.visible(one.From, seen), c.visible(one.To, seen)
			f.Resources = append(f.Resources, one)
		}
		slices.SortFunc(f.Resources, func(a, b Resource) int {
			return cmp.Or(quota.Compare(a.Resource, b.Resource), strings.Compare(a.Flavor, b.Flavor))
		})
		figures[d.Name] = f
	}
	return figures
}

// counting is figures in progress.
type counting struct {
	state   State
	teams   map[string]*capacity.TeamSnapshot
	found   map[string]Figures // their tasks
	amounts map[string]map[quota.FlavorResource]*Resource
}

// sum computes quota and usage of the departments below one, bottom-up.
func (c *counting) sum(name string) {
	tree := c.state.Tree
	all, figures := map[quota.FlavorResource]*Resource{}, Figures{}
	at := func(fr quota.FlavorResource) *Resource {
		if all[fr] == nil {
			all[fr] = &Resource{FlavorResource: fr}
		}
		return all[fr]
	}
	for _, child := range tree.Children(name) {
		c.sum(child)
		figures.Running += c.found[child].Running
		figures.Waiting += c.found[child].Waiting
		for fr, r := range c.amounts[child] {
			at(fr).Used = at(fr).Used.Plus(r.Used)
		}
	}
	for _, team := range tree.Teams(name) {
		t := c.teams[team.Name]
		if t == nil {
			continue
		}
		figures.Running += t.Running
		figures.Waiting += t.Waiting
		for _, r := range t.Resources {
			fr := quota.FlavorResource{Flavor: r.Flavor, Resource: r.Resource}
			at(fr).Used = at(fr).Used.Plus(r.Usage)
		}
	}
	of := func(pools quota.PoolResources, set func(r *Resource) *resources.Amount) {
		for pool, amounts := range pools {
			for resource, amount := range amounts {
				if r := set(at(quota.FlavorResource{Flavor: pool, Resource: resource})); amount > 0 {
					*r = amount
				}
			}
		}
	}
	if name != "" {
		of(tree.Quota(name), func(r *Resource) *resources.Amount { return &r.Quota })
		of(tree.Taken(name, "", ""), func(r *Resource) *resources.Amount { return &r.Allocated })
	}
	for fr, r := range all {
		r.Reserve, r.Borrowed = max(0, r.Quota.Minus(r.Allocated)), max(0, r.Used.Minus(r.Quota))
		if r.Quota == 0 && r.Used == 0 && r.Allocated == 0 {
			delete(all, fr)
		}
	}
	c.found[name], c.amounts[name] = figures, all
}

// level is the name of the cohort of what is directly below a department.
const level = "level"

// lend apportions what is borrowed between the departments and teams directly below one, and
// below these. free is what they can borrow beside each other's quota.
func (c *counting) lend(name string, free map[quota.FlavorResource]resources.Amount) {
	tree := c.state.Tree
	children, teams := tree.Children(name), tree.Teams(name)
	if len(children) == 0 {
		return
	}
	for fr := range c.amounts[name] {
		var queues []usage.Queue
		var who []Loan
		for _, child := range children {
			q := usage.Queue{Name: child, Cohort: level}
			if r := c.amounts[child][fr]; r != nil {
				q.Nominal, q.Usage = r.Quota, r.Used
			}
			if lends(tree.Find(child).Allocation()) {
				q.LendingLimit = q.Nominal
			}
			queues, who = append(queues, q), append(who, Loan{Department: child})
		}
		for _, team := range teams {
			q := usage.Queue{Name: team.Name, Cohort: level}
			if t := c.teams[team.Name]; t != nil {
				for _, r := range t.Resources {
					if r.Flavor == fr.Flavor && r.Resource == fr.Resource {
						q.Nominal, q.Usage = r.Nominal, r.Usage
					}
				}
			}
			if lends(team) {
				q.LendingLimit = q.Nominal
			}
			queues, who = append(queues, q), append(who, Loan{Team: team.Name})
		}
		loans := usage.ApportionLoansByBorrower(queues, []usage.Cohort{{Name: level, Nominal: free[fr], LendingLimit: resources.Unlimited}})
		for i, child := range children {
			r := c.amounts[child][fr]
			if r == nil {
				continue
			}
			r.From = appendLoan(r.From, Loan{}, loans.ByCohort[0][i])
			for j := range queues {
				r.From = appendLoan(r.From, who[j], loans.ByQueue[j][i])
				r.To = appendLoan(r.To, who[j], loans.ByQueue[i][j])
				r.Lent = r.Lent.Plus(loans.ByQueue[i][j])
			}
		}
	}
	for _, child := range children {
		inside := map[quota.FlavorResource]resources.Amount{}
		for fr, r := range c.amounts[child] {
			inside[fr] = r.Reserve.Plus(r.Borrowed)
		}
		c.lend(child, inside)
	}
}

// lends reports whether others can borrow idle quota.
func lends(a *v1alpha1.ComputeAllocation) bool {
	return effective.Spec(a).Sharing.Strategy != v1alpha1.DontLend
}

func appendLoan(loans []Loan, who Loan, amount resources.Amount) []Loan {
	if amount <= 0 {
		return loans
	}
	who.Amount = amount
	return append(loans, who)
}

// visible adds up the loans of departments and teams that the reader does not see.
func (c *counting) visible(loans []Loan, seen func(team string) bool) (shown []Loan) {
	var hidden resources.Amount
	for _, l := range loans {
		switch {
		case l.Department != "" && c.state.Find(l.Department) == nil, l.Team != "" && !seen(l.Team), l.Department == "" && l.Team == "":
			hidden = hidden.Plus(l.Amount)
		default:
			shown = append(shown, l)
		}
	}
	slices.SortFunc(shown, func(a, b Loan) int {
		return cmp.Or(cmp.Compare(b.Amount, a.Amount), strings.Compare(a.Department, b.Department), strings.Compare(a.Team, b.Team))
	})
	return appendLoan(shown, Loan{}, hidden)
}
