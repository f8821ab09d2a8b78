package imports

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/document"
	"kuota.dev/kuota/governance/hyperpod"
	"kuota.dev/kuota/governance/manifest"
)

// Object is one object that was read: an allocation or the policy.
type Object struct {
	// Allocation has no name where none that a team can have was given.
	Allocation *v1alpha1.ComputeAllocation
	Policy     *v1alpha1.ClusterPolicy
	// HyperPod tells that it comes from there, where there are no members,
	// ceilings, default queues, pools, gang scheduling and enforcement: it says
	// nothing of them.
	HyperPod bool
	// NoSharing tells that a policy of HyperPod does not say whether unallocated
	// compute is lent.
	SharingUnspecified bool
	// NotTaken lists what of it was not taken, each with its place.
	Problems []governance.FieldError
}

// Result is what a text came to.
type Result struct {
	Objects []Object
	// NotTaken lists what belongs to none of the objects.
	Problems []governance.FieldError

	full bool // whether more objects were told of than are taken
}

// These bound what one text can come to.
const (
	maxObjects = 500
	maxWrongs  = 200 // sentences about one object, or about the text
)

// Read reads a text: one object, or several, as JSON or YAML, or calls of the
// AWS CLI that make them. No part that it does not take goes untold.
func Read(text []byte) Result {
	var documents []*document.Node
	var wrong document.Problems
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
	r.Problems = few(r.Problems)
	for i := range r.Objects {
		r.Objects[i].Problems = few(r.Objects[i].Problems)
	}
	return r
}

// read takes one object, or those of a list.
func (r *Result) read(n *document.Node, path string, listed bool) {
	shape := hyperpod.ShapeOf(n)
	switch {
	case len(r.Objects) == maxObjects && r.full:
	case len(r.Objects) == maxObjects:
		r.tell(path, "was not imported, nor the objects after it: at most %d objects are imported at once", maxObjects)
		r.full = true
	case n.Kind == document.Invalid: // told already
	case n.Kind != document.Object:
		r.tell(path, "it is not an object; ignored")
	case !listed && listKind(n):
		r.list(n.Get("items").Items, path+"items")
	case shape == hyperpod.Listing && !listed:
		items, field, wrong := hyperpod.ListItems(n, path)
		r.Problems = append(r.Problems, wrong...)
		r.list(items, path+field)
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
		r.tell(path, "it is neither a compute quota or scheduler configuration of HyperPod nor a %s or %s of Kuota%s; ignored", manifest.KindAllocation, manifest.KindPolicy, begins(n))
	}
}

// listKind tells whether an object is what kubectl writes of several.
func listKind(n *document.Node) bool {
	kind, items := n.Get("kind"), n.Get("items")
	return kind != nil && items != nil && items.Kind == document.List &&
		slices.Contains([]string{"List", manifest.KindAllocation + "List", manifest.KindPolicy + "List"}, kind.Text)
}

func (r *Result) list(items []*document.Node, path string) {
	if len(items) == 0 {
		r.tell(path, "it is empty")
	}
	for i, item := range items {
		r.read(item, document.Index(path, i), true)
	}
}

// begins names the first fields of an object that is none of ours.
func begins(n *document.Node) string {
	if len(n.Fields) == 0 {
		return "; it is empty"
	}
	return "; it begins with " + document.Quote(n.Fields[0].Name)
}

// add keeps an object, unless another has its place.
func (r *Result) add(o Object, path string) {
	twice := ""
	for _, other := range r.Objects {
		switch {
		case o.Policy != nil && other.Policy != nil:
			twice = "is a second cluster policy; only the first was imported"
		case o.Allocation != nil && other.Allocation != nil && o.Allocation.Name != "" && o.Allocation.Name == other.Allocation.Name:
			twice = fmt.Sprintf("is a second allocation of team %s; only the first was imported", o.Allocation.Name)
		}
	}
	switch {
	case twice != "":
		r.tell(path, "%s", twice)
	case o.Allocation == nil && o.Policy == nil:
		r.Problems = append(r.Problems, o.Problems...)
	default:
		r.Objects = append(r.Objects, o)
	}
}

func (r *Result) tell(path, format string, args ...any) {
	r.Problems = append(r.Problems, governance.FieldError{Path: path, Message: fmt.Sprintf(format, args...)})
}

// few keeps as many sentences as somebody can read.
func few(wrong []governance.FieldError) []governance.FieldError {
	for i := range wrong { // of an object as a whole
		wrong[i].Path = strings.TrimSuffix(wrong[i].Path, ": ")
	}
	if more := len(wrong) - maxWrongs; more > 0 {
		return append(slices.Clip(wrong[:maxWrongs]), governance.FieldError{Message: fmt.Sprintf("%d more parts were not imported", more)})
	}
	return wrong
}

// YAML is the object as Kuota keeps it.
func (o Object) YAML() string {
	if o.Policy != nil {
		return manifest.PolicyYAML(o.Policy)
	}
	return manifest.AllocationYAML(o.Allocation)
}
