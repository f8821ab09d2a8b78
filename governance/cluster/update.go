package cluster

import (
	"context"
	"errors"
	"maps"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// editTries is how often an edit is sent while only the status changes in
// between.
const maxUpdateAttempts = 5

// Edit changes the spec of an object without a namespace that somebody read at
// a resourceVersion. A spec that was changed since is a conflict, unless it
// already is what is wanted: then an earlier try arrived, and its answer was
// lost. What controllers wrote into the status since is no conflict.
//
// object names what is edited, and holds the answer afterwards; change sets
// the new spec on it, and annotations. It is read and written by as, which acts as the person.
// before is the object as it was.
func (c *Cluster) UpdateSpec(ctx context.Context, as client.Client, object client.Object, readAt string, change func() error, options ...client.UpdateOption) (before client.Object, err error) {
	key := client.ObjectKeyFromObject(object)
	var seen specVersion
	for try := 1; ; try++ {
		if err := read(ctx, as, key, object); err != nil {
			return nil, err
		}
		before, _ = object.DeepCopyObject().(client.Object)
		switch {
		case object.GetResourceVersion() == readAt:
			seen = specVersionOf(object)
		case seen == specVersion{}:
			if seen, err = c.specVersionAt(ctx, object, readAt); err != nil {
				return before, err
			}
		}
		if err := change(); err != nil {
			return before, err
		}
		if seen != specVersionOf(before) {
			return before, conflictUnlessApplied(ctx, as, before, object)
		}
		err = as.Update(ctx, object, options...)
		if !apierrors.IsConflict(err) || try == maxUpdateAttempts {
			return before, err
		}
	}
}

// SameSpec reads an object as somebody and tells whether its spec is still what
// it was at a resourceVersion. object names it, and holds it afterwards.
func (c *Cluster) SpecUnchanged(ctx context.Context, as client.Client, object client.Object, resourceVersion string) (bool, error) {
	if err := read(ctx, as, client.ObjectKeyFromObject(object), object); err != nil {
		return false, err
	}
	if object.GetResourceVersion() == resourceVersion {
		return true, nil
	}
	seen, err := c.specVersionAt(ctx, object, resourceVersion)
	return seen == specVersionOf(object), err
}

// read reads an object, with nothing left of what it was before.
func read(ctx context.Context, as client.Client, key client.ObjectKey, object client.Object) error {
	reflect.ValueOf(object).Elem().SetZero()
	return as.Get(ctx, key, object)
}

// spec tells one state of an object's spec from all others.
type specVersion struct {
	uid        types.UID
	generation int64
}

func specVersionOf(object client.Object) specVersion {
	return specVersion{object.GetUID(), object.GetGeneration()}
}

// specAt is the spec that an object had at a resourceVersion; none when the API
// server remembers no longer, which is after five minutes or more.
func (c *Cluster) specVersionAt(ctx context.Context, object client.Object, resourceVersion string) (specVersion, error) {
	kind, err := apiutil.GVKForObject(object, Scheme)
	if err != nil {
		return specVersion{}, err
	}
	kind.Kind += "List"
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind)
	err = c.Manager.GetAPIReader().List(ctx, list, &client.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, object.GetName()),
		Raw:           &metav1.ListOptions{ResourceVersion: resourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact},
	})
	if unreachable(err) {
		return specVersion{}, err
	}
	if err != nil || len(list.Items) == 0 {
		return specVersion{}, nil //nolint:nilerr // too long ago, or never a version of it: then it counts as changed
	}
	return specVersionOf(&list.Items[0]), nil
}

// alreadySo is nil when wanted is what is there already, and a conflict
// otherwise. The API server compares the spec, after it filled in its defaults;
// annotations are compared as the change sets them.
func conflictUnlessApplied(ctx context.Context, as client.Client, live, wanted client.Object) error {
	tried, _ := wanted.DeepCopyObject().(client.Object)
	if maps.Equal(live.GetAnnotations(), wanted.GetAnnotations()) {
		if err := as.Update(ctx, tried, client.DryRunAll); err == nil && tried.GetGeneration() == live.GetGeneration() {
			return nil
		}
	}
	kind, err := apiutil.GVKForObject(live, Scheme)
	if err != nil {
		return err
	}
	return apierrors.NewConflict(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, live.GetName(), errors.New("spec changed in the meantime"))
}
