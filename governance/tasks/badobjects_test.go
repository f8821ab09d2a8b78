package tasks

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Objects as nobody should write them are tasks all the same, with times that
// are not below zero.
func TestBadObjects(t *testing.T) {
	later := start.Add(24 * time.Hour)
	for name, bad := range map[string]func(w *kueue.Workload){
		"no priority":               func(w *kueue.Workload) { w.Spec.Priority = nil },
		"no conditions":             func(w *kueue.Workload) { w.Status.Conditions = nil },
		"made in the future":        func(w *kueue.Workload) { w.CreationTimestamp = metav1.NewTime(later) },
		"waiting since the future":  func(w *kueue.Workload) { w.Status.Conditions = waits(later) },
		"running since the future":  func(w *kueue.Workload) { w.Status.Conditions = runs(later) },
		"ended before it began":     func(w *kueue.Workload) { w.Status.Conditions = ends(later, start) },
		"unknown reasons":           func(w *kueue.Workload) { w.Status.Conditions[0].Reason = "SomethingNew" },
		"unknown conditions":        func(w *kueue.Workload) { w.Status.Conditions[0].Type = "SomethingNew" },
		"no reason, no time":        func(w *kueue.Workload) { w.Status.Conditions = []metav1.Condition{{Type: "QuotaReserved"}} },
		"an admission of nothing":   func(w *kueue.Workload) { w.Status.Admission = &kueue.Admission{} },
		"no pod sets":               func(w *kueue.Workload) { w.Spec.PodSets = nil },
		"no queue":                  func(w *kueue.Workload) { w.Spec.QueueName = "" },
		"no owner":                  func(w *kueue.Workload) { w.OwnerReferences = nil },
		"an owner without a name":   func(w *kueue.Workload) { w.OwnerReferences[0] = metav1.OwnerReference{} },
		"a megabyte of annotations": func(w *kueue.Workload) { w.Annotations = map[string]string{"a": strings.Repeat("x", 1<<20)} },
		"a megabyte in Kueue's own": func(w *kueue.Workload) { w.Annotations = map[string]string{gatedBy: strings.Repeat("x", 1<<20)} },
		"a reason that goes on":     func(w *kueue.Workload) { w.Status.Conditions[0].Message = strings.Repeat("ä", 1<<20) },
		"run times below zero":      func(w *kueue.Workload) { w.Status.AccumulatedPastExecutionTimeSeconds = new(int32(-5)) },
		"more evictions than counts": func(w *kueue.Workload) {
			w.Status.SchedulingStats = &kueue.SchedulingStats{Evictions: []kueue.WorkloadSchedulingStatsEviction{{Reason: "Preempted", Count: 1 << 30}, {Reason: "New", Count: 1 << 30}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			x, c := newTestIndex()
			c.at = start.Add(time.Hour)
			w := workload("a", "bad", "", 0, start, waits(start)...)
			bad(w)
			new(slimmer).slim(w)
			x.set(w, false)
			if size := len(fmt.Sprint(w)); size > 50<<10 {
				t.Errorf("%d bytes are kept of it", size)
			}
			for column := range columns {
				f := x.find(Query{Sort: column, Text: "a"}, nil)
				if f.total != 1 {
					t.Fatalf("by %s there are %d", column, f.total)
				}
				task := f.page[0]
				if task.Waited(c.at) < 0 || task.Ran(c.at) < 0 {
					t.Errorf("it waited %s and ran %s", task.Waited(c.at), task.Ran(c.at))
				}
				x.Timeline(task)
				question(task)
			}
			x.Classes(func(string) bool { return true }, 0)
			x.drop(w)
			if x.Len() != 0 || len(x.named) != 0 || len(x.holding.list()) != 0 {
				t.Errorf("something stays: %+v", x.named)
			}
		})
	}
}

// Ten thousand tasks that go at once leave nothing behind, and hold nobody up.
func TestManyGoAtOnce(t *testing.T) {
	x, _ := newTestIndex()
	var all []*kueue.Workload
	for i := range 10_000 {
		w := workload(fmt.Sprintf("ns-%d", i%50), fmt.Sprintf("t-%d", i), "a-priority", 1, start, waits(start)...)
		all = append(all, w)
		x.set(w, true)
	}
	x.find(Query{Sort: ByWaited}, nil)
	began := time.Now()
	for _, w := range all {
		x.drop(w)
	}
	if f := x.find(Query{Sort: ByWaited}, nil); f.total != 0 {
		t.Errorf("%d stay", f.total)
	}
	if rows, _ := x.Classes(func(string) bool { return true }, 0); len(rows) != 0 {
		t.Errorf("%+v are counted", rows)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
	if len(x.group)+len(x.parts)+len(x.named)+len(x.spaces)+len(x.kinds)+len(x.used)+len(x.holding.list()) != 0 {
		t.Error("something stays in the index")
	}
}

// A watch that the API server gives up (410) is begun anew, and what went
// meanwhile is gone.
func TestWatchGone(t *testing.T) {
	x, _ := newTestIndex()
	one, two, three := workload("a", "one", "", 0, start), workload("a", "two", "", 0, start), workload("a", "three", "", 0, start)
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
		case <-time.After(20 * time.Second):
			t.Fatal("it was not listed anew")
		}
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if x.Find("a", "job", "one", "") == nil && x.Find("a", "job", "two", "") != nil && x.Find("a", "job", "three", "") != nil && x.Len() == 2 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("there are %d", x.Len())
		}
	}
}

// unwatchable is a client that cannot stream a list.
type unwatchable struct{}

func (unwatchable) IsWatchListSemanticsUnSupported() bool { return true }
