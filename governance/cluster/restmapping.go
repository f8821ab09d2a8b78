package cluster

import (
	"context"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// noMatchTTL is how long a kind that the API server does not serve stays cached.
// The RESTMapper repeats discovery for each lookup of such a kind.
const noMatchTTL = 30 * time.Second

// noMatchCapacity bounds the cache. Owners of Workloads may name any kind.
const noMatchCapacity = 1000

// noMatchCache caches which kinds the API server does not serve. A RESTMapper
// caches only those that it serves.
type noMatchCache struct{ *utilcache.LRUExpireCache }

func newNoMatchCache(clock utilcache.Clock) noMatchCache {
	return noMatchCache{utilcache.NewLRUExpireCacheWithClock(noMatchCapacity, clock)}
}

type mappingKey struct {
	kind     schema.GroupKind
	versions string
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

// RESTMapping returns the mapping of a kind in one of the versions; without
// versions, in the one that the API server prefers. If the API server does not
// serve it, meta.IsNoMatchError reports true for the error, which can be 30 s old.
func (c *Cluster) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return c.noMatches.mapping(c.mapper, kind, versions...)
}

func (s noMatchCache) mapping(mapper meta.RESTMapper, kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	key := mappingKey{kind, strings.Join(versions, ",")}
	if cached, ok := s.Get(key); ok {
		err, _ := cached.(error)
		return nil, err
	}
	mapping, err := mapper.RESTMapping(kind, versions...)
	if !meta.IsNoMatchError(err) {
		return mapping, err
	}
	s.Add(key, err, noMatchTTL)
	return nil, err
}

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
