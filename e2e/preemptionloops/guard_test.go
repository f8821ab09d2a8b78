package preemptionloops_test

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/controllers/loopguard"
	"kuota.dev/kuota/governance/record/audit"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// The modes of the loop guard.
const (
	warn    = string(v1alpha1.WarnOfLoops) // it reports loops
	breakUp = string(v1alpha1.BreakLoops)  // it deactivates the preempted Workload while the preemptor is let in
)

// startGuard runs the loop guard in a mode until the test ends, with the rights of
// the console. Kuota's controllers do not run.
func startGuard(t *testing.T, mode string) *loopguard.Guard {
	t.Helper()
	c := clustertest.Get(t)
	setLoops(t, c, v1alpha1.PreemptionLoops(mode))
	ctrl.SetLogger(logr.Discard())
	manager, err := ctrl.NewManager(c.Console, ctrl.Options{Scheme: cluster.Scheme, Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	guard := &loopguard.Guard{
		Audit: unrecorded{}, Watcher: unwatched{}, Identity: clustertest.Name("guard"), Now: time.Now,
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
		Find: func(uid types.UID) *kueue.Workload {
			var list kueue.WorkloadList
			if err := manager.GetCache().List(t.Context(), &list, client.UnsafeDisableDeepCopy); err != nil {
				return nil
			}
			for i := range list.Items {
				if list.Items[i].UID == uid {
					return &list.Items[i]
				}
			}
			return nil
		},
	}
	if err := guard.Setup(manager); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	if !manager.GetCache().WaitForCacheSync(ctx) {
		t.Fatal("the guard's cache did not sync")
	}
	return guard
}

type unrecorded struct{}

func (unrecorded) Record(audit.Change) {}

type unwatched struct{}

func (unwatched) Loop(loopguard.Loop) {}
func (unwatched) Step(loopguard.Step) {}

// reported returns the loops that a guard has reported of a setting, by the name
// of the preempted task.
func reported(guard *loopguard.Guard, s setting) map[string]loopguard.Loop {
	loops := map[string]loopguard.Loop{}
	for _, l := range guard.Loops() {
		for _, k := range s.tasks {
			if l.Victim.Namespace == s.namespace(k.team) && strings.HasPrefix(l.Victim.Name, "job-"+k.name+"-") {
				loops[k.name] = l
			}
		}
	}
	return loops
}
