package loopguard

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/leader"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

type steps []Step

func (s *steps) Loop(Loop)      {}
func (s *steps) Step(step Step) { *s = append(*s, step) }

// TestFollow checks that a replica that does not lead shows a hold of the leader, by
// its mark, until the mark is removed, and writes nothing.
func TestFollow(t *testing.T) {
	since := time.Date(2026, 3, 5, 10, 0, 0, 0, time.UTC)
	mark := Mark{Identity: "leader", Preemptor: "p", Since: since, Until: since.Add(firstHold)}
	w := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "w", UID: "v", Annotations: map[string]string{MarkAnnotation: mark.String()}}}
	w.Spec.Active = ptr.To(false)
	scheme := runtime.NewScheme()
	if err := kueue.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	objects := fake.NewClientBuilder().WithScheme(scheme).WithObjects(w).Build()
	follower, err := leader.New(&rest.Config{Host: "127.0.0.1:1"}, leader.Options{Identity: "follower", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	var seen steps
	g := &Guard{Client: objects, Watcher: &seen, Log: slog.New(slog.DiscardHandler), Identity: "follower", Leader: follower, Now: func() time.Time { return since.Add(time.Second) }}
	g.Start()
	reconcile := func(want State) {
		t.Helper()
		if _, err := g.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w)}); err != nil {
			t.Fatal(err)
		}
		loops := g.Loops()
		if len(loops) != 1 || loops[0].State != want || loops[0].Victim.UID != "v" || loops[0].Preemptor.UID != "p" || !loops[0].HeldUntil.Equal(mark.Until) || loops[0].Holds != 1 {
			t.Errorf("loops: got %+v, want one that is %s", loops, want)
		}
	}
	reconcile(Held)
	reconcile(Held)
	if len(seen) != 1 || seen[0].What != WasHeld || !seen[0].At.Equal(since) {
		t.Errorf("steps: got %+v, want one hold", seen)
	}
	if err := objects.Get(context.Background(), client.ObjectKeyFromObject(w), w); err != nil {
		t.Fatal(err)
	}
	if _, marked := MarkOf(w); !marked {
		t.Error("the follower removed the mark")
	}
	w.Annotations, w.Spec.Active = nil, nil
	if err := objects.Update(context.Background(), w); err != nil {
		t.Fatal(err)
	}
	reconcile(Released)
}
