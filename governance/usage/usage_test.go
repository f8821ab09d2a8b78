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
		teams       []usage.Team
		unallocated int64
		want        usage.Loans
	}{
		"nobody borrows": {
			[]usage.Team{{Name: "a", Quota: 4, Lends: 4, Held: 4}, {Name: "b", Quota: 4, Lends: 4}}, 2,
			usage.Loans{Unallocated: []int64{0, 0}, Lent: [][]int64{{0, 0}, {0, 0}}, Uncovered: []int64{0, 0}},
		},
		"what no team was given is lent first": {
			[]usage.Team{{Name: "a", Quota: 4, Lends: 4, Held: 9}, {Name: "b", Quota: 4, Lends: 4}}, 2,
			usage.Loans{Unallocated: []int64{2, 0}, Lent: [][]int64{{0, 0}, {3, 0}}, Uncovered: []int64{0, 0}},
		},
		"lenders lend in proportion to what is idle": {
			[]usage.Team{{Name: "a", Quota: 0, Held: 3}, {Name: "b", Quota: 8, Lends: 8, Held: 2}, {Name: "c", Quota: 3, Lends: 3}}, 0,
			usage.Loans{Unallocated: []int64{0, 0, 0}, Lent: [][]int64{{0, 0, 0}, {2, 0, 0}, {1, 0, 0}}, Uncovered: []int64{0, 0, 0}},
		},
		"a lending limit bounds what is lent": {
			[]usage.Team{{Name: "a", Quota: 0, Held: 3}, {Name: "b", Quota: 8, Lends: 1}, {Name: "c", Quota: 3, Lends: 3}}, 0,
			usage.Loans{Unallocated: []int64{0, 0, 0}, Lent: [][]int64{{0, 0, 0}, {1, 0, 0}, {2, 0, 0}}, Uncovered: []int64{0, 0, 0}},
		},
		"a quota was lowered while it was lent": {
			[]usage.Team{{Name: "a", Quota: 2, Lends: 2, Held: 8}, {Name: "b", Quota: 4, Lends: 4, Held: 1}}, 0,
			usage.Loans{Unallocated: []int64{0, 0}, Lent: [][]int64{{0, 0}, {3, 0}}, Uncovered: []int64{3, 0}},
		},
		"two borrow of two": {
			[]usage.Team{{Name: "a", Quota: 0, Held: 2}, {Name: "b", Quota: 0, Held: 2}, {Name: "c", Quota: 2, Lends: 2}}, 2,
			usage.Loans{Unallocated: []int64{1, 1, 0}, Lent: [][]int64{{0, 0, 0}, {0, 0, 0}, {1, 1, 0}}, Uncovered: []int64{0, 0, 0}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, usage.Lend(tc.teams, tc.unallocated)); diff != "" {
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
		teams := make([]usage.Team, 1+random.IntN(6))
		for i := range teams {
			teams[i] = usage.Team{Quota: size(), Lends: size(), Held: size()}
		}
		unallocated := size()
		l := usage.Lend(teams, unallocated)
		var shared, uncovered, idle int64
		for i, team := range teams {
			if team.Own()+team.Borrowed() != team.Held || team.Own() < 0 || team.Borrowed() < 0 {
				t.Fatalf("%+v is %d own and %d borrowed", team, team.Own(), team.Borrowed())
			}
			has := l.Unallocated[i] + l.Uncovered[i]
			var lent int64
			for j := range teams {
				has += l.Lent[j][i]
				lent += l.Lent[i][j]
				if l.Lent[i][j] < 0 || l.Lent[i][j] > 0 && i == j {
					t.Fatalf("%+v lends %d to %+v", team, l.Lent[i][j], teams[j])
				}
			}
			if has != team.Borrowed() || l.Unallocated[i] < 0 || l.Uncovered[i] < 0 {
				t.Fatalf("%+v of %+v borrows %d, and has %d: %+v", team, teams, team.Borrowed(), has, l)
			}
			if lent > team.Idle() {
				t.Fatalf("%+v lends %d", team, lent)
			}
			shared += l.Unallocated[i]
			uncovered += l.Uncovered[i]
			idle += team.Idle() - lent
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
	if got := usage.OwnFirst(4, []int64{3, 3, 2}); !slices.Equal(got, []int64{0, 2, 2}) {
		t.Errorf("they borrow %d", got)
	}
}
