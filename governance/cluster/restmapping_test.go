package cluster

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// asking counts what is asked of a mapper, which may fail.
type asking struct {
	meta.RESTMapper
	times int
	err   error
}

type fakeClock struct{ now time.Time }

func (c *fakeClock) Now() time.Time { return c.now }

func (a *asking) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	a.times++
	if a.err != nil {
		return nil, a.err
	}
	return a.RESTMapper.RESTMapping(kind, versions...)
}

// The API server is asked at most twice a minute for a kind that it does not
// serve, and a kind that is installed is found.
func TestMissingKindsAreCached(t *testing.T) {
	start := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	clock := &fakeClock{start}
	s := newNoMatchCache(clock)
	ray := schema.GroupVersionKind{Group: "ray.io", Version: "v1", Kind: "RayJob"}
	known := meta.NewDefaultRESTMapper([]schema.GroupVersion{ray.GroupVersion()})
	mapper := &asking{RESTMapper: known}
	for _, step := range []struct {
		name     string
		after    time.Duration
		versions []string
		want     int
		there    bool
	}{
		{name: "the first asks", want: 1},
		{name: "it is remembered", after: 29 * time.Second, want: 1},
		{name: "in a version it is another question", after: 29 * time.Second, versions: []string{"v1"}, want: 2},
		{name: "it is old", after: 31 * time.Second, want: 3},
		{name: "it came, and is not there yet", after: 32 * time.Second, want: 3},
		{name: "it is there", after: time.Minute + 2*time.Second, want: 4, there: true},
		{name: "the mapper remembers what is there", after: time.Minute + 3*time.Second, want: 5, there: true},
	} {
		if step.after == 32*time.Second {
			known.Add(ray, meta.RESTScopeNamespace)
		}
		clock.now = start.Add(step.after)
		mapping, err := s.mapping(mapper, ray.GroupKind(), step.versions...)
		if (mapping != nil) != step.there || meta.IsNoMatchError(err) == step.there || mapper.times != step.want {
			t.Errorf("%s: asked %d times, want %d (%v, %v)", step.name, mapper.times, step.want, mapping, err)
		}
	}
}

// An API server that does not answer does not make a kind missing.
func TestErrorsAreNotCached(t *testing.T) {
	s := newNoMatchCache(systemClock{})
	mapper := &asking{err: errors.New("it is away")}
	for range 2 {
		if _, err := s.mapping(mapper, schema.GroupKind{Kind: "Job"}); !errors.Is(err, mapper.err) {
			t.Errorf("the error is %v", err)
		}
	}
	if mapper.times != 2 {
		t.Errorf("it was asked %d times", mapper.times)
	}
}

// Unknown kinds do not fill the memory.
func TestMissingKindsAreBounded(t *testing.T) {
	s := newNoMatchCache(systemClock{})
	mapper := &asking{RESTMapper: meta.NewDefaultRESTMapper(nil)}
	for i := range 3 * noMatchCapacity {
		_, _ = s.mapping(mapper, schema.GroupKind{Group: "example.com", Kind: string(rune('a' + i))})
	}
	if len(s.Keys()) > noMatchCapacity {
		t.Errorf("%d are cached", len(s.Keys()))
	}
}
