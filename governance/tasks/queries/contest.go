package queries

import (
	"cmp"
	"slices"
)

// contest is the lines that compete for the next turn: with fair sharing in a field of each
// Cohort, whose winners compete in the field of its parent, as in Kueue's tournament. All
// other lines, and the winners of all trees, compete in one field.
type contest struct {
	all    *field
	fields map[string]*field // by Cohort
}

// field is what competes in one Cohort, the first at the end.
type field struct {
	up     *field
	depth  int // of the Cohort below its root; 0 also for all trees
	sorted []entrant
}

// entrant is a line, or the winner of a field.
type entrant struct {
	line *line
	of   *field // nil for the line itself
}

func newContest() *contest { return &contest{all: &field{}, fields: map[string]*field{}} }

// field returns the field of the first of these Cohorts, which lead to a root. Without any it
// is that of all trees.
func (c *contest) field(path []string) *field {
	at := c.all
	for depth := range path {
		name := path[len(path)-1-depth]
		if c.fields[name] == nil {
			c.fields[name] = &field{up: at, depth: depth}
		}
		at = c.fields[name]
	}
	return at
}

// begin lets the winners of all fields compete, once all lines are in theirs.
func (c *contest) begin() {
	var list []*field
	for _, f := range c.fields {
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b *field) int { return cmp.Compare(b.depth, a.depth) })
	for _, f := range list {
		f.compete()
	}
}

// next removes the line that is first and returns it; nil for none. again puts it back, if
// it has more tasks, once the usage of its head counts.
func (c *contest) next() (l *line, again func(more bool)) {
	for len(c.all.sorted) > 0 {
		path := []*field{c.all}
		e := c.all.first()
		for ; e.of != nil; e = e.of.first() {
			path = append(path, e.of)
		}
		for _, f := range path {
			f.sorted = f.sorted[:len(f.sorted)-1]
		}
		if before := e.line.turn; e.line.nested && !e.line.fair { // others may have used what was closer
			if e.line.refresh(); e.line.turn.Compare(before, 0) != 0 {
				c.all.insert(e)
				continue
			}
		}
		return e.line, func(more bool) {
			if more {
				path[len(path)-1].insert(entrant{line: e.line})
			}
			for i := len(path) - 1; i > 0; i-- {
				path[i].compete()
			}
		}
	}
	return nil, nil
}

func (f *field) first() entrant { return f.sorted[len(f.sorted)-1] }

func (f *field) insert(e entrant) {
	at, _ := slices.BinarySearchFunc(f.sorted, e, func(other, e entrant) int { return e.line.compare(other.line, f.depth) })
	f.sorted = slices.Insert(f.sorted, at, e)
}

// compete lets the winner of a field compete in the one above, with the present usage.
func (f *field) compete() {
	if len(f.sorted) > 0 {
		e := f.first()
		if e.line.nested { // otherwise its turn depends on its own queue alone
			e.line.refresh()
		}
		f.up.insert(entrant{e.line, f})
	}
}
