package usage

import (
	"slices"

	"kuota.dev/kuota/governance/quota/resources"
)

// Queue is the quota and the usage of one ClusterQueue in one resource of one
// flavor, in the units of quota.Resources.
type Queue struct {
	Name         string
	Cohort       string // empty for none
	Nominal      resources.Amount
	LendingLimit resources.Amount // capped at Nominal
	Usage        resources.Amount
}

// Own returns the usage up to the nominal quota.
func (q Queue) Own() resources.Amount { return min(q.Usage, q.Nominal) }

// Borrowed returns the usage beyond the nominal quota.
func (q Queue) Borrowed() resources.Amount { return q.Usage.Minus(q.Own()) }

// Lendable returns the unused nominal quota that other queues can borrow, or
// have borrowed.
func (q Queue) Lendable() resources.Amount {
	return max(0, min(q.LendingLimit, q.Nominal.Minus(q.Usage)))
}

// Cohort is the own quota of one Cohort in one resource of one flavor: of the root,
// unallocated compute, and below it the reserve of a department.
type Cohort struct {
	Name         string
	Parent       string // empty for a root
	Nominal      resources.Amount
	LendingLimit resources.Amount // of the whole subtree, to the parent
}

// Loans is how much each lender lends of one resource of one flavor, to all borrowers
// together. Its fields are in the order of the queues and of the Cohorts.
type Loans struct {
	ByQueue, ByCohort []resources.Amount
	OverQuota         resources.Amount // usage that no lender covers: see BorrowerLoans
}

// BorrowerLoans is how much each borrower borrows from each lender, of one
// resource of one flavor.
type BorrowerLoans struct {
	// ByQueue and ByCohort are indexed [lender][borrower]. A borrower is a queue.
	ByQueue, ByCohort [][]resources.Amount
	// OverQuota is the usage of each queue that no lender covers: tasks stay
	// admitted when quota that they borrow is lowered.
	OverQuota []resources.Amount
}

// ApportionLoans apportions the borrowed usage of all queues, as
// ApportionLoansByBorrower does for each of them.
func ApportionLoans(queues []Queue, cohorts []Cohort) Loans {
	l := newLending(queues, cohorts)
	loans := Loans{ByQueue: make([]resources.Amount, len(queues)), ByCohort: make([]resources.Amount, len(cohorts))}
	for _, q := range queues {
		loans.OverQuota = loans.OverQuota.Plus(q.Borrowed())
	}
	for _, level := range l.levels {
		for _, s := range level.sources {
			of := &loans.ByQueue
			if s.cohort {
				of = &loans.ByCohort
			}
			(*of)[s.index] = (*of)[s.index].Plus(s.amount)
			loans.OverQuota = loans.OverQuota.Minus(s.amount)
		}
	}
	return loans
}

// ApportionLoansByBorrower apportions the borrowed usage of queues to lenders in their
// Cohort, and what these do not cover to those in its parent, up to the root. In a
// department idle quota of queues is lent first, and then the reserve; at the root
// unallocated compute is first. Among several lenders each lends in proportion to its
// idle quota, and together not more across a border than its lending limit. Rounding goes
// to the largest remainder, and among equal ones to the first queue, so callers pass the
// queues sorted. Loans and OverQuota add up to the borrowed usage, for each queue and in
// sum. Queues below a cycle of parents neither borrow nor lend.
func ApportionLoansByBorrower(queues []Queue, cohorts []Cohort) BorrowerLoans {
	l := newLending(queues, cohorts)
	loans := BorrowerLoans{ByQueue: matrix(len(queues), len(queues)), ByCohort: matrix(len(cohorts), len(queues)), OverQuota: make([]resources.Amount, len(queues))}
	for i, q := range queues {
		loans.OverQuota[i] = q.Borrowed()
	}
	for _, level := range l.levels {
		sources, takers := make([]resources.Amount, len(level.sources)), make([]resources.Amount, len(level.queues))
		for i, s := range level.sources {
			sources[i] = s.amount
		}
		for i, q := range level.queues {
			takers[i] = loans.OverQuota[q]
		}
		for i, row := range Spread(sources, takers) {
			to := loans.ByQueue
			if level.sources[i].cohort {
				to = loans.ByCohort
			}
			for j, amount := range row {
				borrower := level.queues[j]
				to[level.sources[i].index][borrower] = to[level.sources[i].index][borrower].Plus(amount)
				loans.OverQuota[borrower] = loans.OverQuota[borrower].Minus(amount)
			}
		}
	}
	return loans
}

func matrix(rows, columns int) [][]resources.Amount {
	all := make([][]resources.Amount, rows)
	for i := range all {
		all[i] = make([]resources.Amount, columns)
	}
	return all
}

// source is what a queue or a Cohort lends, or could lend.
type source struct {
	index  int
	cohort bool
	amount resources.Amount
}

// level is what is lent within one Cohort to the queues of its subtree.
type level struct {
	queues  []int
	sources []source
}

// lending is the loans of a forest of Cohorts, from the leaves to the roots.
type lending struct {
	queues   []Queue
	cohorts  []Cohort
	members  map[string][]int // indices of queues by Cohort
	children map[string][]int // indices of Cohorts by parent
	levels   []level
}

func newLending(queues []Queue, cohorts []Cohort) *lending {
	l := &lending{queues: queues, cohorts: cohorts, members: map[string][]int{}, children: map[string][]int{}}
	known := map[string]bool{"": true}
	for i, c := range cohorts {
		l.children[c.Parent] = append(l.children[c.Parent], i)
		known[c.Name] = true
	}
	var roots []string // those without an object
	implicit := func(name string) {
		if !known[name] {
			known[name] = true
			roots = append(roots, name)
		}
	}
	for i, q := range queues {
		if q.Cohort != "" {
			l.members[q.Cohort] = append(l.members[q.Cohort], i)
			implicit(q.Cohort)
		}
	}
	for _, c := range cohorts {
		implicit(c.Parent)
	}
	for _, i := range l.children[""] {
		l.lend(cohorts[i].Name, i, true)
	}
	for _, name := range roots {
		l.lend(name, -1, true)
	}
	return l
}

// lend adds the levels of a subtree. It returns the queues in it, the borrowed usage that
// nothing in it covers, and what it can lend to its parent. of is the index of the Cohort,
// negative if it has no object.
func (l *lending) lend(name string, of int, root bool) (queues []int, uncovered resources.Amount, idle []source) {
	for _, i := range l.members[name] {
		queues = append(queues, i)
		uncovered = uncovered.Plus(l.queues[i].Borrowed())
		if amount := l.queues[i].Lendable(); amount > 0 {
			idle = append(idle, source{index: i, amount: amount})
		}
	}
	for _, i := range l.children[name] {
		below, demand, lendable := l.lend(l.cohorts[i].Name, i, false)
		queues, uncovered, idle = append(queues, below...), uncovered.Plus(demand), append(idle, lendable...)
	}
	here := level{queues: queues}
	take := func(from []source) (left []source) {
		parts := Apportion(min(uncovered, total(from)), amountsOf(from))
		for i, s := range from {
			if parts[i] > 0 {
				here.sources = append(here.sources, source{s.index, s.cohort, parts[i]})
				uncovered = uncovered.Minus(parts[i])
			}
			if s.amount = s.amount.Minus(parts[i]); s.amount > 0 {
				left = append(left, s)
			}
		}
		return left
	}
	var own []source
	if of >= 0 {
		own = []source{{of, true, max(0, l.cohorts[of].Nominal)}}
	}
	if root {
		own = take(own)
	}
	idle = take(idle)
	if !root {
		own = take(own)
	}
	if len(here.sources) > 0 {
		l.levels = append(l.levels, here)
	}
	if idle = append(idle, own...); of >= 0 && total(idle) > l.cohorts[of].LendingLimit {
		for i, part := range Apportion(l.cohorts[of].LendingLimit, amountsOf(idle)) {
			idle[i].amount = part
		}
		idle = slices.DeleteFunc(idle, func(s source) bool { return s.amount == 0 })
	}
	return queues, uncovered, idle
}

func amountsOf(list []source) []resources.Amount {
	amounts := make([]resources.Amount, len(list))
	for i, s := range list {
		amounts[i] = s.amount
	}
	return amounts
}

func total(list []source) resources.Amount { return resources.Sum(amountsOf(list)...) }

// BorrowedInOrder returns the borrowed part of the usage of each task of a team,
// when the first tasks use the nominal quota and the others borrow.
func BorrowedInOrder(nominal resources.Amount, usage []resources.Amount) (borrowed []resources.Amount) {
	borrowed = make([]resources.Amount, len(usage))
	for i, amount := range usage {
		own := min(amount, max(0, nominal))
		borrowed[i] = amount.Minus(own)
		nominal = nominal.Minus(own)
	}
	return borrowed
}
