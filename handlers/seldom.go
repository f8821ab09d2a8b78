package handlers

import (
	"context"
	"time"
)

// taskGap is the least time between two updates of a task's page: unlike a list,
// it is rendered for each reader, with what they may do, and all that stands
// around the task.
const taskGap = 500 * time.Millisecond

// seldom tells of changes at most once in a gap, until ctx ends.
func seldom(ctx context.Context, changed <-chan struct{}, gap time.Duration) <-chan struct{} {
	told := make(chan struct{}, 1)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
			select {
			case told <- struct{}{}:
			default: // it has not looked since the last
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(gap):
			}
		}
	}()
	return told
}
