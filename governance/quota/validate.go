package quota

import (
	"fmt"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
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

// validateSettings validates the weight, the namespace and the sharing of an
// allocation.
func validateSettings(spec *v1alpha1.ComputeAllocationSpec) (errs governance.FieldErrors) {
	if w := spec.FairShareWeight; w < 0 || w > v1alpha1.MaxWeight {
		errs.Add("spec.fairShareWeight", "must be a whole number from 0 to 100")
	}
	if problem := CheckNamespaceName(spec.Namespace); problem != "" {
		errs.Add("spec.namespace", problem)
	}
	sharing := spec.Sharing
	percent := sharing.BorrowLimitPercent
	if percent != nil && (*percent < 0 || *percent > v1alpha1.MaxBorrowLimitPercent) {
		errs.Add("spec.sharing.borrowLimitPercent", "must be a whole number from 0 to 10,000")
	}
	borrows := sharing.Strategy == "" || sharing.Strategy == v1alpha1.LendAndBorrow
	if !borrows && (percent != nil || sharing.Unlimited || len(sharing.BorrowLimits) > 0) {
		errs.Add("spec.sharing.strategy", "borrow limits need the strategy lend and borrow: choose it, or remove the limits")
	}
	if sharing.Unlimited && percent != nil {
		errs.Add("spec.sharing.borrowLimitPercent", "borrowing is either unlimited or limited by a percentage")
	}
	if spec.NamespaceCeiling && sharing.Unlimited {
		errs.Add("spec.namespaceCeiling", "a namespace ceiling needs a borrow limit: choose either the ceiling or unlimited borrowing")
	}
	return errs
}
