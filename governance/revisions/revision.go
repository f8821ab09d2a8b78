package revisions

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Limit is how many revisions of one object are kept.
const Limit = 50

// Owner is what has revisions: a policy or an allocation, by its name, whether
// it is there or was deleted.
type Owner struct{ kind, name string }

const (
	kindAllocation = "allocation"
	kindPolicy     = "policy"
)

// OfAllocation is the owner of a team's revisions.
func AllocationOwner(team string) Owner { return Owner{kindAllocation, team} }

// OfPolicy is the owner of the cluster policy's revisions.
func PolicyOwner() Owner { return Owner{kindPolicy, v1alpha1.ClusterPolicyName} }

// label is the value of cluster.LabelRevisionOf; a name has no dot.
func (o Owner) label() string { return o.kind + "." + o.name }

// object is the name of a revision's ControllerRevision. It holds the number, so
// that the API server lets nobody give one twice.
func (o Owner) object(number int64) string {
	return o.kind + "-" + o.name + "-" + strconv.FormatInt(number, 10)
}

// Annotations of a ControllerRevision, beside those of the object's change.
const (
	annotationUID        = "kuota.dev/of-uid"
	annotationGeneration = "kuota.dev/of-generation"
	annotationAt         = "kuota.dev/changed-at" // RFC 3339
	annotationProgram    = "kuota.dev/changed-by-program"
	annotationSummary    = "kuota.dev/changes"
	annotationMissing    = "kuota.dev/missing"
)

// Revision is one spec that an object had, without the spec.
type Revision struct {
	Number     int64  // counts up from 1 for each name
	UID        string // of the object; another one after it was deleted and made anew
	Generation int64  // of the object
	At         time.Time
	By         string // who changed it; with ByProgram the field manager
	ByProgram  bool   // nobody knows who; By is only the name of their program
	Reason     string // why; empty where nobody said so
	Summary    string // what changed, in short
	Skipped    int64  // changes before it that nobody saw, while the console was away

	objectReason string // as it stood in the object, be it of this change or not
}

// summaryDeleted is the summary of a revision that a deletion made: its spec is
// that of the revision before.
const summaryDeleted = "Deleted"

// IsDeletion reports whether the object was deleted then.
func (r Revision) IsDeletion() bool { return r.Summary == summaryDeleted }

// read is the revision that an object of Kubernetes tells of.
func fromObject(object metav1.Object) Revision {
	annotations := object.GetAnnotations()
	whole := func(text string) int64 {
		n, _ := strconv.ParseInt(text, 10, 64)
		return n
	}
	r := Revision{
		Number: whole(object.GetName()[strings.LastIndexByte(object.GetName(), '-')+1:]),
		UID:    annotations[annotationUID], Generation: whole(annotations[annotationGeneration]),
		By: annotations[v1alpha1.AnnotationChangedBy], Reason: annotations[v1alpha1.AnnotationChangedBecause],
		Summary: annotations[annotationSummary], Skipped: whole(annotations[annotationMissing]),
		objectReason: annotations[v1alpha1.AnnotationReason],
	}
	r.At, _ = time.Parse(time.RFC3339, annotations[annotationAt])
	if program := annotations[annotationProgram]; r.By == "" && program != "" {
		r.By, r.ByProgram = program, true
	}
	return r
}

// readAll are revisions with the newest first.
func fromObjects(objects []*metav1.PartialObjectMetadata) []Revision {
	all := make([]Revision, len(objects))
	for i, object := range objects {
		all[i] = fromObject(object)
	}
	slices.SortFunc(all, func(a, b Revision) int { return cmp.Compare(b.Number, a.Number) })
	return all
}

// annotations are what read reads.
func (r Revision) annotations() map[string]string {
	by := v1alpha1.AnnotationChangedBy
	if r.ByProgram {
		by = annotationProgram
	}
	all := map[string]string{
		annotationUID: r.UID, annotationGeneration: strconv.FormatInt(r.Generation, 10), annotationAt: r.At.UTC().Format(time.RFC3339),
		by: r.By, v1alpha1.AnnotationChangedBecause: r.Reason, annotationSummary: r.Summary, v1alpha1.AnnotationReason: r.objectReason,
	}
	if r.Skipped > 0 {
		all[annotationMissing] = strconv.FormatInt(r.Skipped, 10)
	}
	for name, value := range all {
		if value == "" {
			delete(all, name)
		}
	}
	return all
}
