package allocations

import (
	"testing"

	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/resources"

	"github.com/google/go-cmp/cmp"
)

// A team that uses more of a resource than its quota borrows the difference.
func TestBorrowerOf(t *testing.T) {
	gpus := func(pool string, n resources.Amount) quota.PoolResources {
		return quota.PoolResources{pool: {catalog.GPU: n}}
	}
	task := func(name string) Task { return Task{Namespace: "n", Kind: "Job", Name: name} }
	admitted := []admittedTask{
		{task: task("a"), usage: gpus("h100", 4)},
		{task: task("b"), usage: gpus("a100", 8)},
		{task: task("c"), usage: gpus("h100", 2)},
	}
	own := quota.Resolved{Pools: []quota.FlavorQuotas{{Name: "h100", Nominal: quota.Resources{catalog.GPU: 4}}}}
	for name, tc := range map[string]struct {
		pool, resource string
		want           Borrower
	}{
		"beyond nominal quota":  {"h100", catalog.GPU, Borrower{Borrowed: 2, Tasks: []Task{task("a"), task("c")}}},
		"without nominal quota": {"a100", catalog.GPU, Borrower{Borrowed: 8, Tasks: []Task{task("b")}}},
		"nothing used":          {"h100", catalog.CPU, Borrower{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, borrowerOf(admitted, own, tc.pool, tc.resource)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestBorrowsMore(t *testing.T) {
	gpus := func(n resources.Amount) quota.Resources { return quota.Resources{catalog.GPU: n} }
	for name, tc := range map[string]struct {
		change PoolChange
		want   bool
	}{
		"a higher limit":            {PoolChange{Before: gpus(4), After: gpus(4), BorrowingLimitBefore: gpus(1), BorrowingLimitAfter: gpus(2)}, true},
		"the limit is removed":      {PoolChange{Before: gpus(4), After: gpus(4), BorrowingLimitBefore: gpus(1)}, true},
		"a borrow-only pool":        {PoolChange{After: gpus(0), BorrowingLimitAfter: gpus(2)}, true},
		"a lower limit":             {PoolChange{Before: gpus(4), After: gpus(4), BorrowingLimitBefore: gpus(2), BorrowingLimitAfter: gpus(1)}, false},
		"a limit where none was":    {PoolChange{Before: gpus(4), After: gpus(4), BorrowingLimitAfter: gpus(9)}, false},
		"the pool is removed":       {PoolChange{Before: gpus(4), BorrowingLimitBefore: gpus(2)}, false},
		"no limit before and after": {PoolChange{Before: gpus(4), After: gpus(2)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := borrowsMore(tc.change, catalog.GPU); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
