package quota

import (
	"fmt"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"
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
