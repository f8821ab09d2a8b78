package imports

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/imports/hyperpod"
	"kuota.dev/kuota/governance/imports/trainingjobs"
	"kuota.dev/kuota/governance/spec/document"
	"kuota.dev/kuota/governance/spec/manifest"
)

// Object is one imported object: an allocation, the policy or an elastic task.
type Object struct {
	// Allocation has an empty name if the text has no valid one.
	Allocation *v1alpha1.ComputeAllocation
	Policy     *v1alpha1.ClusterPolicy
	// ElasticJob can have values that its CRD rejects, which are in Problems.
	ElasticJob *v1alpha1.ElasticJob
	// HyperPod reports that the object comes from HyperPod, which has no members,
	// ceilings, default queues, pools, gang scheduling and enforcement. These fields
	// are unspecified, not empty.
	HyperPod bool
	// Overlay sets what the text has, and keeps the rest of a team that exists; nil if the text
	// has all.
	Overlay func(*v1alpha1.ComputeAllocationSpec)
	// SharingUnspecified reports that a policy of HyperPod does not set
	// IdleResourceSharing.
	SharingUnspecified bool
	// Problems are the parts of the object that were not imported or were changed.
	Problems []governance.FieldError
}

// Result is the result of reading a text.
type Result struct {
	Objects []Object
	Table   bool // whether the text is a table of teams
	// Problems are those that belong to none of the objects.
	Problems governance.FieldErrors

	full bool // the problem about maxObjects is reported
}

// The bounds of a Result.
const (
	maxObjects  = 500
	maxProblems = 200 // of one object, or of the text
)

// Read reads a text with one or more objects, as JSON, YAML, commands of the AWS CLI, or a
// table of teams. Every part that it does not import is in Problems.
func Read(text []byte) Result {
	return ReadWith(text, func(heading string) (name, problem string) { return heading, "" })
}

// ReadWith is Read where pool returns the pool that a heading of a table means, or what is wrong
// with it.
func ReadWith(text []byte, pool func(heading string) (name, problem string)) Result {
	if len(text) <= document.MaxBytes && utf8.Valid(text) && isTable(text) {
		r := Result{Table: true}
		r.readTable(text, pool)
		return r
	}
	var documents []*document.Node
	var wrong governance.FieldErrors
	if len(text) <= document.MaxBytes && utf8.Valid(text) && hyperpod.IsCommand(string(text)) {
		documents, wrong = hyperpod.ParseCommands(string(text))
	} else {
		documents, wrong = document.Read(text)
	}
	r := Result{Problems: wrong}
	for i, d := range documents {
		path := ""
		if len(documents) > 1 {
			path = fmt.Sprintf("object %d: ", i+1)
		}
		r.read(d, path, false)
	}
	r.Problems = limit(r.Problems)
	for i := range r.Objects {
		r.Objects[i].Problems = limit(r.Objects[i].Problems)
	}
	return r
}

// read adds one object, or those of a list. listed is set for an item of a list.
func (r *Result) read(n *document.Node, path string, listed bool) {
	shape := hyperpod.ShapeOf(n)
	switch {
	case len(r.Objects) == maxObjects && r.full:
	case len(r.Objects) == maxObjects:
		r.Problems.Addf(path, "was not imported, nor the objects after it: at most %d objects are imported at once", maxObjects)
		r.full = true
	case n.Kind == document.Invalid: // already reported
	case n.Kind != document.Object:
		r.Problems.Addf(path, "it is not an object; ignored")
	case !listed && isList(n):
		r.list(n.Get("items").Items, path+"items")
	case shape == hyperpod.Listing && !listed:
		items, field, wrong := hyperpod.ListItems(n, path)
		r.Problems = append(r.Problems, wrong...)
		r.list(items, path+field)
	case trainingjobs.Matches(n):
		e, wrong := trainingjobs.Read(n, path)
		r.add(Object{ElasticJob: e, Problems: wrong}, path)
	case kindOf(n) == v1alpha1.ElasticJobKind:
		e, wrong := manifest.ReadElasticJob(n, path)
		r.add(Object{ElasticJob: e, Problems: wrong}, path)
	case n.Has("apiVersion", "kind"):
		a, p, wrong := manifest.Read(n, path)
		r.add(Object{Allocation: a, Policy: p, Problems: wrong}, path)
	case shape == hyperpod.Quota || shape == hyperpod.QuotaConfig:
		a, wrong := hyperpod.Allocation(n, shape, path)
		r.add(Object{Allocation: a, HyperPod: true, Problems: wrong}, path)
	case shape == hyperpod.Scheduler || shape == hyperpod.SchedulerConfig:
		p, wrong := hyperpod.Policy(n, shape, path)
		config := n
		if shape == hyperpod.Scheduler {
			config = n.Get("SchedulerConfig")
		}
		r.add(Object{Policy: p, HyperPod: true, SharingUnspecified: config == nil || !config.Has("IdleResourceSharing"), Problems: wrong}, path)
	default:
		r.Problems.Addf(path, "it is neither a compute quota or scheduler configuration of HyperPod nor a %s, %s or %s of Kuota%s; ignored", manifest.KindAllocation, manifest.KindPolicy, v1alpha1.ElasticJobKind, describe(n))
	}
}

func kindOf(n *document.Node) string {
	if kind := n.Get("kind"); kind != nil {
		return kind.Text
	}
	return ""
}

// isList reports whether an object is a list of kubectl.
func isList(n *document.Node) bool {
	items := n.Get("items")
	kinds := []string{"", manifest.KindAllocation, manifest.KindPolicy, v1alpha1.ElasticJobKind, trainingjobs.KindHyperPod, trainingjobs.KindPyTorch}
	kind, list := strings.CutSuffix(kindOf(n), "List")
	return items != nil && items.Kind == document.List && list && slices.Contains(kinds, kind)
}

func (r *Result) list(items []*document.Node, path string) {
	if len(items) == 0 {
		r.Problems.Addf(path, "it is empty")
	}
	for i, item := range items {
		r.read(item, document.Index(path, i), true)
	}
}

// describe returns text about the first field of an unknown object.
func describe(n *document.Node) string {
	if len(n.Fields) == 0 {
		return "; it is empty"
	}
	return "; it begins with " + document.Quote(n.Fields[0].Name)
}

// add adds an object, unless it is a duplicate.
func (r *Result) add(o Object, path string) {
	duplicate := ""
	for _, other := range r.Objects {
		switch {
		case o.Policy != nil && other.Policy != nil:
			duplicate = "is a second cluster policy; only the first was imported"
		case o.Allocation != nil && other.Allocation != nil && o.Allocation.Name != "" && o.Allocation.Name == other.Allocation.Name:
			duplicate = fmt.Sprintf("is a second allocation of team %s; only the first was imported", o.Allocation.Name)
		case o.ElasticJob != nil && other.ElasticJob != nil && o.ElasticJob.Name != "" && o.ElasticJob.Name == other.ElasticJob.Name && o.ElasticJob.Namespace == other.ElasticJob.Namespace:
			duplicate = fmt.Sprintf("is a second elastic task %s; only the first was imported", document.Quote(o.ElasticJob.Name))
		}
	}
	switch {
	case duplicate != "":
		r.Problems.Add(path, duplicate)
	case o.Allocation == nil && o.Policy == nil && o.ElasticJob == nil:
		r.Problems = append(r.Problems, o.Problems...)
	default:
		r.Objects = append(r.Objects, o)
	}
}

// limit truncates problems to maxProblems.
func limit(wrong []governance.FieldError) []governance.FieldError {
	for i := range wrong { // the prefix of a whole document
		wrong[i].Path = strings.TrimSuffix(wrong[i].Path, ": ")
	}
	if more := len(wrong) - maxProblems; more > 0 {
		return append(slices.Clip(wrong[:maxProblems]), governance.FieldError{Message: fmt.Sprintf("%d more parts were not imported", more)})
	}
	return wrong
}

// YAML returns the object as YAML that can be applied.
func (o Object) YAML() string {
	switch {
	case o.Policy != nil:
		return manifest.PolicyYAML(o.Policy)
	case o.ElasticJob != nil:
		return manifest.ElasticJobYAML(o.ElasticJob)
	}
	return manifest.AllocationYAML(o.Allocation)
}
