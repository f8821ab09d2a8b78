package quota

import (
	"slices"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// DepartmentLabel is the label of a Cohort with the name of the department that it belongs to.
const DepartmentLabel = "kuota.dev/department"

// Cohorts are the Cohort objects of a cluster by name. They form trees. A name that only
// appears as a parent, or as the cohort of a ClusterQueue, is a root Cohort without an object.
type Cohorts map[string]*kueue.Cohort

// NewCohorts returns the Cohorts of a list, which it keeps references to.
func NewCohorts(list []kueue.Cohort) Cohorts {
	c := make(Cohorts, len(list))
	for i := range list {
		c[list[i].Name] = &list[i]
	}
	return c
}

// Parent returns the parent of a Cohort; empty for a root.
func (c Cohorts) Parent(name string) string {
	if o := c[name]; o != nil {
		return string(o.Spec.ParentName)
	}
	return ""
}

// Path returns a Cohort and its ancestors, the root last. cycle reports that the path has no
// root: the last Cohort has a parent that the path contains, and Kueue admits nothing there.
func (c Cohorts) Path(name string) (path []string, cycle bool) {
	for name != "" {
		if slices.Contains(path, name) {
			return path, true
		}
		path = append(path, name)
		name = c.Parent(name)
	}
	return path, false
}

// Root returns the root of the tree of a Cohort; empty if the path to it is a cycle.
func (c Cohorts) Root(name string) string {
	path, cycle := c.Path(name)
	if cycle || len(path) == 0 {
		return ""
	}
	return path[len(path)-1]
}

// Title returns the words that name a Cohort for users.
func (c Cohorts) Title(name string) string {
	if o := c[name]; o != nil && o.Labels[DepartmentLabel] != "" {
		return "department " + o.Labels[DepartmentLabel]
	}
	return "cohort " + name
}
