package quota

import (
	"fmt"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/effective"
)

// CheckWindows returns the errors of the quota and sharing of each window.
func CheckWindows(spec *v1alpha1.ComputeAllocationSpec, types catalog.Catalog) (wrong []governance.FieldError) {
	for i := range spec.Windows {
		in := effective.InWindow(spec, spec.Windows[i].Name)
		if _, errs := Resolve(&in, types); len(errs) > 0 && (len(spec.Windows[i].Quota) > 0 || spec.Windows[i].Sharing != nil) {
			wrong = append(wrong, governance.FieldError{Path: fmt.Sprintf("spec.windows[%d].quota", i), Message: errs[0].Message})
		}
	}
	return wrong
}
