package index

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"kuota.dev/kuota/governance/tasks/taskstest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Malformed Workloads are tasks too, and no duration of theirs is negative.
func TestMalformedWorkloads(t *testing.T) {
	for name, deform := range taskstest.Malformed() {
		t.Run(name, func(t *testing.T) {
			x, c := newTestIndex()
			c.At = taskstest.Start.Add(time.Hour)
			w := taskstest.Workload("a", "bad", "", 0, taskstest.Start, taskstest.Pending(taskstest.Start)...)
			deform(w)
			new(slimmer).slim(w)
			x.SetWorkload(w, false)
			behind := taskstest.Workload("other", "behind", "", 0, taskstest.Start)
			x.SetWorkload(behind, false)
			if x.Find("other", "job", "behind", "") == nil {
				t.Error("the task behind it is not found")
			}
			x.DeleteWorkload(behind)
			if size := len(fmt.Sprint(w)); size > 50<<10 {
				t.Errorf("the slim Workload has %d bytes, want at most 50 KiB", size)
			}
			for column := range columns {
				f := x.Query(Query{Sort: column, Text: "a"}, nil)
				if f.Total != 1 {
					t.Fatalf("sorted by %s: got %d tasks, want 1", column, f.Total)
				}
				task := f.Tasks[0]
				if task.Waited(c.At) < 0 || task.Ran(c.At) < 0 {
					t.Errorf("got a wait of %s and a run of %s, want neither below 0", task.Waited(c.At), task.Ran(c.At))
				}
				x.Timeline(task)
			}
			x.Classes(nil, 0)
			x.DeleteWorkload(w)
			if x.Len() != 0 || len(x.named) != 0 || len(x.admitted.list()) != 0 {
				t.Errorf("after the deletion the index still has %+v", x.named)
			}
		})
	}
}

// Deleting ten thousand tasks leaves nothing in the index, and takes at most 5 s.
func TestDeletingManyTasks(t *testing.T) {
	x, _ := newTestIndex()
	var all []*kueue.Workload
	for i := range 10_000 {
		w := taskstest.Workload(fmt.Sprintf("ns-%d", i%50), fmt.Sprintf("t-%d", i), "a-priority", 1, taskstest.Start, taskstest.Pending(taskstest.Start)...)
		all = append(all, w)
		x.SetWorkload(w, true)
	}
	x.Query(Query{Sort: ByWaited}, nil)
	began := time.Now()
	for _, w := range all {
		x.DeleteWorkload(w)
	}
	if f := x.Query(Query{Sort: ByWaited}, nil); f.Total != 0 {
		t.Errorf("got %d tasks after the deletion, want 0", f.Total)
	}
	if rows, _ := x.Classes(nil, 0); len(rows) != 0 {
		t.Errorf("got %+v after the deletion, want no priority classes", rows)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("the deletion took %s, want at most a minute", took)
	}
	if len(x.group)+len(x.parts)+len(x.named)+len(x.places)+len(x.kinds)+len(x.used)+len(x.admitted.list()) != 0 {
		t.Error("the index still has entries of deleted tasks")
	}
}

// When the API server ends a watch with 410 Gone, the informer lists again, and
// Workloads that were deleted meanwhile leave the index.
func TestExpiredWatchIsRelisted(t *testing.T) {
	x, _ := newTestIndex()
	one, two, three := taskstest.Workload("a", "one", "", 0, taskstest.Start), taskstest.Workload("a", "two", "", 0, taskstest.Start), taskstest.Workload("a", "three", "", 0, taskstest.Start)
	lists := 0
	listed := make(chan struct{}, 2)
	source := &toolscache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			lists++
			listed <- struct{}{}
			if lists == 1 {
				return &kueue.WorkloadList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []kueue.Workload{*one, *two}}, nil
			}
			return &kueue.WorkloadList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}, Items: []kueue.Workload{*two, *three}}, nil
		},
		WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if options.SendInitialEvents != nil {
				return nil, errors.New("lists only")
			}
			w := watch.NewFakeWithChanSize(1, false)
			if options.ResourceVersion == "1" {
				w.Error(&metav1.Status{Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired})
			}
			return w, nil
		},
	}
	_, informer := toolscache.NewInformerWithOptions(toolscache.InformerOptions{ListerWatcher: toolscache.ToListWatcherWithWatchListSemantics(source, unwatchable{}), ObjectType: &kueue.Workload{}, Handler: x.Handler()})
	go informer.RunWithContext(t.Context())
	for range 2 {
		select {
		case <-listed:
		case <-time.After(time.Minute):
			t.Fatal("the informer did not list again")
		}
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if x.Find("a", "job", "one", "") == nil && x.Find("a", "job", "two", "") != nil && x.Find("a", "job", "three", "") != nil && x.Len() == 2 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("got %d tasks, want job two and job three", x.Len())
		}
	}
}

// unwatchable is a client that cannot stream a list.
type unwatchable struct{}

func (unwatchable) IsWatchListSemanticsUnSupported() bool { return true }
