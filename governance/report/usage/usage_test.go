package usage_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/report/usage"

	"github.com/google/go-cmp/cmp"
)

func TestApportionLoansByBorrower(t *testing.T) {
	cases := map[string]struct {
		teams       []usage.Queue
		unallocated resources.Amount
		want        usage.BorrowerLoans
	}{
		"no queue borrows": {
			[]usage.Queue{{Name: "a", Nominal: 4, LendingLimit: 4, Usage: 4}, {Name: "b", Nominal: 4, LendingLimit: 4}}, 2,
			usage.BorrowerLoans{Unallocated: []resources.Amount{0, 0}, ByLender: [][]resources.Amount{{0, 0}, {0, 0}}, OverQuota: []resources.Amount{0, 0}},
		},
		"unallocated compute is lent first": {
			[]usage.Queue{{Name: "a", Nominal: 4, LendingLimit: 4, Usage: 9}, {Name: "b", Nominal: 4, LendingLimit: 4}}, 2,
			usage.BorrowerLoans{Unallocated: []resources.Amount{2, 0}, ByLender: [][]resources.Amount{{0, 0}, {3, 0}}, OverQuota: []resources.Amount{0, 0}},
		},
		"lenders lend in proportion to their idle quota": {
			[]usage.Queue{{Name: "a", Nominal: 0, Usage: 3}, {Name: "b", Nominal: 8, LendingLimit: 8, Usage: 2}, {Name: "c", Nominal: 3, LendingLimit: 3}}, 0,
			usage.BorrowerLoans{Unallocated: []resources.Amount{0, 0, 0}, ByLender: [][]resources.Amount{{0, 0, 0}, {2, 0, 0}, {1, 0, 0}}, OverQuota: []resources.Amount{0, 0, 0}},
		},
		"the lending limit bounds a loan": {
			[]usage.Queue{{Name: "a", Nominal: 0, Usage: 3}, {Name: "b", Nominal: 8, LendingLimit: 1}, {Name: "c", Nominal: 3, LendingLimit: 3}}, 0,
			usage.BorrowerLoans{Unallocated: []resources.Amount{0, 0, 0}, ByLender: [][]resources.Amount{{0, 0, 0}, {1, 0, 0}, {2, 0, 0}}, OverQuota: []resources.Amount{0, 0, 0}},
		},
		"nominal quota lowered while it is lent": {
			[]usage.Queue{{Name: "a", Nominal: 2, LendingLimit: 2, Usage: 8}, {Name: "b", Nominal: 4, LendingLimit: 4, Usage: 1}}, 0,
			usage.BorrowerLoans{Unallocated: []resources.Amount{0, 0}, ByLender: [][]resources.Amount{{0, 0}, {3, 0}}, OverQuota: []resources.Amount{3, 0}},
		},
		"two borrowers, two lenders": {
			[]usage.Queue{{Name: "a", Nominal: 0, Usage: 2}, {Name: "b", Nominal: 0, Usage: 2}, {Name: "c", Nominal: 2, LendingLimit: 2}}, 2,
			usage.BorrowerLoans{Unallocated: []resources.Amount{1, 1, 0}, ByLender: [][]resources.Amount{{0, 0, 0}, {0, 0, 0}, {1, 1, 0}}, OverQuota: []resources.Amount{0, 0, 0}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, usage.ApportionLoansByBorrower(tc.teams, tc.unallocated)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// For any usage, own and borrowed add up to the usage, loans add up to the borrowed
// usage, and no queue lends more than its idle quota.
func TestLoansAddUp(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 1))
	size := func() resources.Amount { return resources.Amount(random.Int64N(1 << random.IntN(58))) }
	for range 5000 {
		teams := make([]usage.Queue, 1+random.IntN(6))
		for i := range teams {
			teams[i] = usage.Queue{Nominal: size(), LendingLimit: size(), Usage: size()}
		}
		unallocated := size()
		l := usage.ApportionLoansByBorrower(teams, unallocated)
		var shared, uncovered, idle resources.Amount
		for i, team := range teams {
			if team.Own()+team.Borrowed() != team.Usage || team.Own() < 0 || team.Borrowed() < 0 {
				t.Fatalf("%+v has %d own and %d borrowed", team, team.Own(), team.Borrowed())
			}
			covered := l.Unallocated[i] + l.OverQuota[i]
			var lent resources.Amount
			for j := range teams {
				covered += l.ByLender[j][i]
				lent += l.ByLender[i][j]
				if l.ByLender[i][j] < 0 || l.ByLender[i][j] > 0 && i == j {
					t.Fatalf("%+v lends %d to %+v", team, l.ByLender[i][j], teams[j])
				}
			}
			if covered != team.Borrowed() || l.Unallocated[i] < 0 || l.OverQuota[i] < 0 {
				t.Fatalf("%+v of %+v borrows %d, and its loans are %d: %+v", team, teams, team.Borrowed(), covered, l)
			}
			if lent > team.Lendable() {
				t.Fatalf("%+v lends %d, want at most %d", team, lent, team.Lendable())
			}
			shared += l.Unallocated[i]
			uncovered += l.OverQuota[i]
			idle += team.Lendable() - lent
		}
		if shared > unallocated || uncovered > 0 && (idle > 0 || shared < unallocated) {
			t.Fatalf("%d of %d unallocated, %d uncovered while %d are idle", shared, unallocated, uncovered, idle)
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
