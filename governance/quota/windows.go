package quota

import (
	"fmt"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/effective"
)

// CheckWindows returns the first error of the quota and sharing of each window.
func CheckWindows(spec *v1alpha1.ComputeAllocationSpec, types catalog.Catalog) (wrong []governance.FieldError) {
	_, own := Resolve(spec, types)
	for i := range spec.Windows {
		if w := &spec.Windows[i]; len(w.Quota) == 0 && (w.Sharing == nil || len(own) > 0) {
			continue // the errors of the spec itself are not those of the window
		}
		in := effective.InWindow(spec, spec.Windows[i].Name)
		if _, errs := Resolve(&in, types); len(errs) > 0 {
			wrong = append(wrong, governance.FieldError{Path: fmt.Sprintf("spec.windows[%d].quota", i), Message: errs[0].Message})
		}
	}
	return wrong
}
