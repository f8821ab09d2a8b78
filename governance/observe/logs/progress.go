package logs

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/observe/progress"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/index"

	"golang.org/x/sync/singleflight"
)

// Bounds of reading the progress of a task.
const (
	progressPods  = 2       // whose logs are read: the first that runs is nearly always that of the first worker
	progressLines = 2000    // last lines of each
	progressBytes = 2 << 20 // of each
	progressTime  = 3 * time.Second
	progressWait  = time.Second      // of a page; reading goes on
	progressFresh = 10 * time.Second // as often as trainings write it
	noneFresh     = time.Minute      // of a task that writes none, which are most
	maxProgress   = 10_000           // tasks and readers in the cache
)

// progressCache has what readers saw of the progress of tasks. Readers share none: each log
// is read as its reader. Its zero value is ready.
type progressCache struct {
	reads singleflight.Group

	mu      sync.Mutex
	entries map[string]progressEntry
}

type progressEntry struct {
	until time.Time
	lines []progress.Progress
}

// Progress returns the lines of progress among the last lines of a task's log that user may
// read, the oldest first; none for a task that writes none. It waits for a second at most:
// then the next call may know more.
func (s *Service) Progress(ctx context.Context, user governance.User, at tasks.Address) ([]progress.Progress, error) {
	if err := s.check(ctx, user, at.Namespace); err != nil {
		if governance.KindOf(err) == governance.Forbidden {
			return nil, nil
		}
		return nil, err
	}
	c := &s.progress
	key := fmt.Sprintf("%q %q %q", user.Name, user.Groups, at)
	c.mu.Lock()
	before := c.entries[key]
	c.mu.Unlock()
	if time.Now().Before(before.until) {
		return before.lines, nil
	}
	read := c.reads.DoChan(key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), progressTime)
		defer cancel()
		lines := s.readProgress(ctx, user, at)
		c.add(key, lines)
		return lines, nil
	})
	wait := time.NewTimer(progressWait)
	defer wait.Stop()
	select {
	case done := <-read:
		return done.Val.([]progress.Progress), nil
	case <-wait.C:
	case <-ctx.Done():
	}
	return before.lines, nil
}

func (c *progressCache) add(key string, lines []progress.Progress) {
	now, fresh := time.Now(), noneFresh
	if len(lines) > 0 {
		fresh = progressFresh
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.entries) >= maxProgress || c.entries == nil {
		c.entries = map[string]progressEntry{}
	}
	c.entries[key] = progressEntry{now.Add(fresh), lines}
}

// readProgress reads the log of the first pod that has lines of progress. A log that cannot
// be read has none: the page of the log says why.
func (s *Service) readProgress(ctx context.Context, user governance.User, at tasks.Address) (found []progress.Progress) {
	pods, err := s.Pods(ctx, user, at)
	if err != nil {
		return nil
	}
	pods = slices.DeleteFunc(slices.Clone(pods), func(p *index.Pod) bool { return p.Node == "" || p.Phase == "Pending" })
	slices.SortStableFunc(pods, func(a, b *index.Pod) int {
		return cmp.Or(cmp.Compare(rankOf(a), rankOf(b)), cmp.Compare(len(a.Name), len(b.Name)), strings.Compare(a.Name, b.Name))
	})
	for _, pod := range pods[:min(len(pods), progressPods)] {
		log, _, err := s.openLog(ctx, user, Query{Task: at, Pod: pod.Name, Timestamps: true}, progressLines, false)
		if err != nil {
			continue
		}
		tail := newTail(limited{io.LimitReader(log, progressBytes), log}, progress.Mark, true)
		batch, err := tail.All(ctx)
		tail.Close()
		if err != nil {
			continue
		}
		for _, l := range batch.Lines {
			if p, ok := progress.Parse(l.Text, written(l)); ok {
				found = append(found, p)
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// limited reads a part of a log.
type limited struct {
	io.Reader
	io.Closer
}

// rankOf orders pods as torchrun orders workers: running ones first, then by index.
func rankOf(p *index.Pod) int {
	rank := 0
	if p.Index != nil {
		rank = int(*p.Index)
	}
	if p.Phase != "Running" {
		rank += 1 << 31
	}
	return rank
}

// written returns when a line was written; zero if unknown.
func written(l Line) time.Time {
	at, _ := time.Parse(time.RFC3339Nano, l.At)
	return at
}
