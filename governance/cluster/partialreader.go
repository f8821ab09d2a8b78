package cluster

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// partialReader reads while kinds of Kueue are missing. It finds no objects of
// a kind that is not served. If Kueue serves Workloads in another version only,
// reading them is an error, because an empty list would be wrong.
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
