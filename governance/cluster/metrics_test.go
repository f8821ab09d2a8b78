package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// soon waits until it is so.
func soon(t *testing.T, what string, is func() bool) {
	t.Helper()
	for began := time.Now(); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > 10*time.Second {
			t.Fatal("not soon: " + what)
		}
	}
}

// A watch counts from when it is opened until it ends, and what fails counts too.
func TestWatchesCount(t *testing.T) {
	counts := newWatches()
	opened := make(chan *watch.FakeWatcher)
	refusals := make(chan error, 1)
	refusals <- errors.New("not now")
	informer := counts.informer(&toolscache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &corev1.NodeList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			select {
			case err := <-refusals:
				return nil, err
			default:
			}
			if options.SendInitialEvents != nil {
				return nil, errors.New("lists only")
			}
			fake := watch.NewFake()
			select {
			case opened <- fake:
				return fake, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
	}, &corev1.Node{}, 0, nil)

	registry := prometheus.NewRegistry()
	registry.MustRegister(counts)
	same := func(want string) bool {
		return testutil.GatherAndCompare(registry, strings.NewReader(want), "kuota_watch_open", "kuota_watch_synced", "kuota_watch_starts_total") == nil
	}
	state := func(open, starts, synced string) string {
		return `# HELP kuota_watch_open Open watches by kind; 0 while the API server does not answer.
# TYPE kuota_watch_open gauge
kuota_watch_open{kind="Node"} ` + open + `
# HELP kuota_watch_starts_total Watches opened, by kind. The API server closes a watch after some minutes, and the console opens it again.
# TYPE kuota_watch_starts_total counter
kuota_watch_starts_total{kind="Node"} ` + starts + `
# HELP kuota_watch_synced 1 when the informer cache of a kind has synced since the console started, else 0.
# TYPE kuota_watch_synced gauge
kuota_watch_synced{kind="Node"} ` + synced + "\n"
	}
	if !same(state("0", "0", "0")) {
		t.Error("before it runs, something counts")
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		informer.RunWithContext(ctx)
	}()
	first := <-opened
	soon(t, "the first watch counts", func() bool { return same(state("1", "1", "1")) })
	if failed := testutil.ToFloat64(counts.errors.WithLabelValues("Node")); failed < 1 {
		t.Errorf("%v attempts failed", failed)
	}
	first.Stop() // as the API server ends it
	soon(t, "a watch that ended does not count", func() bool { return same(state("0", "1", "1")) })
	<-opened
	soon(t, "the second watch counts", func() bool { return same(state("1", "2", "1")) })
	failed := testutil.ToFloat64(counts.errors.WithLabelValues("Node"))
	stop()
	<-ended
	if open := testutil.ToFloat64(counts.open.WithLabelValues("Node")); open != 0 {
		t.Errorf("%v are open in the end", open)
	}
	if after := testutil.ToFloat64(counts.errors.WithLabelValues("Node")); after != failed {
		t.Errorf("stopping counts as an error: %v, %v before", after, failed)
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("lint: %v, %v", problems, err)
	}
}

func TestContactAge(t *testing.T) {
	contact := &Contact{}
	if age := testutil.ToFloat64(contact.metric()); age < 1e300 {
		t.Errorf("before it answered, the age is %v", age)
	}
	contact.last.Store(time.Now().Add(-time.Minute).UnixNano())
	if age := testutil.ToFloat64(contact.metric()); age < 60 || age > 90 {
		t.Errorf("a minute ago is %v", age)
	}
	if problems, err := testutil.CollectAndLint(contact.metric()); err != nil || len(problems) > 0 {
		t.Errorf("lint: %v, %v", problems, err)
	}
}
