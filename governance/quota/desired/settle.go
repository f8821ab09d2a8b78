package desired

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"
)

// Wish is what an allocation wants for its ClusterQueue: its department and its quota.
type Wish struct {
	Department string // empty for the shared cohort
	Nominal    quota.PoolResources
}

// Refusal is why a wish is not granted; its zero value is none.
type Refusal struct{ Reason, Message string }

// Settled is what became of wishes.
type Settled struct {
	// Moved are the departments whose parent changed, in an order in which no change makes
	// a cycle.
	Moved []string
	// Departments and Queues are what was refused, by name.
	Departments, Queues map[string]Refusal
}

// Settle grants the wishes of departments and ClusterQueues that fit, and changes the tree
// accordingly. A department's quota stays at least what is below it, and at most what its
// parent has left; a ClusterQueue gets at most what its department has left. What is refused
// keeps what it had. A ClusterQueue that moves counts in both departments from then on.
// Quota of the shared cohort is not limited here. The order is that of the names, so that
// equal wishes have equal results.
func (t *Tree) Settle(departments map[string]Border, queues map[string]Wish) Settled {
	s := settling{t: t, below: t.below(), done: map[string]bool{}, out: Settled{Departments: map[string]Refusal{}, Queues: map[string]Refusal{}}}
	for again := true; again; { // one grant can make room for another
		again = false
		for _, name := range slices.Sorted(maps.Keys(departments)) {
			again = s.department(name, departments[name]) || again
		}
		for _, name := range slices.Sorted(maps.Keys(queues)) {
			s.queue(name, queues[name])
		}
	}
	return s.out
}

type settling struct {
	t     *Tree
	out   Settled
	below map[string]quota.PoolResources
	done  map[string]bool // ClusterQueues whose wish is granted
}

// department grants the border that a department wants, and reports whether that changed
// the tree.
func (s *settling) department(name string, wanted Border) (changed bool) {
	d := s.t.Departments[name]
	delete(s.out.Departments, name)
	if problem := s.parentProblem(name, wanted.Parent); problem != "" {
		s.out.Departments[name] = Refusal{v1alpha1.ReasonParentInvalid, problem}
		if !d.Applied {
			return false
		}
		wanted.Parent = d.Parent // the rest may fit
	}
	had, wants := quota.PoolResources{}, quota.PoolResources{}
	had.AddNominal(d.Quota)
	wants.AddNominal(wanted.Quota)
	moves := wanted.Parent != d.Parent || !d.Applied
	if !moves && equalNominal(had, wants) {
		d.Quota = wanted.Quota // with its limits
		return false
	}
	if short := shortage(s.below[name], wants, func(pool, resource string, _ resources.Amount) bool {
		return d.Applied && wants[pool][resource] >= had[pool][resource]
	}); len(short) > 0 {
		s.out.Departments[name] = Refusal{v1alpha1.ReasonBelowTeams, "its teams and departments have more: " + describeShortage(short, "they have", "the quota would be")}
		return false
	}
	if wanted.Parent != "" {
		left := s.left(wanted.Parent)
		if !moves {
			for pool, amounts := range d.total(s.below[name]) {
				left.Add(pool, amounts)
			}
		}
		if short := shortage(wants, left, func(pool, resource string, amount resources.Amount) bool {
			return !moves && amount <= had[pool][resource]
		}); len(short) > 0 {
			s.out.Departments[name] = Refusal{v1alpha1.ReasonOverParent, fmt.Sprintf("department %s has not as much left: %s", wanted.Parent, describeShortage(short, "wanted", "left are"))}
			return false
		}
	}
	if wanted.Parent == "" && s.t.Refused != nil {
		before, after := s.below[""], quota.PoolResources{}
		after.Raise(before)
		grown := *d
		grown.Quota = wanted.Quota
		for pool, amounts := range grown.total(s.below[name]) {
			after.Add(pool, amounts)
		}
		if !moves {
			after.Subtract(d.total(s.below[name]))
		}
		if problem := s.t.Refused(before, after); problem != "" {
			s.out.Departments[name] = Refusal{v1alpha1.ReasonOverAllocated, problem}
			return false
		}
	}
	if d.Applied && wanted.Parent != d.Parent {
		s.out.Moved = append(s.out.Moved, name)
	}
	d.Border, d.Applied = wanted, true
	s.below = s.t.below()
	return true
}

// parentProblem returns why a department cannot be below another.
func (s *settling) parentProblem(name, parent string) string {
	if parent == "" {
		return ""
	}
	levels := 0
	for above := parent; above != ""; levels++ {
		d := s.t.Departments[above]
		switch {
		case above == name:
			return fmt.Sprintf("department %s is below this one", parent)
		case d == nil && above == parent:
			return fmt.Sprintf("department %s does not exist", parent)
		case d != nil && d.DeletionTimestamp != nil && s.t.Departments[name].Parent != parent:
			return fmt.Sprintf("department %s is being deleted", above)
		case d == nil || !d.Applied:
			return fmt.Sprintf("department %s is not ready", above)
		}
		above = d.Parent
	}
	if levels+s.height(name) > v1alpha1.MaxDepartmentLevels {
		return fmt.Sprintf("departments have at most %d levels, and these would be %d", v1alpha1.MaxDepartmentLevels, levels+s.height(name))
	}
	return ""
}

// height returns how many levels a department and those below it are.
func (s *settling) height(name string) int {
	most := 0
	for below, d := range s.t.Departments {
		if d.Parent == name && d.Applied && below != name {
			most = max(most, s.height(below))
		}
	}
	return most + 1
}

// queue grants what a ClusterQueue wants. It leaves nothing to others.
func (s *settling) queue(name string, wish Wish) {
	if s.done[name] {
		return
	}
	q := s.t.Queues[name]
	if problem := s.queueProblem(q, wish); problem != "" {
		s.out.Queues[name] = Refusal{v1alpha1.ReasonDepartment, problem}
		return
	}
	delete(s.out.Queues, name)
	s.done[name] = true
	if q.in(wish.Department) && q[wish.Department].Covers(wish.Nominal) {
		return
	}
	has, grown := q[wish.Department], quota.PoolResources{}
	grown.Raise(has)
	grown.Raise(wish.Nominal)
	for pool, amounts := range grown {
		for resource, amount := range amounts {
			addTo(s.below, wish.Department, quota.PoolResources{pool: {resource: amount.Minus(has[pool][resource])}})
		}
	}
	if q = maps.Clone(q); q == nil {
		q = TreeQueue{}
	}
	q[wish.Department] = grown
	s.t.Queues[name] = q
}

// queueProblem returns why a ClusterQueue does not get what it wants.
func (s *settling) queueProblem(q TreeQueue, wish Wish) string {
	if wish.Department == "" {
		return ""
	}
	d := s.t.Departments[wish.Department]
	switch {
	case d == nil:
		return fmt.Sprintf("department %s does not exist", wish.Department)
	case !d.Applied:
		return fmt.Sprintf("department %s is not ready", wish.Department)
	case !q.in(wish.Department) && d.DeletionTimestamp != nil:
		return fmt.Sprintf("department %s is being deleted", wish.Department)
	}
	has := q[wish.Department]
	if has.Covers(wish.Nominal) {
		return ""
	}
	left := s.left(wish.Department)
	for pool, amounts := range has {
		left.Add(pool, amounts)
	}
	short := shortage(wish.Nominal, left, func(pool, resource string, amount resources.Amount) bool {
		return amount <= has[pool][resource]
	})
	if len(short) == 0 {
		return ""
	}
	return fmt.Sprintf("department %s has not as much left: %s", wish.Department, describeShortage(short, "wanted", "left are"))
}

// left returns the quota that a department has more than what is below it.
func (s *settling) left(department string) quota.PoolResources {
	left := quota.PoolResources{}
	left.AddNominal(s.t.Departments[department].Quota)
	left.Subtract(s.below[department])
	return left
}

// shortage returns what of wants is more than has, except what is allowed. Network devices
// follow from others, rounded up for each team, and are never short.
func shortage(wants, has quota.PoolResources, allowed func(pool, resource string, amount resources.Amount) bool) (short []quota.Excess) {
	for _, pool := range slices.Sorted(maps.Keys(wants)) {
		for _, resource := range wants[pool].Names() {
			amount := wants[pool][resource]
			if left := has[pool][resource]; resource != catalog.Network && amount > 0 && amount > left && !allowed(pool, resource, amount) {
				short = append(short, quota.Excess{Pool: pool, Resource: resource, Allocated: amount, Physical: max(0, left)})
			}
		}
	}
	return short
}

// describeShortage returns a shortage as one text, such as "ml.p5: wanted 16 GPUs, left are 8
// GPUs". Where accelerators of a pool are short, it leaves out what follows from them.
func describeShortage(short []quota.Excess, wanted, left string) string {
	var parts []string
	accelerators := map[string]bool{} // pools of which some are short; they come first
	for _, e := range short {
		if is := catalog.IsAccelerator(e.Resource); accelerators[e.Pool] && catalog.FollowsAccelerators(e.Resource) {
			continue
		} else if is {
			accelerators[e.Pool] = true
		}
		parts = append(parts, fmt.Sprintf("%s: %s %s, %s %s", e.Pool, wanted, quota.Amount(e.Resource, e.Allocated), left, quota.Amount(e.Resource, e.Physical)))
	}
	return strings.Join(parts, "; ")
}

func equalNominal(a, b quota.PoolResources) bool {
	return len(shortage(a, b, never)) == 0 && len(shortage(b, a, never)) == 0
}

func never(string, string, resources.Amount) bool { return false }
