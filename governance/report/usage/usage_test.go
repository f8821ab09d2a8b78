package usage_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/report/usage"

	"github.com/google/go-cmp/cmp"
)

func TestApportionLoansByBorrower(t *testing.T) {
	type amounts = []resources.Amount
	pool := func(nominal resources.Amount) usage.Cohort {
		return usage.Cohort{Name: "pool", Nominal: nominal, LendingLimit: resources.Unlimited}
	}
	department := func(name string, reserve, lends resources.Amount) usage.Cohort {
		return usage.Cohort{Name: name, Parent: "pool", Nominal: reserve, LendingLimit: lends}
	}
	queue := func(name, cohort string, nominal, lends, used resources.Amount) usage.Queue {
		return usage.Queue{Name: name, Cohort: cohort, Nominal: nominal, LendingLimit: lends, Usage: used}
	}
	cases := map[string]struct {
		queues        []usage.Queue
		cohorts       []usage.Cohort
		wantByQueue   []amounts
		wantByCohort  []amounts
		wantOverQuota amounts
	}{
		"no queue borrows": {
			[]usage.Queue{queue("a", "pool", 4, 4, 4), queue("b", "pool", 4, 4, 0)}, []usage.Cohort{pool(2)},
			[]amounts{{0, 0}, {0, 0}}, []amounts{{0, 0}}, amounts{0, 0},
		},
		"unallocated compute is lent first": {
			[]usage.Queue{queue("a", "pool", 4, 4, 9), queue("b", "pool", 4, 4, 0)}, []usage.Cohort{pool(2)},
			[]amounts{{0, 0}, {3, 0}}, []amounts{{2, 0}}, amounts{0, 0},
		},
		"lenders lend in proportion to their idle quota": {
			[]usage.Queue{queue("a", "pool", 0, 0, 3), queue("b", "pool", 8, 8, 2), queue("c", "pool", 3, 3, 0)}, nil,
			[]amounts{{0, 0, 0}, {2, 0, 0}, {1, 0, 0}}, []amounts{}, amounts{0, 0, 0},
		},
		"the lending limit bounds a loan": {
			[]usage.Queue{queue("a", "pool", 0, 0, 3), queue("b", "pool", 8, 1, 0), queue("c", "pool", 3, 3, 0)}, nil,
			[]amounts{{0, 0, 0}, {1, 0, 0}, {2, 0, 0}}, []amounts{}, amounts{0, 0, 0},
		},
		"nominal quota lowered while it is lent": {
			[]usage.Queue{queue("a", "pool", 2, 2, 8), queue("b", "pool", 4, 4, 1)}, nil,
			[]amounts{{0, 0}, {3, 0}}, []amounts{}, amounts{3, 0},
		},
		"two borrowers, two lenders": {
			[]usage.Queue{queue("a", "pool", 0, 0, 2), queue("b", "pool", 0, 0, 2), queue("c", "pool", 2, 2, 0)}, []usage.Cohort{pool(2)},
			[]amounts{{0, 0, 0}, {0, 0, 0}, {1, 1, 0}}, []amounts{{1, 1, 0}}, amounts{0, 0, 0},
		},
		"a queue without a cohort": {
			[]usage.Queue{queue("a", "", 1, 1, 3), queue("b", "pool", 4, 4, 0)}, []usage.Cohort{pool(2)},
			[]amounts{{0, 0}, {0, 0}}, []amounts{{0, 0}}, amounts{2, 0},
		},
		"the department first, then its reserve, then others": {
			[]usage.Queue{queue("a", "d1", 2, 2, 8), queue("b", "d1", 2, 2, 0), queue("c", "d2", 8, 8, 0)}, []usage.Cohort{pool(1), department("d1", 1, 9), department("d2", 0, 9)},
			[]amounts{{0, 0, 0}, {2, 0, 0}, {2, 0, 0}}, []amounts{{1, 0, 0}, {1, 0, 0}, {0, 0, 0}}, amounts{0, 0, 0},
		},
		"a department lends up to its limit": {
			[]usage.Queue{queue("a", "d1", 0, 0, 4), queue("b", "d2", 6, 6, 0), queue("c", "d3", 1, 1, 0)}, []usage.Cohort{pool(0), department("d1", 0, 9), department("d2", 6, 2), department("d3", 0, 9)},
			[]amounts{{0, 0, 0}, {1, 0, 0}, {1, 0, 0}}, []amounts{{0, 0, 0}, {0, 0, 0}, {1, 0, 0}, {0, 0, 0}}, amounts{1, 0, 0},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := usage.BorrowerLoans{ByQueue: tc.wantByQueue, ByCohort: tc.wantByCohort, OverQuota: tc.wantOverQuota}
			if diff := cmp.Diff(want, usage.ApportionLoansByBorrower(tc.queues, tc.cohorts)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// For any usage, own and borrowed add up to the usage, loans add up to the borrowed
// usage, no lender lends more than is idle, and nothing stays uncovered while the pool has
// something. Sums are those of the borrowers.
func TestLoansAddUp(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 1))
	size := func() resources.Amount { return resources.Amount(random.Int64N(1 << random.IntN(57))) }
	for range 5000 {
		cohorts := []usage.Cohort{{Name: "0", Nominal: size(), LendingLimit: resources.Unlimited}}
		for i := range random.IntN(5) {
			cohorts = append(cohorts, usage.Cohort{Name: strconv.Itoa(i + 1), Parent: cohorts[random.IntN(len(cohorts))].Name, Nominal: size(), LendingLimit: size()})
		}
		queues := make([]usage.Queue, 1+random.IntN(6))
		for i := range queues {
			queues[i] = usage.Queue{Cohort: cohorts[random.IntN(len(cohorts))].Name, Nominal: size(), LendingLimit: size(), Usage: size()}
		}
		l, sums := usage.ApportionLoansByBorrower(queues, cohorts), usage.ApportionLoans(queues, cohorts)
		var uncovered, idle resources.Amount
		for i, q := range queues {
			if q.Own()+q.Borrowed() != q.Usage || q.Own() < 0 || q.Borrowed() < 0 {
				t.Fatalf("%+v has %d own and %d borrowed", q, q.Own(), q.Borrowed())
			}
			covered := l.OverQuota[i]
			var lent resources.Amount
			for j := range queues {
				covered += l.ByQueue[j][i]
				lent += l.ByQueue[i][j]
				if l.ByQueue[i][j] < 0 || l.ByQueue[i][j] > 0 && i == j {
					t.Fatalf("%+v lends %d to %+v", q, l.ByQueue[i][j], queues[j])
				}
			}
			for j := range cohorts {
				covered += l.ByCohort[j][i]
			}
			if covered != q.Borrowed() || l.OverQuota[i] < 0 {
				t.Fatalf("%+v of %+v borrows %d, and its loans are %d: %+v", q, queues, q.Borrowed(), covered, l)
			}
			if lent > q.Lendable() || lent != sums.ByQueue[i] {
				t.Fatalf("%+v lends %d, want %d, at most %d", q, lent, sums.ByQueue[i], q.Lendable())
			}
			if uncovered += l.OverQuota[i]; q.Cohort == "0" {
				idle += q.Lendable() - lent
			}
		}
		for i, c := range cohorts {
			lent := resources.Sum(l.ByCohort[i]...)
			if lent > c.Nominal || lent != sums.ByCohort[i] {
				t.Fatalf("%+v lends %d, want %d", c, lent, sums.ByCohort[i])
			}
			if c.Parent == "" {
				idle += c.Nominal - lent
			}
		}
		if uncovered != sums.OverQuota || uncovered > 0 && idle > 0 {
			t.Fatalf("%d uncovered, want %d, while %d are idle", uncovered, sums.OverQuota, idle)
		}
	}
}

// Each part is within one unit of its exact share. Of the tasks of a team, the last
// ones borrow.
func TestApportion(t *testing.T) {
	if got := usage.Apportion(10, []resources.Amount{3, 3, 7}); !slices.Equal(got, []resources.Amount{2, 2, 6}) {
		t.Errorf("got %d, want [2 2 6]", got)
	}
	if got := usage.BorrowedInOrder(4, []resources.Amount{3, 3, 2}); !slices.Equal(got, []resources.Amount{0, 2, 2}) {
		t.Errorf("got borrowed %d, want [0 2 2]", got)
	}
}
