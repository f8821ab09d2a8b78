package quota

import (
	"fmt"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/effective"
)

// reserved are team names that the console uses in its URLs.
var reserved = []string{"new", "cluster"}

// CheckTeamName returns what is wrong with a team name; empty if it is valid.
// The schema of the CRD rejects the same names.
func CheckTeamName(name string) string {
	switch {
	case name == "":
		return "enter a team name"
	case len(name) > v1alpha1.MaxTeamName:
		return fmt.Sprintf("has %d characters; a team name has at most %d", len([]rune(name)), v1alpha1.MaxTeamName)
	case !v1alpha1.ValidName(name):
		return "use lower-case letters, digits and hyphens; start and end with a letter or digit"
	case slices.Contains(reserved, name):
		return fmt.Sprintf("%q is reserved; choose another name", name)
	}
	return ""
}

// system are namespaces of the cluster, Kueue and Kuota, which no team may use.
var system = []string{"default", "kueue-system", "kuota-system"}

// CheckNamespaceName returns what is wrong with a reserved namespace; empty for any
// other.
func CheckNamespaceName(name string) string {
	if strings.HasPrefix(name, "kube-") || slices.Contains(system, name) {
		return fmt.Sprintf("namespace %s is reserved for the cluster; choose another", name)
	}
	return ""
}

// CheckWindows returns the first error of the quota and sharing of each window.
func CheckWindows(spec *v1alpha1.ComputeAllocationSpec, types catalog.Catalog) (wrong []governance.FieldError) {
	_, own := Resolve(spec, types)
	for i := range spec.Windows {
		if w := &spec.Windows[i]; len(w.Quota) == 0 && (w.Sharing == nil || len(own) > 0) {
			continue // the errors of the spec itself are not those of the window
		}
		in := effective.InWindow(spec, spec.Windows[i].Name)
		in.Shares = nil // a window does not replace them
		if _, errs := Resolve(&in, types); len(errs) > 0 {
			wrong = append(wrong, governance.FieldError{Path: fmt.Sprintf("spec.windows[%d].quota", i), Message: errs[0].Message})
		}
	}
	return wrong
}
