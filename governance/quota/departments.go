package quota

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/catalog"
)

// Departments are the departments of a cluster with the teams in them, as a tree of quota.
// Parents are those of the specs.
type Departments struct {
	types    catalog.Catalog
	named    map[string]*v1alpha1.Department
	children map[string][]string // departments directly below, sorted; "" has those without a parent
	teams    map[string][]*v1alpha1.ComputeAllocation
	of       map[string]string // the department of each team
}

// NewDepartments returns the tree. It keeps references to both lists.
func NewDepartments(departments []v1alpha1.Department, teams []*v1alpha1.ComputeAllocation, types catalog.Catalog) Departments {
	d := Departments{types: types, named: map[string]*v1alpha1.Department{}, children: map[string][]string{}, teams: map[string][]*v1alpha1.ComputeAllocation{}, of: make(map[string]string, len(teams))}
	for i := range departments {
		d.named[departments[i].Name] = &departments[i]
	}
	for _, name := range slices.Sorted(maps.Keys(d.named)) {
		parent := d.named[name].Spec.Parent
		if d.named[parent] == nil {
			parent = ""
		}
		d.children[parent] = append(d.children[parent], name)
	}
	for _, team := range teams {
		of := team.Spec.Department
		if d.named[of] == nil {
			of = ""
		}
		d.teams[of], d.of[team.Name] = append(d.teams[of], team), of
	}
	return d
}

// Find returns a department; nil for none.
func (d Departments) Find(name string) *v1alpha1.Department { return d.named[name] }

// Len returns the number of departments.
func (d Departments) Len() int { return len(d.named) }

// Children returns the departments directly below one, sorted; those without a parent that
// exists for "".
func (d Departments) Children(name string) []string { return d.children[name] }

// Teams returns the teams directly in a department, in the order of the list; those without
// one that exists for "".
func (d Departments) Teams(name string) []*v1alpha1.ComputeAllocation { return d.teams[name] }

// DepartmentOf returns the department of a team; empty for none.
func (d Departments) DepartmentOf(team string) string { return d.of[team] }

// Chain returns a department and those above it, the nearest first. It ends where a parent
// does not exist or repeats.
func (d Departments) Chain(name string) (chain []string) {
	for d.named[name] != nil && !slices.Contains(chain, name) {
		chain, name = append(chain, name), d.named[name].Spec.Parent
	}
	return chain
}

// Above returns the departments of Chain.
func (d Departments) Above(name string) (above []*v1alpha1.Department) {
	for _, name := range d.Chain(name) {
		above = append(above, d.named[name])
	}
	return above
}

// Path returns the names of Chain from the top, joined for users, such as "Research › Vision".
func (d Departments) Path(name string) string {
	var titles []string
	for _, above := range slices.Backward(d.Chain(name)) {
		titles = append(titles, Title(d.named[above]))
	}
	return strings.Join(titles, " › ")
}

// Title returns the display name of a department, or its name.
func Title(d *v1alpha1.Department) string {
	if d.Spec.DisplayName != "" {
		return d.Spec.DisplayName
	}
	return d.Name
}

// Below returns a department and all departments below it, each before those below it.
func (d Departments) Below(name string) []string {
	return d.below(name, nil)
}

func (d Departments) below(name string, found []string) []string {
	if slices.Contains(found, name) {
		return found
	}
	found = append(found, name)
	for _, child := range d.children[name] {
		found = d.below(child, found)
	}
	return found
}

// TeamsBelow returns the names of the teams in a department or below it, sorted.
func (d Departments) TeamsBelow(name string) (teams []string) {
	for _, below := range d.Below(name) {
		for _, team := range d.teams[below] {
			teams = append(teams, team.Name)
		}
	}
	slices.Sort(teams)
	return teams
}

// Includes reports whether the department of a team is of or below it. The empty of includes
// every team.
func (d Departments) Includes(of, department string) bool {
	return of == "" || of == department || slices.Contains(d.Chain(department), of)
}

// EffectiveDepartment returns the quota of a department, as Effective does for a team: while
// its parent, its own quota or that of its teams prevents the spec, the one that was applied
// last.
func EffectiveDepartment(d *v1alpha1.Department, types catalog.Catalog) (resolved Resolved, current bool) {
	a := d.Allocation()
	for _, c := range a.Status.Conditions {
		if c.Type == v1alpha1.ConditionReady && c.ObservedGeneration == d.Generation && (c.Reason == v1alpha1.ReasonParentInvalid || c.Reason == v1alpha1.ReasonOverParent || c.Reason == v1alpha1.ReasonBelowTeams) {
			return Applied(a), false
		}
	}
	return Effective(a, types)
}

// Quota returns the quota of a department by pool.
func (d Departments) Quota(name string) PoolResources {
	all := PoolResources{}
	if of := d.named[name]; of != nil {
		resolved, _ := EffectiveDepartment(of, d.types)
		all.AddNominal(resolved)
	}
	return all
}

// Taken returns the quota of the teams and departments directly below a department, except
// of the team and the department with these names.
func (d Departments) Taken(name, exceptTeam, exceptDepartment string) PoolResources {
	taken := PoolResources{}
	for _, child := range d.children[name] {
		if child != exceptDepartment {
			for pool, amounts := range d.Quota(child) {
				taken.Add(pool, amounts)
			}
		}
	}
	for _, team := range d.teams[name] {
		if team.Name != exceptTeam {
			resolved, _ := Effective(team, d.types)
			taken.AddNominal(resolved)
		}
	}
	return taken
}

// Minus returns p less other. Amounts of which there is less are 0.
func (p PoolResources) Minus(other PoolResources) PoolResources {
	left := PoolResources{}
	for pool, amounts := range p {
		for name, amount := range amounts {
			left.Add(pool, Resources{name: max(0, amount.Minus(other[pool][name]))})
		}
	}
	return left
}

// Reserve returns the quota of a department that neither its teams nor the departments below
// it have.
func (d Departments) Reserve(name string) PoolResources {
	return d.Quota(name).Minus(d.Taken(name, "", ""))
}

// CheckDepartmentName returns what is wrong with the name of a department; empty if it is
// valid. The schema of the CRD rejects the same names.
func CheckDepartmentName(name string) string {
	switch {
	case name == "":
		return "enter a name"
	case len(name) > v1alpha1.MaxTeamName:
		return fmt.Sprintf("has %d characters; a department name has at most %d", len([]rune(name)), v1alpha1.MaxTeamName)
	case !v1alpha1.ValidName(name):
		return "use lower-case letters, digits and hyphens; start and end with a letter or digit"
	case name == "new":
		return `"new" is reserved; choose another name`
	}
	return ""
}

// CheckParent returns why a department of this name cannot be below parent; empty if it can.
func (d Departments) CheckParent(name, parent string) string {
	switch {
	case parent == "":
		return ""
	case d.named[parent] == nil:
		return fmt.Sprintf("department %s does not exist; choose another", parent)
	case parent == name || name != "" && slices.Contains(d.Chain(parent), name):
		return fmt.Sprintf("department %s is below %s; choose another", parent, name)
	}
	deepest := 1
	if d.named[name] != nil {
		for _, below := range d.Below(name) {
			deepest = max(deepest, slices.Index(d.Chain(below), name)+1)
		}
	}
	if levels := len(d.Chain(parent)) + deepest; levels > v1alpha1.MaxDepartmentLevels {
		return fmt.Sprintf("that would be %d levels of departments; there are at most %d", levels, v1alpha1.MaxDepartmentLevels)
	}
	return ""
}

// OverParent returns the quota of a team or department that is more than the department above
// it has left. It leaves out amounts that stay or fall, and network devices, which follow
// from others. Physical is what is left.
func OverParent(left PoolResources, before, after Resolved) (over []Excess) {
	was := PoolResources{}
	was.AddNominal(before)
	for _, pool := range after.Total().Pools {
		for _, name := range pool.Nominal.Names() {
			if amount := pool.Nominal[name]; name != catalog.Network && amount > left[pool.Name][name] && amount > was[pool.Name][name] {
				over = append(over, Excess{Pool: pool.Name, Resource: name, Allocated: amount, Physical: left[pool.Name][name]})
			}
		}
	}
	return over
}

// BelowTaken returns the quota of a department that is less than what its teams and
// departments have. It leaves out amounts that stay or rise, and network devices. Allocated is
// what they have, and Physical the quota.
func BelowTaken(taken PoolResources, before, after Resolved) (below []Excess) {
	was, is := PoolResources{}, PoolResources{}
	was.AddNominal(before)
	is.AddNominal(after)
	for _, pool := range slices.Sorted(maps.Keys(taken)) {
		for _, name := range taken[pool].Names() {
			amount := is[pool][name]
			if name != catalog.Network && amount < taken[pool][name] && amount < was[pool][name] {
				below = append(below, Excess{Pool: pool, Resource: name, Allocated: taken[pool][name], Physical: amount})
			}
		}
	}
	return below
}

// CheckTeam returns the errors of a team's department: it does not exist, or has less left
// than the team is to have. saved is nil for a new team.
func (d Departments) CheckTeam(team, saved *v1alpha1.ComputeAllocation) (errs governance.FieldErrors) {
	name := team.Spec.Department
	if name == "" {
		return nil
	}
	if d.named[name] == nil {
		errs.Addf("spec.department", "department %s does not exist; choose another", name)
		return errs
	}
	var before Resolved
	if saved != nil && saved.Spec.Department == name {
		before, _ = Effective(saved, d.types)
	}
	after, _ := Resolve(&team.Spec, d.types)
	over := OverParent(d.Quota(name).Minus(d.Taken(name, team.Name, "")), before, after)
	return d.overErrors(over, name, after)
}

// CheckMove returns why these teams of other departments cannot all be in one; empty if they can.
func (d Departments) CheckMove(teams []v1alpha1.ComputeAllocation, to string) string {
	if to == "" {
		return ""
	}
	if d.named[to] == nil {
		return fmt.Sprintf("department %s does not exist; choose another", to)
	}
	all, sum := PoolResources{}, Resolved{}
	for i := range teams {
		resolved, _ := Resolve(&teams[i].Spec, d.types)
		all.AddNominal(resolved)
	}
	for _, pool := range slices.Sorted(maps.Keys(all)) {
		sum.Pools = append(sum.Pools, FlavorQuotas{Name: pool, Nominal: all[pool]})
	}
	var words []string
	for _, e := range byRow(OverParent(d.Reserve(to), Resolved{}, sum), Resolved{}, func(wanted, left string) string {
		return fmt.Sprintf("they have %s, and department %s has %s left", wanted, Title(d.named[to]), left)
	}) {
		words = append(words, e.Message)
	}
	return strings.Join(words, "; ")
}

// CheckDepartment returns the errors of a department among the others: its parent, its quota
// and that of its teams. saved is nil for a new department.
func (d Departments) CheckDepartment(of, saved *v1alpha1.Department) (errs governance.FieldErrors) {
	parent := of.Spec.Parent
	if problem := d.CheckParent(of.Name, parent); problem != "" {
		errs.Add("spec.parent", problem)
		return errs
	}
	var before, there Resolved // its quota, and that of it below the same parent
	if saved != nil {
		before, _ = EffectiveDepartment(saved, d.types)
		if saved.Spec.Parent == parent {
			there = before
		}
	}
	after, _ := Resolve(&of.Allocation().Spec, d.types)
	if parent != "" {
		errs = d.overErrors(OverParent(d.Quota(parent).Minus(d.Taken(parent, "", of.Name)), there, after), parent, after)
	}
	below := BelowTaken(d.Taken(of.Name, "", ""), before, after)
	return append(errs, byRow(below, after, func(taken, quota string) string {
		return fmt.Sprintf("is %s, and its teams and departments have %s", quota, taken)
	})...)
}

// overErrors returns an error for each pool of which a department has less left.
func (d Departments) overErrors(over []Excess, department string, after Resolved) governance.FieldErrors {
	all := ""
	if len(after.Shares) > 0 {
		all = " with that of shares"
	}
	return byRow(over, after, func(wanted, left string) string {
		return fmt.Sprintf("is %s%s, and department %s has %s left", wanted, all, Title(d.named[department]), left)
	})
}

// byRow returns an error for each pool, at its row of quota or, without one, at all of them.
// vCPU and memory follow from accelerators, and are named where only they exceed.
func byRow(excess []Excess, after Resolved, sentence func(allocated, physical string) string) (errs governance.FieldErrors) {
	for len(excess) > 0 {
		pool := excess[0].Pool
		of := slices.DeleteFunc(slices.Clone(excess), func(e Excess) bool { return e.Pool != pool })
		excess = excess[len(of):]
		if accelerators := slices.DeleteFunc(slices.Clone(of), func(e Excess) bool { return e.Resource == catalog.CPU || e.Resource == catalog.Memory }); len(accelerators) > 0 {
			of = accelerators
		}
		var allocated, physical []string
		for _, e := range of {
			allocated, physical = append(allocated, Amount(e.Resource, e.Allocated)), append(physical, Amount(e.Resource, e.Physical))
		}
		path, words := "spec.quota", sentence(join(allocated), join(physical))
		if row := slices.IndexFunc(after.Pools, func(p FlavorQuotas) bool { return p.Name == pool && !p.BorrowOnly }); row >= 0 {
			path = fmt.Sprintf("spec.quota[%d]", row)
		} else {
			words = "in pool " + pool + " " + words
		}
		errs.Add(path, words)
	}
	return errs
}
