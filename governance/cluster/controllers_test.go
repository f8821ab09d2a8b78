package cluster

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// A request that fails, or whose reconciler panics, is tried again; requests behind it are
// reconciled meanwhile.
func TestOddRequest(t *testing.T) {
	attempts := make(chan string, 1000)
	options := ControllerOptions(1, 5*time.Second)
	options.Reconciler = reconcile.Func(func(_ context.Context, request ctrl.Request) (ctrl.Result, error) {
		select {
		case attempts <- request.Name:
		default:
		}
		switch request.Name {
		case "panics":
			panic("odd")
		case "behind":
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, errors.New("odd")
	})
	c, err := controller.NewUnmanaged("odd", options)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Watch(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		for _, name := range []string{"fails", "panics", "behind"} {
			queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
		}
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	go func() { _ = c.Start(t.Context()) }()
	for limit, got := time.After(time.Minute), map[string]int{}; got["fails"] < 2 || got["panics"] < 2 || got["behind"] < 1; {
		select {
		case name := <-attempts:
			got[name]++
		case <-limit:
			t.Fatalf("within 5s only %v were reconciled", got)
		}
	}
}
