package cluster

import (
	"context"
	"log/slog"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// An object whose handler panics, and one that is deleted while the watch is away, hold up
// nothing: the informer syncs, and the objects behind are handled.
func TestOddObjectIsSkipped(t *testing.T) {
	handled := make(chan string, 10)
	handle := func(object any) {
		if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = unknown.Obj
		}
		pod, _ := object.(*corev1.Pod)
		if pod.Name == "odd" {
			panic("odd")
		}
		handled <- pod.Name
	}
	pod := func(name string) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}}
	}
	events := watch.NewFakeWithChanSize(10, false)
	source := &toolscache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []corev1.Pod{pod("odd"), pod("behind")}}, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return events, nil },
	}
	var changes Notifier
	informer := toolscache.NewSharedIndexInformer(toolscache.ToListWatcherWithWatchListSemantics(source, unwatchable{}), &corev1.Pod{}, 0, nil)
	registration, err := informer.AddEventHandler(chainHandlers(slog.New(slog.DiscardHandler), toolscache.ResourceEventHandlerFuncs{
		AddFunc: handle, UpdateFunc: func(_, after any) { handle(after) }, DeleteFunc: handle,
	}, changes.Notify))
	if err != nil {
		t.Fatal(err)
	}
	go informer.RunWithContext(t.Context())
	soon(t, "the handler received all objects", registration.HasSynced)
	odd, last := pod("odd"), pod("last")
	events.Modify(&odd)
	events.Delete(&odd)
	events.Add(&last)
	for limit, got := time.After(time.Minute), map[string]bool{}; !got["behind"] || !got["last"]; {
		select {
		case name := <-handled:
			got[name] = true
		case <-limit:
			t.Fatalf("only %v were handled", got)
		}
	}
	soon(t, "all changes were notified", func() bool { return changes.Count() == 5 })
	handler := chainHandlers(slog.New(slog.DiscardHandler), toolscache.ResourceEventHandlerFuncs{DeleteFunc: handle}, changes.Notify)
	handler.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "a/odd", Obj: &odd})
	handler.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "a/gone"}) // without the object
	if got := changes.Count(); got != 7 {
		t.Errorf("%d changes were notified, want 7", got)
	}
}

// unwatchable is a client that cannot stream a list.
type unwatchable struct{}

func (unwatchable) IsWatchListSemanticsUnSupported() bool { return true }
