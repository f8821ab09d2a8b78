package explain

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"
)

// A snapshot whose usage and limits change at random equals a new snapshot of the
// same cluster.
func TestSnapshotMatchesANewOne(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	amount := func(below resources.Amount) resources.Amount { return resources.Amount(random.Int64N(int64(below))) }
	maybe := func(n resources.Amount) *resources.Amount {
		if random.IntN(2) == 0 {
			return nil
		}
		return &n
	}
	limit := func() Limit {
		nominal := amount(10)
		return Limit{Nominal: nominal, BorrowingLimit: maybe(amount(5)), LendingLimit: maybe(amount(nominal + 1))}
	}
	for range 200 {
		var list []*Queue
		for i := range 1 + random.IntN(4) {
			q := queue(fmt.Sprint(i), limit(), amount(15))
			q.Flavors = []string{"a100", "h100"}
			q.Limits[h100], q.Usage[h100] = limit(), amount(15)
			list = append(list, q)
		}
		c := cluster(list[0], list[1:]...)
		c.Cohorts["shared"] = cohort("shared", "", Limit{Nominal: amount(5)})
		for i, q := range list[1:] { // departments, some of them without an object
			if q.Cohort = fmt.Sprint("d", random.IntN(3)); i%2 == 0 {
				c.Cohorts[q.Cohort] = cohort(q.Cohort, "shared", limit())
			}
		}
		demands := demands(requesting(1), c)
		l := newSnapshot(c, demands)
		for range 30 {
			q := list[random.IntN(len(list))]
			h := AdmittedWorkload{Queue: q.Name, Usage: quota.FlavorResourceQuantities{a100: amount(5), h100: amount(5), {Flavor: "a100", Resource: "other"}: 1}}
			switch s := l.workload(&h); random.IntN(3) {
			case 0:
				l.removeUsage(s)
				q.Usage[a100], q.Usage[h100] = q.Usage[a100]-h.Usage[a100], q.Usage[h100]-h.Usage[h100]
			case 1:
				l.addUsage(s)
				q.Usage[a100], q.Usage[h100] = q.Usage[a100]+h.Usage[a100], q.Usage[h100]+h.Usage[h100]
			default:
				c.Queue.Limits[h100] = limit()
				l.setLimit(h100, c.Queue.Limits[h100])
			}
			rebuilt := newSnapshot(c, demands)
			for _, fr := range []quota.FlavorResource{a100, h100} {
				for name := range l.queues {
					got, want, i, j := l.queues[name], rebuilt.queues[name], l.index[fr], rebuilt.index[fr]
					if got.available(i) != want.available(j) || got.potentialAvailable(i) != want.potentialAvailable(j) || got.borrowable(i) != want.borrowable(j) {
						t.Fatalf("queue %s, %v: got %+v, want %+v", name, fr, got, want)
					}
				}
			}
		}
	}
}

// AdmittedWorkloads, Borrowers and Withheld yield every such list of a verdict, so that
// redaction omits none.
func TestVerdictYieldsAllNames(t *testing.T) {
	var v Verdict
	n := 0
	var fill func(value reflect.Value)
	fill = func(value reflect.Value) {
		switch {
		case value.Type() == reflect.TypeFor[[]AdmittedWorkload]():
			n++
			value.Set(reflect.ValueOf([]AdmittedWorkload{{Name: fmt.Sprint(n)}}))
		case value.Type() == reflect.TypeFor[[]Borrower]():
			n++
			value.Set(reflect.ValueOf([]Borrower{{Queue: fmt.Sprint(n)}}))
		case value.Type() == reflect.TypeFor[[]Withheld]():
			n++
			value.Set(reflect.ValueOf([]Withheld{{Queue: fmt.Sprint(n)}}))
		case value.Type() == reflect.TypeFor[*Border](): // of the queue's own ancestors
		case value.Type() == reflect.TypeFor[Borrower](), value.Type() == reflect.TypeFor[Withheld]():
			t.Error("a verdict has a Borrower or Withheld outside of a list")
		case value.Type() == reflect.TypeFor[AdmittedWorkload]():
			t.Error("a verdict has an AdmittedWorkload outside of a list")
		case value.Type() == reflect.TypeFor[[]TerminatingPod](): // redacted one by one
		case value.Kind() == reflect.Pointer:
			value.Set(reflect.New(value.Type().Elem()))
			fill(value.Elem())
		case value.Kind() == reflect.Slice:
			value.Set(reflect.MakeSlice(value.Type(), 1, 1))
			fill(value.Index(0))
		case value.Kind() == reflect.Interface, value.Kind() == reflect.Map && value.Type().Elem().Kind() > reflect.Float64:
			t.Errorf("the test does not check whether a %s has names", value.Type())
		case value.Kind() == reflect.Struct:
			for i := range value.NumField() {
				fill(value.Field(i))
			}
		}
	}
	fill(reflect.ValueOf(&v).Elem())
	found := map[string]bool{}
	for _, list := range v.AdmittedWorkloads() {
		found[(*list)[0].Name] = true
	}
	for _, list := range v.Borrowers() {
		found[(*list)[0].Queue] = true
	}
	for _, list := range v.Withheld() {
		found[(*list)[0].Queue] = true
	}
	if len(found) != n || n < 6 {
		t.Errorf("got %d lists, want %d", len(found), n)
	}
}
