package recorder_test

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"testing"
	"time"

	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/history"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/usage"
)

// A script on the real Kueue: at each step every figure is what Kueue's status,
// the nodes and the pods say, and in the end what was recorded adds up to the
// millisecond.
func TestScript(t *testing.T) {
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
			told, err := l.told(engineers, research)
			if err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			seen := got
			seen.LentToCohort, seen.BorrowedUnallocated, seen.Unbound, seen.Unallocated, seen.Recovering, seen.Cordoned = 0, 0, 0, 0, 0, 0
			if seen != told {
				return fmt.Errorf("%s: the console has %+v, and the cluster %+v", what, seen, told)
			}
			if got.Physical != 16 || got.Nominal != 15 || got.Usage != want.Usage || got.Borrowed != want.Borrowed || got.LentToCohort != want.Borrowed || got.Unhealthy != 0 || got.Outside != want.Outside {
				return fmt.Errorf("%s: it is %+v", what, got)
			}
			if bound := got.OwnBound + got.BorrowedBound; bound != want.OwnBound+want.BorrowedBound {
				return fmt.Errorf("%s: %d are bound", what, bound)
			}
			return nil
		})
	}

	// The launch slides' example: of 15 GPUs given 8 are held, 2 of them borrowed.
	l.job(engineers, "train", 6, low, "1h")
	step("all of the own quota", usage.PoolUsage{Usage: 6, OwnBound: 6})
	l.job(engineers, "extra", 2, low, "1h")
	step("two are borrowed", usage.PoolUsage{Usage: 8, Borrowed: 2, OwnBound: 6, BorrowedBound: 2})
	pool, err := l.gpus()
	if err != nil || usage.Percent(pool.Usage, pool.Nominal) != "53.33 %" {
		t.Errorf("%d of %d are held (%v)", pool.Usage, pool.Nominal, err)
	}
	l.job(research, "study", 9, "", "1h")
	step("they are taken back", usage.PoolUsage{Usage: 15, OwnBound: 15})
	l.job(engineers, "urgent", 6, high, "1h")
	step("a higher class takes its own team's", usage.PoolUsage{Usage: 15, OwnBound: 15})

	node := l.pool + "-a"
	l.c.Control(t, "stop", "kwok") // it plays the kubelet
	ready := func(is string) {
		l.kubectl("patch", "node", node, "--subresource=status", "--type=merge", "-p", `{"status":{"conditions":[{"type":"Ready","status":"`+is+`","reason":"Kubelet","message":"of the test"}]}}`)
	}
	ready("False")
	l.kubectl("delete", "job", "study", "-n", space(research))
	l.eventually(func() error { // what waited borrows again, as far as one node has room
		if got, err := l.gpus(); err != nil || got.Usage != 12 || got.Borrowed != 6 || got.Unhealthy == 0 || got.Recovering != 8 || got.Unbound == 0 {
			return fmt.Errorf("with a node lost it is %+v (%w)", got, err)
		}
		return nil
	})
	l.c.Control(t, "start", "kwok")
	ready("True")
	step("the node is back", usage.PoolUsage{Usage: 12, Borrowed: 6, OwnBound: 6, BorrowedBound: 6})

	l.apply(`{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: default}, spec: {terminationGracePeriodSeconds: 0, nodeSelector: {node.kubernetes.io/instance-type: %[1]s}, containers: [{name: c, image: example.com/c:1, resources: {limits: {nvidia.com/gpu: 1}}}]}}`, l.pool)
	step("a pod beside Kueue", usage.PoolUsage{Usage: 12, Borrowed: 6, OwnBound: 6, BorrowedBound: 6, Outside: 1})
	l.kubectl("delete", "pod", l.pool, "-n", "default")
	step("it is gone", usage.PoolUsage{Usage: 12, Borrowed: 6, OwnBound: 6, BorrowedBound: 6})

	ended := time.Now()
	l.eventually(func() error {
		if s := l.recorder.State(); s.Pending > 0 || s.WrittenUntil.Before(ended) {
			return fmt.Errorf("it has not written all: %+v", s)
		}
		return nil
	})
	for _, resource := range []string{catalog.GPU, catalog.CPU, catalog.Memory} {
		l.addsUp(resource, began, ended)
	}
	l.lostTo(engineers, "extra", "InCohortReclamation", research, "study")
	l.lostTo(engineers, "train", "InClusterQueue", engineers, "urgent")
}

// addsUp compares what was recorded of the pool's parts with its physical amount.
func (l *lab) addsUp(resource string, from, to time.Time) {
	l.t.Helper()
	holders := l.holders(resource)
	totals, err := l.store.Totals(l.t.Context(), slices.Collect(maps.Values(holders)), from, to)
	if err != nil {
		l.t.Fatal(err)
	}
	physical := totals[holders[history.Physical]]
	sum := new(big.Int)
	for _, part := range []history.Measure{history.OwnBound, history.BorrowedBound, history.Outside, history.Unhealthy, history.Idle} {
		total := totals[holders[part]]
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

// lostTo looks up that a task was preempted by another under a rule.
func (l *lab) lostTo(team, name, rule, byTeam, by string) {
	l.t.Helper()
	l.eventually(func() error {
		_, steps, err := l.life(team, name)
		if err != nil {
			return err
		}
		for _, s := range steps {
			if s.Type == string(tasks.WasPreempted) && s.Reason == rule && s.Other.Team == byTeam && s.Other.Name == by && s.Ran >= 0 {
				return nil
			}
		}
		return fmt.Errorf("%s was not preempted by %s: %+v", name, by, steps)
	})
}

// life is what history has of a job.
func (l *lab) life(team, name string) (history.Task, []history.Event, error) {
	found, err := l.store.Tasks(l.t.Context(), history.Query{Namespace: space(team), Kind: "Job", Name: name})
	if err != nil {
		return history.Task{}, nil, err
	}
	if len(found) != 1 {
		return history.Task{}, nil, fmt.Errorf("there are %d records of %s", len(found), name)
	}
	task, steps, _, err := l.store.Timeline(l.t.Context(), found[0].UID)
	return task, steps, err
}
