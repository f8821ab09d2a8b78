package recorder_test

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"testing"
	"time"

	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/report/usage"
	"kuota.dev/kuota/governance/tasks/timeline"
)

// At each step of a script every figure equals what Kueue's status, the nodes and the
// pods report, and in the end the recorded series add up to the millisecond.
func TestSeriesMatchKueue(t *testing.T) {
	l := newLab(t)
	l.node("-a", 8)
	l.node("-b", 8)
	low, high := l.class(10), l.class(90)
	engineers, research := l.team("engineers", 6), l.team("research", 9)
	l.start(l.store, nil)
	began := time.Now()

	step := func(what string, want usage.PoolUsage) {
		t.Helper()
		l.eventually(func() error {
			got, err := l.gpus()
			if err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			reported, err := l.fromCluster(engineers, research)
			if err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			compared := got
			compared.LentToCohort, compared.BorrowedUnallocated, compared.Unbound, compared.Unallocated, compared.Recovering, compared.Cordoned = 0, 0, 0, 0, 0, 0
			if compared != reported {
				return fmt.Errorf("%s: the console computes %+v, the cluster reports %+v", what, compared, reported)
			}
			if got.Physical != 16 || got.Nominal != 15 || got.Usage != want.Usage || got.Borrowed != want.Borrowed || got.LentToCohort != want.Borrowed || got.Unhealthy != 0 || got.Outside != want.Outside {
				return fmt.Errorf("%s: the pool is %+v, want %+v", what, got, want)
			}
			if bound := got.OwnBound + got.BorrowedBound; bound != want.OwnBound+want.BorrowedBound {
				return fmt.Errorf("%s: %d are bound, want %d", what, bound, want.OwnBound+want.BorrowedBound)
			}
			return nil
		})
	}

	// The example of the launch slides: 8 of 15 allocated GPUs are used, 2 of them
	// borrowed.
	l.job(engineers, "train", 6, low, "1h")
	step("the whole nominal quota is used", usage.PoolUsage{Usage: 6, OwnBound: 6})
	l.job(engineers, "extra", 2, low, "1h")
	step("two GPUs are borrowed", usage.PoolUsage{Usage: 8, Borrowed: 2, OwnBound: 6, BorrowedBound: 2})
	pool, err := l.gpus()
	if err != nil || usage.Percent(pool.Usage, pool.Nominal) != "53.33 %" {
		t.Errorf("%d of %d are used (%v)", pool.Usage, pool.Nominal, err)
	}
	l.job(research, "study", 9, "", "1h")
	step("they are reclaimed", usage.PoolUsage{Usage: 15, OwnBound: 15})
	l.job(engineers, "urgent", 6, high, "1h")
	step("a higher priority class preempts within the team", usage.PoolUsage{Usage: 15, OwnBound: 15})

	node := l.pool + "-a"
	l.c.Control(t, "stop", "kwok") // it simulates the kubelet
	ready := func(is string) {
		l.kubectl("patch", "node", node, "--subresource=status", "--type=merge", "-p", `{"status":{"conditions":[{"type":"Ready","status":"`+is+`","reason":"Kubelet","message":"set by the test"}]}}`)
	}
	ready("False")
	l.kubectl("delete", "job", "study", "-n", space(research))
	l.eventually(func() error { // pending tasks borrow again, as far as they fit on one node
		if got, err := l.gpus(); err != nil || got.Usage != 12 || got.Borrowed != 6 || got.Unhealthy == 0 || got.Recovering != 8 || got.Unbound == 0 {
			return fmt.Errorf("with one node not ready the pool is %+v (%w)", got, err)
		}
		return nil
	})
	l.c.Control(t, "start", "kwok")
	ready("True")
	step("the node is ready again", usage.PoolUsage{Usage: 12, Borrowed: 6, OwnBound: 6, BorrowedBound: 6})

	l.apply(`{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: default}, spec: {terminationGracePeriodSeconds: 0, nodeSelector: {node.kubernetes.io/instance-type: %[1]s}, containers: [{name: c, image: example.com/c:1, resources: {limits: {nvidia.com/gpu: 1}}}]}}`, l.pool)
	step("a pod that Kueue does not manage", usage.PoolUsage{Usage: 12, Borrowed: 6, OwnBound: 6, BorrowedBound: 6, Outside: 1})
	l.kubectl("delete", "pod", l.pool, "-n", "default")
	step("the pod is deleted", usage.PoolUsage{Usage: 12, Borrowed: 6, OwnBound: 6, BorrowedBound: 6})

	ended := time.Now()
	l.eventually(func() error {
		if s := l.recorder.State(); s.Pending > 0 || s.WrittenUntil.Before(ended) {
			return fmt.Errorf("not everything is written: %+v", s)
		}
		return nil
	})
	for _, resource := range []string{catalog.GPU, catalog.CPU, catalog.Memory} {
		l.checkSum(resource, began, ended)
	}
	l.wasPreempted(engineers, "extra", "InCohortReclamation", research, "study")
	l.wasPreempted(engineers, "train", "InClusterQueue", engineers, "urgent")
}

// checkSum checks that the recorded parts of the pool add up to Physical.
func (l *lab) checkSum(resource string, from, to time.Time) {
	l.t.Helper()
	keys := l.seriesKeys(resource)
	totals, err := l.store.Totals(l.t.Context(), slices.Collect(maps.Values(keys)), from, to)
	if err != nil {
		l.t.Fatal(err)
	}
	physical := totals[keys[history.Physical]]
	sum := new(big.Int)
	for _, part := range []history.Measure{history.OwnBound, history.BorrowedBound, history.Outside, history.Unhealthy, history.Idle} {
		total := totals[keys[part]]
		if total.Known != physical.Known {
			l.t.Errorf("%s of %s is known for %s, physical for %s", part, resource, total.Known, physical.Known)
		}
		sum.Add(sum, total.Sum)
	}
	gaps, err := l.store.Gaps(l.t.Context(), from, to)
	if err != nil {
		l.t.Fatal(err)
	}
	known := to.Truncate(time.Millisecond).Sub(from.Truncate(time.Millisecond))
	for _, gap := range gaps {
		begins, ends := gap.From, gap.To
		if begins.Before(from) {
			begins = from
		}
		if ends.After(to) {
			ends = to
		}
		known -= ends.Sub(begins.Truncate(time.Millisecond))
	}
	if physical.Sum.Sign() == 0 || sum.Cmp(physical.Sum) != 0 || physical.Known != known {
		l.t.Errorf("%s adds up to %s of %s, known for %s of %s, with gaps %+v", resource, sum, physical.Sum, physical.Known, known, gaps)
	}
}

// wasPreempted waits until the preemption of a task by another is recorded.
func (l *lab) wasPreempted(team, name, rule, byTeam, by string) {
	l.t.Helper()
	l.eventually(func() error {
		_, events, err := l.timeline(team, name)
		if err != nil {
			return err
		}
		for _, s := range events {
			if s.Type == string(timeline.Preempted) && s.Reason == rule && s.Preemptor.Team == byTeam && s.Preemptor.Name == by && s.Ran >= 0 {
				return nil
			}
		}
		return fmt.Errorf("no preemption of %s by %s: %+v", name, by, events)
	})
}

// timeline returns the record of a job.
func (l *lab) timeline(team, name string) (history.Task, []history.Event, error) {
	found, err := l.store.Tasks(l.t.Context(), history.Query{Namespace: space(team), Kind: "Job", Name: name})
	if err != nil {
		return history.Task{}, nil, err
	}
	if len(found) != 1 {
		return history.Task{}, nil, fmt.Errorf("%d records of %s, want 1", len(found), name)
	}
	task, events, _, err := l.store.Timeline(l.t.Context(), found[0].UID)
	return task, events, err
}
