package usage

// Queue is the quota and the usage of one ClusterQueue in one resource of one
// flavor, in the units of quota.Resources.
type Queue struct {
	Name         string
	Nominal      int64
	LendingLimit int64 // capped at Nominal
	Usage        int64
}

// Own returns the usage up to the nominal quota.
func (q Queue) Own() int64 { return min(q.Usage, q.Nominal) }

// Borrowed returns the usage beyond the nominal quota.
func (q Queue) Borrowed() int64 { return q.Usage - q.Own() }

// Lendable returns the unused nominal quota that other queues can borrow, or
// have borrowed.
func (q Queue) Lendable() int64 { return max(0, min(q.LendingLimit, q.Nominal-q.Usage)) }

// CohortLoans is how much each lender lends of one resource of one flavor, to
// all borrowers together.
type CohortLoans struct {
	Unallocated int64   // from unallocated compute
	ByLender    []int64 // in the order of the queues
	OverQuota   int64   // usage that no lender covers: see BorrowerLoans
}

// ApportionLoans apportions the borrowed usage of all queues, as
// ApportionLoansByBorrower does for each of them.
func ApportionLoans(queues []Queue, unallocated int64) CohortLoans {
	var total int64
	idle := make([]int64, len(queues))
	for i, q := range queues {
		total += q.Borrowed()
		idle[i] = q.Lendable()
	}
	shared := min(total, max(0, unallocated))
	l := CohortLoans{Unallocated: shared, ByLender: Apportion(total-shared, idle), OverQuota: total - shared}
	for _, amount := range l.ByLender {
		l.OverQuota -= amount
	}
	return l
}

// BorrowerLoans is how much each borrower borrows from each lender, of one
// resource of one flavor.
type BorrowerLoans struct {
	// Unallocated is what each queue borrows from unallocated compute, in the order
	// of the queues.
	Unallocated []int64
	// ByLender is indexed [lender][borrower].
	ByLender [][]int64
	// OverQuota is the usage of each queue that no lender covers: tasks stay
	// admitted when quota that they borrow is lowered.
	OverQuota []int64
}

// ApportionLoansByBorrower apportions the borrowed usage of queues: first to
// unallocated compute, then to the lendable quota of queues, in proportion to
// it. Rounding goes to the largest remainder, and among equal ones to the first
// queue, so callers pass the queues sorted. Loans and OverQuota add up to the
// borrowed usage, for each queue and in sum.
func ApportionLoansByBorrower(queues []Queue, unallocated int64) BorrowerLoans {
	borrowed := make([]int64, len(queues))
	for i, q := range queues {
		borrowed[i] = q.Borrowed()
	}
	sum := ApportionLoans(queues, unallocated)
	rows := Spread(append([]int64{sum.Unallocated}, sum.ByLender...), borrowed)
	l := BorrowerLoans{Unallocated: rows[0], ByLender: rows[1:], OverQuota: borrowed}
	for _, row := range rows {
		for i, amount := range row {
			l.OverQuota[i] -= amount
		}
	}
	return l
}

// BorrowedInOrder returns the borrowed part of the usage of each task of a team,
// when the first tasks use the nominal quota and the others borrow.
func BorrowedInOrder(nominal int64, usage []int64) (borrowed []int64) {
	borrowed = make([]int64, len(usage))
	for i, amount := range usage {
		own := min(amount, max(0, nominal))
		borrowed[i] = amount - own
		nominal -= own
	}
	return borrowed
}
