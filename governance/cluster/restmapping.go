package cluster

import (
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// lackedFor is how long it is remembered that the API server does not have a
// kind. The mapper asks it anew for each such question.
const noMatchTTL = 30 * time.Second

// lackedKept is how many such kinds are remembered. Owners of Workloads may name
// any.
const noMatchCapacity = 1000

// served remembers which kinds the API server lacks. Its zero value is ready.
type noMatchCache struct {
	mu      sync.Mutex
	entries map[mappingKey]mappingError
}

type mappingKey struct {
	kind     schema.GroupKind
	versions string
}

type mappingError struct {
	err   error
	until time.Time
}

// Mapping is how the API server calls a kind, in one of these versions; none is
// whichever it prefers. For a kind that it does not have, the error is one that
// meta.IsNoMatchError knows, as of half a minute ago at most.
func (c *Cluster) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return c.noMatches.mapping(c.Manager.GetRESTMapper(), time.Now(), kind, versions...)
}

func (s *noMatchCache) mapping(mapper meta.RESTMapper, now time.Time, kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	key := mappingKey{kind, strings.Join(versions, ",")}
	s.mu.Lock()
	known, ok := s.entries[key]
	s.mu.Unlock()
	if ok && now.Before(known.until) {
		return nil, known.err
	}
	mapping, err := mapper.RESTMapping(kind, versions...)
	if !meta.IsNoMatchError(err) {
		return mapping, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.entries == nil || len(s.entries) >= noMatchCapacity {
		s.entries = map[mappingKey]mappingError{}
	}
	s.entries[key] = mappingError{err, now.Add(noMatchTTL)}
	return nil, err
}
