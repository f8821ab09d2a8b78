package revisions

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/spec/change"
	"kuota.dev/kuota/governance/spec/describe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Limit is the number of revisions that are kept for each object.
const Limit = 50

// Owner identifies the object of revisions by kind and name, whether it exists
// or was deleted.
type Owner struct{ kind, name string }

const (
	kindAllocation = "allocation"
	kindPolicy     = "policy"
)

// AllocationOwner returns the owner of a team's revisions.
func AllocationOwner(team string) Owner { return Owner{kindAllocation, team} }

// PolicyOwner returns the owner of the cluster policy's revisions.
func PolicyOwner() Owner { return Owner{kindPolicy, v1alpha1.ClusterPolicyName} }

// label returns the value of cluster.LabelRevisionOf. A name has no dot.
func (o Owner) label() string { return o.kind + "." + o.name }

// object returns the name of a ControllerRevision. It contains the number, so
// that a number is used only once.
func (o Owner) object(number int64) string {
	return o.kind + "-" + o.name + "-" + strconv.FormatInt(number, 10)
}

// Annotations of a ControllerRevision, besides those of the change.
const (
	annotationUID        = "kuota.dev/of-uid"
	annotationGeneration = "kuota.dev/of-generation"
	annotationAt         = "kuota.dev/changed-at" // RFC 3339
	annotationProgram    = "kuota.dev/changed-by-program"
	annotationSummary    = "kuota.dev/changes"
	annotationMissing    = "kuota.dev/missing"
)

// Revision is the metadata of one recorded spec.
type Revision struct {
	Number     int64  // counts up from 1 for each name
	UID        string // of the object; another one after it was deleted and created again
	Generation int64  // of the object
	At         time.Time
	By         string // the user who changed it; with ByProgram the field manager
	ByProgram  bool   // the user is unknown
	Reason     string // the reason; empty if none was given
	Summary    string // what changed, in short
	Skipped    int64  // changes before it that no console recorded

	objectReason string // the object's annotation, which may be of an earlier change
}

// summaryDeleted is the summary of a deletion. Its spec is that of the revision
// before.
const summaryDeleted = "Deleted"

// IsDeletion reports whether this revision is a deletion.
func (r Revision) IsDeletion() bool { return r.Summary == summaryDeleted }

// fromObject parses the annotations of a ControllerRevision.
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

// fromObjects parses revisions, and sorts them by number, the newest first.
func fromObjects(objects []*metav1.PartialObjectMetadata) []Revision {
	all := make([]Revision, len(objects))
	for i, object := range objects {
		all[i] = fromObject(object)
	}
	slices.SortFunc(all, func(a, b Revision) int { return cmp.Compare(b.Number, a.Number) })
	return all
}

// annotations returns the annotations that fromObject parses.
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

// Bounds of a summary: the number of values, and the characters of each side.
const (
	summaryValues = 3
	summaryText   = 60
)

// changes returns the differences of two manifests in the words of the pages.
// before is empty for the first one.
func (o Owner) changes(before, after []byte) ([]change.Field, error) {
	if o.kind == kindPolicy {
		return changesOf(before, after, describe.PolicyChanges)
	}
	return changesOf(before, after, describe.AllocationChanges)
}

func changesOf[Spec any](before, after []byte, compare func(before, after *Spec) []change.Field) ([]change.Field, error) {
	var was *Spec
	if len(before) > 0 {
		was = new(Spec)
		if err := spec(before, was); err != nil {
			return nil, err
		}
	}
	is := new(Spec)
	if err := spec(after, is); err != nil {
		return nil, err
	}
	return compare(was, is), nil
}

// spec decodes the spec of a manifest.
func spec(text []byte, into any) error {
	return json.Unmarshal(text, &struct {
		Spec any `json:"spec"`
	}{into})
}

// summary returns a short text about the changes. A missing value is a dash.
func summary(changes []change.Field) string {
	if len(changes) == 0 {
		return "Only the order or the spelling of values"
	}
	side := func(text string) string { return cmp.Or(truncate(text, summaryText), "–") }
	var parts []string
	for _, c := range changes[:min(len(changes), summaryValues)] {
		parts = append(parts, fmt.Sprintf("%s: %s → %s", c.Path, side(c.Before), side(c.After)))
	}
	if more := len(changes) - summaryValues; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, "; ")
}

// manifestOf returns the data of a revision, which can be applied.
func manifestOf(kind, name string, spec any) ([]byte, error) {
	return json.Marshal(map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": kind, "metadata": map[string]string{"name": name}, "spec": spec})
}
