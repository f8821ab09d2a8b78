package interrupted_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/record/activity"
	"kuota.dev/kuota/governance/record/audit"
	"kuota.dev/kuota/governance/record/history"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestOpenWindow interrupts the controllers while a window opens that holds the queue and
// replaces the quota. Activity has its opening once.
func TestOpenWindow(t *testing.T) {
	setPolicy(t, policyOf(nil, true))
	quiet := slog.New(slog.DiscardHandler)
	store, err := history.New(filepath.Join(t.TempDir(), "history.db"), history.Options{Retention: 365 * 24 * time.Hour, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if activityLog, err = activity.Open("", store, quiet); err != nil {
		t.Fatal(err)
	}
	log := activityLog
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = log.Run(ctx) }()
	defer func() { stop(); <-ended; clock, activityLog = time.Now, nil }()
	opens := time.Date(2030, 1, 7, 8, 0, 0, 0, time.UTC)
	interruptEveryCall(t, func(t *testing.T, breakAt int64, after bool) (string, int64) {
		team := clustertest.Name("window")
		spec, three := fullSpec(), int64(3)
		spec.Windows = []v1alpha1.Window{{
			Name: "event", From: "2030-01-07T08:00", To: "2030-01-07T10:00", Activation: v1alpha1.Hold,
			Quota: []v1alpha1.WindowQuota{{InstanceType: "ml.g5.2xlarge", Accelerators: &three}},
		}}
		clock = func() time.Time { return opens.Add(-time.Second) }
		create(t, team, spec)
		newControllers(t, team, 0, false, noKueue).run(t, allocationReady(t, team))
		clock = func() time.Time { return opens }
		calls := runInterrupted(t, team, breakAt, after, noKueue, func(ctx context.Context) error {
			var a v1alpha1.ComputeAllocation
			if err := clustertest.Get(t).Client.Get(ctx, client.ObjectKey{Name: team}, &a); err != nil {
				return err
			}
			if a.Status.Active.OpenWindow() == "" {
				return errors.New("the window is not active")
			}
			return allocationReady(t, team)(ctx)
		})
		state := stateOf(t, team)
		if !strings.Contains(state, "stopPolicy: Hold") {
			t.Error("the ClusterQueue does not hold")
		}
		clustertest.Eventually(t, 10*time.Second, func(ctx context.Context) error {
			found, err := store.Activity(ctx, history.ActivityQuery{Teams: []string{team}, Limit: 10})
			switch {
			case err == nil && len(found) == 0:
				return errors.New("activity has no opened window")
			case err == nil && (len(found) > 1 || found[0].Action != string(audit.OpenWindow)):
				t.Errorf("activity is %+v, want one opened window", found)
			}
			return err
		})
		deleteTeam(t, team)
		return state, calls
	})
}
