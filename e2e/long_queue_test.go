package e2e_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/e2e/consoles"
	"kuota.dev/kuota/governance/cluster/clustertest"
)

// TestLongQueue measures the list of tasks, its streams and the memory of the console
// while 10,000 Workloads wait in one queue. make bench runs it in a cluster of its own,
// because it stops Kueue and does not start it again.
func TestLongQueue(t *testing.T) {
	if os.Getenv("KUOTA_BENCH") == "" {
		t.Skip("measured by make bench")
	}
	m, empty := newMany(t, 1, 10_000)
	m.waiting = true
	m.write()
	s := manyConsole(t, clustertest.Get(t), "console-long-queue")
	first, _ := s.get(t, "/tasks")
	fmt.Printf("figure queue_list_first %.1f ms\n", float64(first.Microseconds())/1000)
	m.recorded(s)

	var unchanged, changed []time.Duration
	for range 100 {
		took, _ := s.get(t, "/tasks")
		unchanged = append(unchanged, took)
	}
	consoles.Figures(t, "queue_list", unchanged)
	for i := range 100 {
		m.change(i)
		took, _ := s.get(t, "/tasks")
		changed = append(changed, took)
	}
	consoles.Figures(t, "queue_list_after_a_change", changed)
	m.streamed(s, 1)
	m.streamed(s, 20)
	fmt.Printf("figure console_memory_empty %d MB\nfigure queue_console_memory %d MB\n", empty/1e6, memoryOf(t, s.process)/1e6)
}

// streamed measures the time from before a change of a task until each of a number of
// open lists has it; 60 changes, one at a time.
func (m *many) streamed(s manyServer, pages int) {
	ctx, stop := context.WithCancel(m.t.Context())
	defer stop()
	var streams sync.WaitGroup
	var mu sync.Mutex
	var all []time.Duration
	began := time.Now()
	var watched []time.Duration
	m.watch(ctx, func(late time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		if late < time.Since(began) {
			watched = append(watched, late)
		}
	})
	for range pages {
		streams.Go(func() {
			s.stream(ctx, func(line string) {
				for _, late := range marks(line) {
					if late < time.Since(began) { // others are of changes before
						mu.Lock()
						all = append(all, late)
						mu.Unlock()
					}
				}
			})
		})
	}
	for i := range 60 {
		time.Sleep(500 * time.Millisecond) // longer than the least time between two renderings
		m.change(i)
	}
	time.Sleep(time.Second)
	stop()
	streams.Wait()
	if want := 60 * pages; len(all) < want*9/10 {
		m.t.Errorf("%d pages: got %d changes, want about %d", pages, len(all), want)
	}
	consoles.Figures(m.t, fmt.Sprintf("queue_change_to_%d_streams", pages), all)
	mu.Lock()
	defer mu.Unlock()
	consoles.Figures(m.t, "queue_change_to_watch", watched) // the API server's part
}
