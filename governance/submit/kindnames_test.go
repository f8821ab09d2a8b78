package submit

import (
	"strings"
	"testing"
)

// Names are bounded by what the pods of a kind are named.
func TestNamesOfKinds(t *testing.T) {
	for kind, most := range map[Kind]int{Job: 63, PyTorchJob: 51, RayJob: 47, JobSet: 42} {
		for name, valid := range map[string]bool{strings.Repeat("a", most): true, strings.Repeat("a", most+1): false, "1a": kind == Job, "A": false} {
			r := train()
			r.Kind, r.Name = kind, name
			if _, wrong := vision().Complete(r); (len(wrong) == 0) != valid || !valid && wrong[0].Path != "name" {
				t.Errorf("a %s with %d characters, %s: got %v", kind, len(name), name, wrong)
			}
		}
	}
	r := train()
	r.Kind, r.MinPods = JobSet, 2
	if _, wrong := vision().Plan(r); len(wrong) != 1 || wrong[0].Path != "least" {
		t.Errorf("a minimum of a JobSet: got %v", wrong)
	}
}
