package usage

import "kuota.dev/kuota/governance/quota/resources"

// Queue is the quota and the usage of one ClusterQueue in one resource of one
// flavor, in the units of quota.Resources.
type Queue struct {
	Name         string
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

// CohortLoans is how much each lender lends of one resource of one flavor, to
// all borrowers together.
type CohortLoans struct {
	Unallocated resources.Amount   // from unallocated compute
	ByLender    []resources.Amount // in the order of the queues
	OverQuota   resources.Amount   // usage that no lender covers: see BorrowerLoans
}

// ApportionLoans apportions the borrowed usage of all queues, as
// ApportionLoansByBorrower does for each of them.
func ApportionLoans(queues []Queue, unallocated resources.Amount) CohortLoans {
	var total resources.Amount
	idle := make([]resources.Amount, len(queues))
	for i, q := range queues {
		total = total.Plus(q.Borrowed())
		idle[i] = q.Lendable()
	}
	shared := min(total, max(0, unallocated))
	l := CohortLoans{Unallocated: shared, ByLender: Apportion(total.Minus(shared), idle), OverQuota: total.Minus(shared)}
	for _, amount := range l.ByLender {
		l.OverQuota = l.OverQuota.Minus(amount)
	}
	return l
}

// BorrowerLoans is how much each borrower borrows from each lender, of one
// resource of one flavor.
type BorrowerLoans struct {
	// Unallocated is what each queue borrows from unallocated compute, in the order
	// of the queues.
	Unallocated []resources.Amount
	// ByLender is indexed [lender][borrower].
	ByLender [][]resources.Amount
	// OverQuota is the usage of each queue that no lender covers: tasks stay
	// admitted when quota that they borrow is lowered.
	OverQuota []resources.Amount
}

// ApportionLoansByBorrower apportions the borrowed usage of queues: first to
// unallocated compute, then to the lendable quota of queues, in proportion to
// it. Rounding goes to the largest remainder, and among equal ones to the first
// queue, so callers pass the queues sorted. Loans and OverQuota add up to the
// borrowed usage, for each queue and in sum.
func ApportionLoansByBorrower(queues []Queue, unallocated resources.Amount) BorrowerLoans {
	borrowed := make([]resources.Amount, len(queues))
	for i, q := range queues {
		borrowed[i] = q.Borrowed()
	}
	sum := ApportionLoans(queues, unallocated)
	rows := Spread(append([]resources.Amount{sum.Unallocated}, sum.ByLender...), borrowed)
	l := BorrowerLoans{Unallocated: rows[0], ByLender: rows[1:], OverQuota: borrowed}
	for _, row := range rows {
		for i, amount := range row {
			l.OverQuota[i] = l.OverQuota[i].Minus(amount)
		}
	}
	return l
}

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
