package revisions

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/spec/textdiff"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// memory is a Store that fails at one of its calls: before the call, or after it,
// so that only the response is lost.
type memory struct {
	kept   map[string]*appsv1.ControllerRevision
	calls  int
	stopAt int
	after  bool
	blind  bool                                  // the cache has not synced
	behind map[string]*appsv1.ControllerRevision // the cache, if it is behind
}

var errStopped = errors.New("stopped by the test")

func call[T any](m *memory, do func() T) (answer T, err error) {
	m.calls++
	if m.calls == m.stopAt && !m.after {
		return answer, errStopped
	}
	answer = do()
	if m.calls == m.stopAt {
		return answer, errStopped
	}
	return answer, nil
}

func (m *memory) of(label string) []*metav1.PartialObjectMetadata { return labeled(m.kept, label) }

func labeled(kept map[string]*appsv1.ControllerRevision, label string) (list []*metav1.PartialObjectMetadata) {
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		if r := kept[name]; r.Labels[cluster.LabelRevisionOf] == label {
			list = append(list, &metav1.PartialObjectMetadata{ObjectMeta: r.ObjectMeta})
		}
	}
	return list
}

func (m *memory) Cached(of string) ([]*metav1.PartialObjectMetadata, error) {
	if m.blind {
		return nil, &governance.Error{Kind: governance.Unavailable}
	}
	if m.behind != nil {
		return labeled(m.behind, of), nil
	}
	return m.of(of), nil
}

func (m *memory) List(_ context.Context, of string) ([]*metav1.PartialObjectMetadata, error) {
	return call(m, func() []*metav1.PartialObjectMetadata { return m.of(of) })
}

func (m *memory) Get(_ context.Context, name string) (*appsv1.ControllerRevision, error) {
	found, err := call(m, func() *appsv1.ControllerRevision { return m.kept[name] })
	if err == nil && found == nil {
		err = &governance.Error{Kind: governance.NotFound}
	}
	return found, err
}

func (m *memory) Create(_ context.Context, r *appsv1.ControllerRevision) (bool, error) {
	return call(m, func() bool {
		if m.kept[r.Name] != nil {
			return false
		}
		m.kept[r.Name] = r.DeepCopy()
		return true
	})
}

func (m *memory) Delete(_ context.Context, name string) error {
	_, err := call(m, func() bool {
		delete(m.kept, name)
		return true
	})
	return err
}

var start = time.Date(2026, 3, 5, 10, 0, 0, 0, time.UTC)

func team(uid string, generation, gpus int64) *v1alpha1.ComputeAllocation {
	return &v1alpha1.ComputeAllocation{
		ObjectMeta: metav1.ObjectMeta{
			Name: "vision", UID: types.UID(uid), Generation: generation, CreationTimestamp: metav1.NewTime(start),
			Annotations: map[string]string{"kuota.dev/changed-by": "ada", "kuota.dev/changed-generation": fmt.Sprint(generation), "kuota.dev/changed-because": fmt.Sprint("reason ", generation)},
		},
		Spec: v1alpha1.ComputeAllocationSpec{Quota: []v1alpha1.QuotaRow{{InstanceType: "ml.g5.2xlarge", Quantities: v1alpha1.Quantities{Accelerators: &gpus}}}},
	}
}

func (m *memory) story() (lines []string) {
	for _, r := range fromObjects(m.of("allocation.vision")) {
		lines = append(lines, fmt.Sprintf("%d %s/%d by %s: %s", r.Number, r.UID, r.Generation, r.By, r.Summary))
	}
	slices.Reverse(lines)
	return lines
}

// Record that fails at any call and is repeated stores the same revisions, none
// twice.
func TestRecordRepeatsAfterFailure(t *testing.T) {
	scene := func(remembers bool, stopAt int, after bool) ([]string, int) {
		m := &memory{kept: map[string]*appsv1.ControllerRevision{}, stopAt: stopAt, after: after}
		series := &Series{Store: m}
		for generation := int64(1); generation <= Limit+2; generation++ {
			for try := 0; ; try++ {
				m.blind = generation%2 == 0
				if !remembers {
					series = &Series{Store: m}
				}
				err := series.Record(t.Context(), team("a", generation, generation), start)
				if err == nil {
					break
				}
				if try > 0 || !errors.Is(err, errStopped) {
					t.Fatal(err)
				}
			}
		}
		return m.story(), m.calls
	}
	want, calls := scene(false, 0, false)
	if len(want) != Limit || want[0] != "3 a/3 by ada: Quota, ml.g5.2xlarge: 2 accelerators → 3 accelerators" {
		t.Fatalf("it ends with %d: %v", len(want), want)
	}
	for n := 1; n <= calls; n++ {
		for _, after := range []bool{false, true} {
			for _, remembers := range []bool{false, true} {
				if got, _ := scene(remembers, n, after); !cmp.Equal(want, got) {
					t.Fatalf("stopped at call %d of %d (carried out: %t, remembers revisions: %t):\n%s", n, calls, after, remembers, cmp.Diff(want, got))
				}
			}
		}
	}
}

// TestSeriesWithStaleCache checks that specs after the first cost two calls while the
// cache is behind, and one until the oldest is pruned.
func TestSeriesWithStaleCache(t *testing.T) {
	m := &memory{kept: map[string]*appsv1.ControllerRevision{}, behind: map[string]*appsv1.ControllerRevision{}}
	series := &Series{Store: m}
	for generation := int64(1); generation <= 2*Limit; generation++ {
		if err := series.Record(t.Context(), team("a", generation, generation), start); err != nil {
			t.Fatal(err)
		}
	}
	if got := m.story(); len(got) != Limit || got[0] != "51 a/51 by ada: Quota, ml.g5.2xlarge: 50 accelerators → 51 accelerators" {
		t.Errorf("got %d revisions: %v", len(got), got)
	}
	if want := 2*Limit + Limit; m.calls != want {
		t.Errorf("got %d calls, want %d", m.calls, want)
	}
}

// Record stores no spec twice, and no spec older than the newest. A deletion is a
// revision with the same spec.
func TestRecord(t *testing.T) {
	m := &memory{kept: map[string]*appsv1.ControllerRevision{}}
	keep := func(object *v1alpha1.ComputeAllocation) {
		t.Helper()
		if err := (&Series{Store: m}).Record(t.Context(), object, start); err != nil {
			t.Fatal(err)
		}
	}
	keep(team("a", 1, 1))
	keep(team("a", 4, 2))
	for _, blind := range []bool{true, false} {
		m.blind = blind
		keep(team("a", 4, 2))
		keep(team("a", 3, 7))
	}
	going := team("a", 5, 2)
	going.DeletionTimestamp = &metav1.Time{Time: start.Add(time.Hour)}
	going.Annotations["kuota.dev/deleted-by"], going.Annotations["kuota.dev/change-reason"] = "grace", "unused"
	keep(going)
	keep(going)
	if newest := fromObjects(m.of("allocation.vision"))[0]; !newest.IsDeletion() || newest.Reason != "unused" || !newest.At.Equal(start.Add(time.Hour)) {
		t.Errorf("the deletion is kept as %+v", newest)
	}
	edited := team("a", 6, 3)
	edited.DeletionTimestamp = &metav1.Time{Time: start}
	keep(edited)
	keep(team("b", 1, 3))
	keep(team("b", 2, 3))
	want := []string{
		"1 a/1 by ada: Created",
		"2 a/4 by ada: Quota, ml.g5.2xlarge: 1 accelerator → 2 accelerators",
		"3 a/5 by grace: Deleted",
		"4 a/6 by ada: Quota, ml.g5.2xlarge: 2 accelerators → 3 accelerators",
		"5 b/1 by ada: Deleted and created again",
		"6 b/2 by ada: Only the order or the spelling of values",
	}
	if diff := cmp.Diff(want, m.story()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var missing []int64
	for _, r := range fromObjects(m.of("allocation.vision")) {
		missing = append(missing, r.Skipped)
	}
	if diff := cmp.Diff([]int64{0, 0, 0, 0, 2, 0}, missing); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
}

// TestRecordWithStaleCache records with a cache that is behind by more revisions
// than are kept, as in a replica that was paused: the number that follows in the
// cache was used and pruned, and must not be used twice.
func TestRecordWithStaleCache(t *testing.T) {
	for name, cached := range map[string]int64{"some": 10, "none": 0} {
		t.Run(name, func(t *testing.T) {
			m := &memory{kept: map[string]*appsv1.ControllerRevision{}}
			stale := map[string]*appsv1.ControllerRevision{}
			const last = 3*Limit + 1
			for generation := int64(1); generation < last; generation++ {
				if err := (&Series{Store: m}).Record(t.Context(), team("a", generation, generation%7+1), start); err != nil {
					t.Fatal(err)
				}
				if generation == cached {
					stale = maps.Clone(m.kept)
				}
			}
			m.behind = stale
			if err := (&Series{Store: m}).Record(t.Context(), team("a", last, 1), start); err != nil {
				t.Fatal(err)
			}
			numbers := map[int64]int64{}
			for _, r := range fromObjects(m.of("allocation.vision")) {
				numbers[r.Number] = r.Generation
			}
			if len(numbers) != Limit || numbers[last] != last {
				t.Errorf("got %d revisions, number %d of generation %d; want %d, and generation %[2]d", len(numbers), last, numbers[last], Limit)
			}
		})
	}
}

func TestRevisionAuthor(t *testing.T) {
	entry := func(manager, subresource, fields string, at time.Time) metav1.ManagedFieldsEntry {
		when := metav1.NewTime(at)
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, Time: &when, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	fields := []metav1.ManagedFieldsEntry{
		entry("kubectl-edit", "", `{"f:spec":{"f:quota":{}}}`, start.Add(time.Minute)),
		entry("kuota-console", "", `{"f:spec":{"f:members":{}}}`, start),
		entry("kuota", "", `{"f:metadata":{}}`, start.Add(time.Hour)),
		entry("kuota", "status", `{"f:spec":{}}`, start.Add(time.Hour)),
	}
	now := start.Add(2 * time.Hour)
	for name, tc := range map[string]struct {
		annotations map[string]string
		before      *Revision
		want        Revision
	}{
		"the annotation of this generation": {
			map[string]string{"kuota.dev/changed-by": "ada", "kuota.dev/changed-generation": "3", "kuota.dev/changed-because": " why ", "kuota.dev/change-reason": "other"}, nil,
			Revision{By: "ada", Reason: "why", At: start.Add(time.Minute), objectReason: "other"},
		},
		"an annotation of another": {
			map[string]string{"kuota.dev/changed-by": "ada", "kuota.dev/changed-generation": "2", "kuota.dev/changed-because": "why"}, nil,
			Revision{By: "kubectl-edit", ByProgram: true, At: start.Add(time.Minute)},
		},
		"a new reason without the policy": {
			map[string]string{"kuota.dev/change-reason": "new"}, &Revision{objectReason: "old"},
			Revision{By: "kubectl-edit", ByProgram: true, Reason: "new", At: start.Add(time.Minute), objectReason: "new"},
		},
		"an old reason without the policy": {
			map[string]string{"kuota.dev/change-reason": "old"}, &Revision{objectReason: "old", At: start.Add(time.Minute)},
			Revision{By: "kubectl-edit", ByProgram: true, At: now, objectReason: "old"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			object := team("a", 3, 1)
			object.Annotations, object.ManagedFields = tc.annotations, fields
			got := nextRevision(object, tc.before, now)
			got.Number, got.UID, got.Generation, got.Skipped = 0, "", 0, 0
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(Revision{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnnotationsRoundTrip(t *testing.T) {
	want := Revision{Number: 12, UID: "a", Generation: 3, At: start, By: "ada", Reason: "why", Summary: "what", Skipped: 2, objectReason: "r"}
	for _, program := range []bool{false, true} {
		want.ByProgram = program
		got := fromObject(&metav1.ObjectMeta{Name: AllocationOwner("a-team-7").object(12), Annotations: want.annotations()})
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(Revision{})); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestCompare(t *testing.T) {
	for name, tc := range map[string]struct{ before, after, want string }{
		"the same":     {"a\nb\n", "a\nb\n", " a b"},
		"the first":    {"", "a\nb\n", "+a+b"},
		"one changes":  {"a\nb\nc\n", "a\nx\nc\n", " a-b+x c"},
		"one comes":    {"a\nc\n", "a\nb\nc\n", " a+b c"},
		"one goes":     {"a\nb\nc\n", "a\nc\n", " a-b c"},
		"two apart":    {"a\nb\nc\nd\ne\n", "a\nx\nc\ny\ne\n", " a-b+x c-d+y e"},
		"all go":       {"a\nb\n", "", "-a-b"},
		"order":        {"a\nb\n", "b\na\n", "-a b+a"},
		"said twice":   {"a\na\n", "a\na\na\n", " a a+a"},
		"nothing here": {"", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got strings.Builder
			for _, line := range textdiff.Texts(tc.before, tc.after) {
				switch {
				case line.Added:
					got.WriteString("+")
				case line.Removed:
					got.WriteString("-")
				default:
					got.WriteString(" ")
				}
				got.WriteString(line.Text)
			}
			if got.String() != tc.want {
				t.Errorf("got %q, want %q", got.String(), tc.want)
			}
		})
	}
}

// Where the API server does not record users, everyone who changes the object can write
// annotations that name one: a revision names the field manager then.
func TestWithoutUser(t *testing.T) {
	object := team("a", 2, 4)
	object.Annotations[v1alpha1.AnnotationReason] = "more GPUs"
	object.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl-edit", Time: &metav1.Time{Time: start}, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)}}
	m := &memory{kept: map[string]*appsv1.ControllerRevision{}}
	if err := (&Series{Store: m}).Record(t.Context(), WithoutUser(object), start); err != nil {
		t.Fatal(err)
	}
	got := fromObjects(m.of("allocation.vision"))
	if len(got) != 1 || got[0].By != "kubectl-edit" || !got[0].ByProgram || got[0].Reason != "more GPUs" {
		t.Errorf("got %+v", got)
	}
	if object.Annotations[v1alpha1.AnnotationChangedBy] != "ada" {
		t.Error("the object of the cache was changed")
	}
	deleted := team("a", 3, 4)
	deleted.DeletionTimestamp = &metav1.Time{Time: start}
	deleted.Annotations[v1alpha1.AnnotationDeletedBy] = "mallory"
	var r Revision
	r.setDeletion(WithoutUser(deleted))
	if r.By != "" {
		t.Errorf("the deletion is by %s", r.By)
	}
}
