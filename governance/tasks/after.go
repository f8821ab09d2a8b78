package tasks

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// After is a task that another one waits for. It is a gate in AdmissionGatedByAnnotation of that
// other one, and Kueue copies it from a job to its Workload.
type After struct {
	UID string
	Any bool // however it ends; otherwise only once it has succeeded
}

const (
	afterSuccess = "kuota.dev/after-ok-"
	afterEnd     = "kuota.dev/after-any-"
)

// Gate returns the name of the gate, of at most 63 bytes as Kueue demands.
func (a After) Gate() string {
	if a.Any {
		return afterEnd + a.UID
	}
	return afterSuccess + a.UID
}

// AfterOf returns what a Workload or a job waits for. Others are gates of other controllers.
func AfterOf(o metav1.Object) (after []After, others []string) {
	for gate := range strings.SplitSeq(o.GetAnnotations()[AdmissionGatedByAnnotation], ",") {
		gate = strings.TrimSpace(gate)
		if uid, ok := strings.CutPrefix(gate, afterSuccess); ok {
			after = append(after, After{UID: uid})
		} else if uid, ok := strings.CutPrefix(gate, afterEnd); ok {
			after = append(after, After{UID: uid, Any: true})
		} else if gate != "" {
			others = append(others, gate)
		}
	}
	return after, others
}
