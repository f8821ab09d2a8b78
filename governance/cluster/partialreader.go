package cluster

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// partial reads where kinds of Kueue's are missing. Of a kind that does not
// exist there are no objects, so that it is found empty. Where Kueue has them in
// another version only, there may be some; to read tasks is an error then, since
// nobody should be told that nothing runs.
type partialReader struct {
	client.Reader
	kinds MissingKinds
}

// Get implements client.Reader.
func (p partialReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	gvk, err := apiutil.GVKForObject(object, Scheme)
	switch {
	case err != nil:
		return err
	case !p.kinds.absent(gvk):
		return p.Reader.Get(ctx, key, object, options...)
	case gvk.Kind == "Workload" && len(p.kinds.KueueVersions) > 0:
		return p.kinds.unavailable()
	}
	return apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, key.Name)
}

// List implements client.Reader.
func (p partialReader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	gvk, err := apiutil.GVKForObject(list, Scheme)
	if err != nil {
		return err
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	switch {
	case !p.kinds.absent(gvk):
		return p.Reader.List(ctx, list, options...)
	case gvk.Kind == "Workload" && len(p.kinds.KueueVersions) > 0:
		return p.kinds.unavailable()
	}
	return nil
}
