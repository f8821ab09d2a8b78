package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// object is a pointer to an object of the type T.
type object[T any] interface {
	*T
	client.Object
}

// List reads all objects of these kinds from a cache. They must not be changed.
func List(ctx context.Context, reader client.Reader, lists ...client.ObjectList) error {
	for _, list := range lists {
		if err := reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return Translate(fmt.Sprintf("list %T", list), err)
		}
	}
	return nil
}

// All returns all objects of a kind, in no order. They must not be changed. From a cache it
// returns the cache's own: List copies each into its list, which is most of what a page
// costs beside thousands of teams.
func All[T any, P object[T]](ctx context.Context, reader client.Reader) ([]P, error) {
	all, err := all[T, P](ctx, reader)
	if err != nil {
		return nil, Translate(fmt.Sprintf("list %T", P(nil)), err)
	}
	return all, nil
}

func all[T any, P object[T]](ctx context.Context, reader client.Reader) ([]P, error) {
	kind := P(new(T))
	if cached, ok := reader.(cache.Informers); ok {
		informer, err := cached.GetInformer(ctx, kind)
		if err != nil {
			return nil, err
		}
		if shared, ok := informer.(toolscache.SharedIndexInformer); ok {
			items := shared.GetStore().List()
			found := make([]P, len(items))
			for i, item := range items {
				found[i] = item.(P)
			}
			return found, nil
		}
	}
	gvk, err := apiutil.GVKForObject(kind, Scheme)
	if err != nil {
		return nil, err
	}
	gvk.Kind += "List"
	created, err := Scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	list := created.(client.ObjectList)
	if err := reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	var found []P
	err = meta.EachListItem(list, func(item runtime.Object) error {
		found = append(found, item.(P))
		return nil
	})
	return found, err
}

// Pointers returns a pointer to each item.
func Pointers[T any](items []T) []*T {
	pointers := make([]*T, len(items))
	for i := range items {
		pointers[i] = &items[i]
	}
	return pointers
}

// SortByName sorts objects by their names. It moves each object once, because they are large.
func SortByName[T any, P object[T]](items []T) {
	order := make([]P, len(items))
	for i := range items {
		order[i] = &items[i]
	}
	slices.SortFunc(order, func(a, b P) int { return strings.Compare(a.GetName(), b.GetName()) })
	sorted := make([]T, len(items))
	for i, item := range order {
		sorted[i] = *item
	}
	copy(items, sorted)
}
