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
const lackedFor = 30 * time.Second

// lackedKept is how many such kinds are remembered. Owners of Workloads may name
// any.
const lackedKept = 1000

// served remembers which kinds the API server lacks. Its zero value is ready.
type served struct {
	mu    sync.Mutex
	lacks map[asked]lack
}

type asked struct {
	kind     schema.GroupKind
	versions string
}

type lack struct {
	err   error
	until time.Time
}

// Mapping is how the API server calls a kind, in one of these versions; none is
// whichever it prefers. For a kind that it does not have, the error is one that
// meta.IsNoMatchError knows, as of half a minute ago at most.
func (c *Cluster) Mapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return c.served.mapping(c.Manager.GetRESTMapper(), time.Now(), kind, versions...)
}

func (s *served) mapping(mapper meta.RESTMapper, now time.Time, kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	key := asked{kind, strings.Join(versions, ",")}
	s.mu.Lock()
	known, ok := s.lacks[key]
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
	if s.lacks == nil || len(s.lacks) >= lackedKept {
		s.lacks = map[asked]lack{}
	}
	s.lacks[key] = lack{err, now.Add(lackedFor)}
	return nil, err
}
