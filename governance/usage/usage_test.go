package usage_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"kuota.dev/kuota/governance/usage"

	"github.com/google/go-cmp/cmp"
)

func TestLend(t *testing.T) {
	cases := map[string]struct {
		teams       []usage.Queue
		unallocated int64
		want        usage.BorrowerLoans
	}{
		"nobody borrows": {
			[]usage.Queue{{Name: "a", Nominal: 4, LendingLimit: 4, Usage: 4}, {Name: "b", Nominal: 4, LendingLimit: 4}}, 2,
			usage.BorrowerLoans{Unallocated: []int64{0, 0}, ByLender: [][]int64{{0, 0}, {0, 0}}, OverQuota: []int64{0, 0}},
		},
		"what no team was given is lent first": {
			[]usage.Queue{{Name: "a", Nominal: 4, LendingLimit: 4, Usage: 9}, {Name: "b", Nominal: 4, LendingLimit: 4}}, 2,
			usage.BorrowerLoans{Unallocated: []int64{2, 0}, ByLender: [][]int64{{0, 0}, {3, 0}}, OverQuota: []int64{0, 0}},
		},
		"lenders lend in proportion to what is idle": {
			[]usage.Queue{{Name: "a", Nominal: 0, Usage: 3}, {Name: "b", Nominal: 8, LendingLimit: 8, Usage: 2}, {Name: "c", Nominal: 3, LendingLimit: 3}}, 0,
			usage.BorrowerLoans{Unallocated: []int64{0, 0, 0}, ByLender: [][]int64{{0, 0, 0}, {2, 0, 0}, {1, 0, 0}}, OverQuota: []int64{0, 0, 0}},
		},
		"a lending limit bounds what is lent": {
			[]usage.Queue{{Name: "a", Nominal: 0, Usage: 3}, {Name: "b", Nominal: 8, LendingLimit: 1}, {Name: "c", Nominal: 3, LendingLimit: 3}}, 0,
			usage.BorrowerLoans{Unallocated: []int64{0, 0, 0}, ByLender: [][]int64{{0, 0, 0}, {1, 0, 0}, {2, 0, 0}}, OverQuota: []int64{0, 0, 0}},
		},
		"a quota was lowered while it was lent": {
			[]usage.Queue{{Name: "a", Nominal: 2, LendingLimit: 2, Usage: 8}, {Name: "b", Nominal: 4, LendingLimit: 4, Usage: 1}}, 0,
			usage.BorrowerLoans{Unallocated: []int64{0, 0}, ByLender: [][]int64{{0, 0}, {3, 0}}, OverQuota: []int64{3, 0}},
		},
		"two borrow of two": {
			[]usage.Queue{{Name: "a", Nominal: 0, Usage: 2}, {Name: "b", Nominal: 0, Usage: 2}, {Name: "c", Nominal: 2, LendingLimit: 2}}, 2,
			usage.BorrowerLoans{Unallocated: []int64{1, 1, 0}, ByLender: [][]int64{{0, 0, 0}, {0, 0, 0}, {1, 1, 0}}, OverQuota: []int64{0, 0, 0}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, usage.ApportionLoansByBorrower(tc.teams, tc.unallocated)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Whatever teams hold, own and borrowed are what they hold, what is lent adds up
// to what is borrowed, and nobody lends what they do not have idle.
func TestLoansAddUp(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 1))
	size := func() int64 { return random.Int64N(1 << random.IntN(58)) }
	for range 5000 {
		teams := make([]usage.Queue, 1+random.IntN(6))
		for i := range teams {
			teams[i] = usage.Queue{Nominal: size(), LendingLimit: size(), Usage: size()}
		}
		unallocated := size()
		l := usage.ApportionLoansByBorrower(teams, unallocated)
		var shared, uncovered, idle int64
		for i, team := range teams {
			if team.Own()+team.Borrowed() != team.Usage || team.Own() < 0 || team.Borrowed() < 0 {
				t.Fatalf("%+v is %d own and %d borrowed", team, team.Own(), team.Borrowed())
			}
			has := l.Unallocated[i] + l.OverQuota[i]
			var lent int64
			for j := range teams {
				has += l.ByLender[j][i]
				lent += l.ByLender[i][j]
				if l.ByLender[i][j] < 0 || l.ByLender[i][j] > 0 && i == j {
					t.Fatalf("%+v lends %d to %+v", team, l.ByLender[i][j], teams[j])
				}
			}
			if has != team.Borrowed() || l.Unallocated[i] < 0 || l.OverQuota[i] < 0 {
				t.Fatalf("%+v of %+v borrows %d, and has %d: %+v", team, teams, team.Borrowed(), has, l)
			}
			if lent > team.Lendable() {
				t.Fatalf("%+v lends %d", team, lent)
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

// A part is never more than a whole unit away from its exact share, and the
// order in which a team's tasks come decides which of them borrow.
func TestApportion(t *testing.T) {
	if got := usage.Apportion(10, []int64{3, 3, 7}); !slices.Equal(got, []int64{2, 2, 6}) {
		t.Errorf("10 comes to %d", got)
	}
	if got := usage.BorrowedInOrder(4, []int64{3, 3, 2}); !slices.Equal(got, []int64{0, 2, 2}) {
		t.Errorf("they borrow %d", got)
	}
}
