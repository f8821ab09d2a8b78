package usage

// Team is what one team has of one resource of one pool, and what its tasks hold
// of it, in the units of quota.Resources.
type Team struct {
	Name  string
	Quota int64
	Lends int64 // at most so much of its quota; what exceeds its quota does not count
	Held  int64
}

// Own is how much of what the team holds is its own quota.
func (t Team) Own() int64 { return min(t.Held, t.Quota) }

// Borrowed is how much it holds beyond its own quota.
func (t Team) Borrowed() int64 { return t.Held - t.Own() }

// Idle is how much of its quota others could borrow now, or have borrowed.
func (t Team) Idle() int64 { return max(0, min(t.Lends, t.Quota-t.Held)) }

// Lent is who lends how much of one resource of one pool, whoever borrows it.
type Lent struct {
	Unallocated int64   // of what no team was given
	Teams       []int64 // in the order of the teams
	Uncovered   int64   // what nobody has to lend: see Loans
}

// LendInSum apportions what all teams borrow, as Lend does for each of them.
func LendInSum(teams []Team, unallocated int64) Lent {
	var total int64
	idle := make([]int64, len(teams))
	for i, t := range teams {
		total += t.Borrowed()
		idle[i] = t.Idle()
	}
	shared := min(total, max(0, unallocated))
	l := Lent{Unallocated: shared, Teams: Apportion(total-shared, idle), Uncovered: total - shared}
	for _, amount := range l.Teams {
		l.Uncovered -= amount
	}
	return l
}

// Loans is who lends what to whom, of one resource of one pool.
type Loans struct {
	// Unallocated is what of the share that no team was given is borrowed by each
	// team, in the order of the teams.
	Unallocated []int64
	// Lent is what each team lends to each: Lent[lender][borrower].
	Lent [][]int64
	// Uncovered is what each team holds that nobody has to lend: after a quota
	// was lowered while it was borrowed, tasks run on.
	Uncovered []int64
}

// Lend apportions what teams borrow: first the share that no team was given,
// then the teams' idle quota, in proportion to it. Rounding goes to the largest
// remainder, and among equals to the first. What is lent, with what is
// uncovered, adds up to what is borrowed, for each team and in sum. The teams'
// order decides over remainders only; give them sorted.
func Lend(teams []Team, unallocated int64) Loans {
	borrowed := make([]int64, len(teams))
	for i, t := range teams {
		borrowed[i] = t.Borrowed()
	}
	sum := LendInSum(teams, unallocated)
	rows := Spread(append([]int64{sum.Unallocated}, sum.Teams...), borrowed)
	l := Loans{Unallocated: rows[0], Lent: rows[1:], Uncovered: borrowed}
	for _, row := range rows {
		for i, amount := range row {
			l.Uncovered[i] -= amount
		}
	}
	return l
}

// OwnFirst says how much of what each of a team's tasks holds is borrowed, when
// the first of them take the team's own quota and the rest borrows.
func OwnFirst(quota int64, held []int64) (borrowed []int64) {
	borrowed = make([]int64, len(held))
	for i, amount := range held {
		own := min(amount, max(0, quota))
		borrowed[i] = amount - own
		quota -= own
	}
	return borrowed
}
