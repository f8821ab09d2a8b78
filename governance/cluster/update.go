package cluster

import (
	"context"
	"errors"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// maxUpdateAttempts bounds how often an update is sent while only the status
// changes in between.
const maxUpdateAttempts = 5

// UpdateSpec changes the spec of a cluster-scoped object that was read at
// readAt, a resourceVersion. If the spec changed since, it returns a conflict,
// unless the spec already is the wanted one: then an earlier attempt succeeded
// and its response was lost. Changes of the status are no conflict. Fields of a newer
// CRD, which the type of object does not have, stay.
//
// object names the object, and contains the response afterwards. change sets
// the new spec and annotations on it. as reads and writes as the user. before
// is the object before the update.
func (c *Cluster) UpdateSpec(ctx context.Context, as client.Client, object client.Object, readAt string, change func() error, options ...client.UpdateOption) (before client.Object, err error) {
	key := client.ObjectKeyFromObject(object)
	var seen specVersion
	for try := 1; ; try++ {
		live, err := read(ctx, as, key, object)
		if err != nil {
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
		wanted, err := updated(live, before, object)
		if err != nil {
			return before, err
		}
		if seen != specVersionOf(before) {
			return before, conflictUnlessApplied(ctx, as, before, wanted)
		}
		err = as.Update(ctx, wanted, options...)
		if err == nil {
			return before, decode(wanted, object)
		}
		if !apierrors.IsConflict(err) || try == maxUpdateAttempts {
			return before, err
		}
	}
}

// Update updates an object that was read as before, and keeps the fields that its type
// does not have, such as those of a newer Kubernetes. If the object changed since, it
// returns a conflict. object contains the response afterwards.
func Update(ctx context.Context, reader client.Reader, writer client.Writer, before, object client.Object, options ...client.UpdateOption) error {
	live, err := newUnstructured(before)
	if err != nil {
		return err
	}
	if err := reader.Get(ctx, client.ObjectKeyFromObject(before), live); err != nil {
		return err
	}
	wanted, err := updated(live, before, object)
	if err != nil {
		return err
	}
	wanted.SetResourceVersion(before.GetResourceVersion())
	if err := writer.Update(ctx, wanted, options...); err != nil {
		return err
	}
	return decode(wanted, object)
}

// WriteLimit bounds a write of a user, and its review, in total, before the page says that
// the cluster does not answer. It is below the limit of a request, so that the page can be
// rendered.
const WriteLimit = 15 * time.Second

// cacheWait bounds WaitForCache.
const cacheWait = 2 * time.Second

// WaitForCache waits until the cache contains the spec of an object that the API server
// returned for a write, or a newer one, so that the page after a save shows it. It gives
// up after two seconds, or when ctx ends.
func (c *Cluster) WaitForCache(ctx context.Context, written client.Object) {
	reader, err := c.Reader()
	if err != nil {
		return
	}
	_ = wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, cacheWait, true, func(ctx context.Context) (bool, error) {
		cached, _ := written.DeepCopyObject().(client.Object)
		if err := reader.Get(ctx, client.ObjectKeyFromObject(written), cached); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		return cached.GetUID() == written.GetUID() && cached.GetGeneration() >= written.GetGeneration(), nil
	})
}

// SpecUnchanged reads an object as a user, and reports whether its spec is the
// one of a resourceVersion. object names it, and contains it afterwards.
func (c *Cluster) SpecUnchanged(ctx context.Context, as client.Client, object client.Object, resourceVersion string) (bool, error) {
	if _, err := read(ctx, as, client.ObjectKeyFromObject(object), object); err != nil {
		return false, err
	}
	if object.GetResourceVersion() == resourceVersion {
		return true, nil
	}
	seen, err := c.specVersionAt(ctx, object, resourceVersion)
	return seen == specVersionOf(object), err
}

// read reads an object, and sets into to the fields that its type has.
func read(ctx context.Context, as client.Client, key client.ObjectKey, into client.Object) (live *unstructured.Unstructured, err error) {
	if live, err = newUnstructured(into); err != nil {
		return nil, err
	}
	if err := as.Get(ctx, key, live); err != nil {
		return nil, err
	}
	return live, decode(live, into)
}

// specVersion identifies one spec of an object.
type specVersion struct {
	uid        types.UID
	generation int64
}

func specVersionOf(object client.Object) specVersion {
	return specVersion{object.GetUID(), object.GetGeneration()}
}

// specVersionAt returns the spec version of an object at a resourceVersion;
// zero if the API server no longer has it, which is after five minutes or more.
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
		return specVersion{}, nil //nolint:nilerr // compacted, or not a version of this object: counts as changed
	}
	return specVersionOf(&list.Items[0]), nil
}

// conflictUnlessApplied returns nil if live already is as wanted, and a
// conflict otherwise. A dry run compares the specs, because the API server sets
// defaults. Annotations are compared as change sets them.
func conflictUnlessApplied(ctx context.Context, as client.Client, live client.Object, wanted *unstructured.Unstructured) error {
	tried := wanted.DeepCopy()
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

// ReadingBy returns a client that writes as writer and gets objects by reader.
func ReadingBy(reader client.Reader, writer client.Client) client.Client {
	return readingClient{writer, reader}
}

type readingClient struct {
	client.Client
	reader client.Reader
}

// Get implements client.Reader.
func (c readingClient) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	return c.reader.Get(ctx, key, into, options...)
}
