package usage

// Team is what one team has of one resource of one pool, and what its tasks hold
// of it, in the units of quota.Resources.
type Queue struct {
	Name         string
	Nominal      int64
	LendingLimit int64 // at most so much of its quota; what exceeds its quota does not count
	Usage        int64
}

// Own is how much of what the team holds is its own quota.
func (t Queue) Own() int64 { return min(t.Usage, t.Nominal) }

// Borrowed is how much it holds beyond its own quota.
func (t Queue) Borrowed() int64 { return t.Usage - t.Own() }

// Idle is how much of its quota others could borrow now, or have borrowed.
func (t Queue) Lendable() int64 { return max(0, min(t.LendingLimit, t.Nominal-t.Usage)) }

// Lent is who lends how much of one resource of one pool, whoever borrows it.
type CohortLoans struct {
	Unallocated int64   // of what no team was given
	ByLender    []int64 // in the order of the teams
	OverQuota   int64   // what nobody has to lend: see Loans
}

// LendInSum apportions what all teams borrow, as Lend does for each of them.
func ApportionLoans(teams []Queue, unallocated int64) CohortLoans {
	var total int64
	idle := make([]int64, len(teams))
	for i, t := range teams {
		total += t.Borrowed()
		idle[i] = t.Lendable()
	}
	shared := min(total, max(0, unallocated))
	l := CohortLoans{Unallocated: shared, ByLender: Apportion(total-shared, idle), OverQuota: total - shared}
	for _, amount := range l.ByLender {
		l.OverQuota -= amount
	}
	return l
}

// Loans is who lends what to whom, of one resource of one pool.
type BorrowerLoans struct {
	// Unallocated is what of the share that no team was given is borrowed by each
	// team, in the order of the teams.
	Unallocated []int64
	// Lent is what each team lends to each: Lent[lender][borrower].
	ByLender [][]int64
	// Uncovered is what each team holds that nobody has to lend: after a quota
	// was lowered while it was borrowed, tasks run on.
	OverQuota []int64
}

// Lend apportions what teams borrow: first the share that no team was given,
// then the teams' idle quota, in proportion to it. Rounding goes to the largest
// remainder, and among equals to the first. What is lent, with what is
// uncovered, adds up to what is borrowed, for each team and in sum. The teams'
// order decides over remainders only; give them sorted.
func ApportionLoansByBorrower(teams []Queue, unallocated int64) BorrowerLoans {
	borrowed := make([]int64, len(teams))
	for i, t := range teams {
		borrowed[i] = t.Borrowed()
	}
	sum := ApportionLoans(teams, unallocated)
	rows := Spread(append([]int64{sum.Unallocated}, sum.ByLender...), borrowed)
	l := BorrowerLoans{Unallocated: rows[0], ByLender: rows[1:], OverQuota: borrowed}
	for _, row := range rows {
		for i, amount := range row {
			l.OverQuota[i] -= amount
		}
	}
	return l
}

// OwnFirst says how much of what each of a team's tasks holds is borrowed, when
// the first of them take the team's own quota and the rest borrows.
func BorrowedInOrder(quota int64, held []int64) (borrowed []int64) {
	borrowed = make([]int64, len(held))
	for i, amount := range held {
		own := min(amount, max(0, quota))
		borrowed[i] = amount - own
		quota -= own
	}
	return borrowed
}
