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

func (a *asking) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	a.times++
	if a.err != nil {
		return nil, a.err
	}
	return a.RESTMapper.RESTMapping(kind, versions...)
}

// The API server is asked twice a minute at most about a kind that it does not
// have, and finds one that comes.
func TestLackedKindsAreRemembered(t *testing.T) {
	var s noMatchCache
	start := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
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
		mapping, err := s.mapping(mapper, start.Add(step.after), ray.GroupKind(), step.versions...)
		if (mapping != nil) != step.there || meta.IsNoMatchError(err) == step.there || mapper.times != step.want {
			t.Errorf("%s: asked %d times, want %d (%v, %v)", step.name, mapper.times, step.want, mapping, err)
		}
	}
}

// That the API server does not answer says nothing about a kind.
func TestTroubleIsNotRemembered(t *testing.T) {
	var s noMatchCache
	mapper := &asking{err: errors.New("it is away")}
	for range 2 {
		if _, err := s.mapping(mapper, time.Time{}, schema.GroupKind{Kind: "Job"}); !errors.Is(err, mapper.err) {
			t.Errorf("the error is %v", err)
		}
	}
	if mapper.times != 2 {
		t.Errorf("it was asked %d times", mapper.times)
	}
}

// Made-up kinds do not fill the memory.
func TestLackedKindsAreBounded(t *testing.T) {
	var s noMatchCache
	mapper := &asking{RESTMapper: meta.NewDefaultRESTMapper(nil)}
	for i := range 3 * noMatchCapacity {
		_, _ = s.mapping(mapper, time.Time{}, schema.GroupKind{Group: "example.com", Kind: string(rune('a' + i))})
	}
	if len(s.entries) > noMatchCapacity {
		t.Errorf("%d are remembered", len(s.entries))
	}
}
