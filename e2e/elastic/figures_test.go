package elastic_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestFigures measures 200 elastic tasks with 1,000 increments: what the controller writes
// and computes while nothing changes hands, and how soon it grows once there is room.
func TestFigures(t *testing.T) {
	if os.Getenv("KUOTA_BENCH") == "" {
		t.Skip("set KUOTA_BENCH=1")
	}
	const teams, tasks, rounds = 10, 20, 20
	l := newLab(t, teams*tasks*6/8+1)
	names := make([]string, teams)
	inParallel(teams, func(i int) { names[i] = l.team(fmt.Sprint("team-", i), tasks*6, nil) })
	filler := l.team("filler", 8, nil)
	task := l.submit(filler, "filler", "", 8)
	l.admitted(task, 20*time.Second)
	policy := v1alpha1.ElasticPolicy{MinReplicas: 1, MaxReplicas: 6, ReplicaIncrementStep: ptr.To[int32](1), MinStablePeriodSeconds: 1, BackoffMaxSeconds: 1, FaultyScaleDownTimeoutInSeconds: 30}
	began := time.Now()
	inParallel(teams, func(i int) {
		for j := range tasks {
			p := policy
			if i == 0 && j == 0 {
				p.MaxReplicas = 14 // it grows into what the other team releases
			}
			l.elastic(names[i], fmt.Sprint("train-", j), "", p)
		}
	})
	clustertest.Eventually(t, 10*time.Minute, func(ctx context.Context) error {
		if n := l.increments(ctx); n < teams*tasks*5 {
			return fmt.Errorf("%d increments", n)
		}
		return nil
	})
	figure("elastic_fill", time.Since(began).Seconds(), "s")

	time.Sleep(10 * time.Second)
	const quiet = 30 * time.Second
	writes, cpu := running.line.Writes(), cpuTime(t)
	time.Sleep(quiet)
	figure("elastic_idle_writes", float64(running.line.Writes()-writes)/quiet.Seconds(), "writes/s")
	figure("elastic_idle_cpu", (cpuTime(t)-cpu).Seconds()/quiet.Seconds(), "cores")

	var delays []time.Duration
	for range rounds {
		before := l.increments(t.Context())
		l.remove(task)
		released := time.Now()
		for l.increments(t.Context()) <= before {
			if time.Since(released) > 30*time.Second {
				t.Fatal("nothing grows")
			}
			time.Sleep(20 * time.Millisecond)
		}
		delays = append(delays, time.Since(released))
		time.Sleep(2 * time.Second)
		task = l.submit(filler, "filler", "", 8)
		l.admitted(task, 20*time.Second)
		time.Sleep(3 * time.Second)
	}
	slices.Sort(delays)
	figure("elastic_growth_p50", delays[rounds/2].Seconds(), "s")
	figure("elastic_growth_p95", delays[rounds*95/100-1].Seconds(), "s")
	figure("elastic_growth_max", delays[rounds-1].Seconds(), "s")
}

// figure prints a figure as make bench reads it.
func figure(name string, value float64, unit string) {
	fmt.Printf("figure %s %.2f %s\n", name, value, unit)
}

// increments returns how many increments exist.
func (l *lab) increments(ctx context.Context) int {
	l.Helper()
	var list batchv1.JobList
	if err := l.Client.List(ctx, &list, client.HasLabels{v1alpha1.LabelElasticIncrement}); err != nil {
		l.Fatal(err)
	}
	n := 0
	for i := range list.Items {
		if list.Items[i].Labels[v1alpha1.LabelElasticIncrement] != "0" && list.Items[i].DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

// cpuTime returns the time that this process has computed.
func cpuTime(t *testing.T) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// inParallel calls do for 0 to n-1 at once.
func inParallel(n int, do func(i int)) {
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { do(i) })
	}
	group.Wait()
}
