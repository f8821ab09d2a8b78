package tasks

import (
	"context"
	"fmt"
	"sync"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/console"
	taskviews "kuota.dev/kuota/views/tasks"

	"github.com/labstack/echo/v4"
)

// noticesEvery is how often an open page reads the Events of Kubernetes.
const noticesEvery = 10 * time.Second

// notices returns a function that reads the Events of the requested task with the
// permissions of the user.
func (h *Pages) notices(c echo.Context) func(context.Context) *taskviews.TaskEvents {
	user := console.UserOf(c)
	namespace, kind, name, uid := c.Param("namespace"), c.Param("kind"), c.Param("name"), c.QueryParam("uid")
	return func(ctx context.Context) *taskviews.TaskEvents {
		var list []queries.Notice
		err := governance.Recovered(func() (err error) {
			list, err = h.Tasks.Notices(ctx, user, namespace, kind, name, uid)
			return err
		})
		switch kind := governance.KindOf(err); {
		case err == nil:
			return noticesView(list)
		case kind == governance.Forbidden:
			return &taskviews.TaskEvents{Trouble: "You cannot see the events of this namespace."}
		case kind == governance.NotFound:
			return nil // the page shows the state of the task
		}
		return &taskviews.TaskEvents{Trouble: "The events cannot be read now. Try again later."}
	}
}

// cachedNotices returns a function that reads the Events for a stream: at most once
// every noticesEvery, and without delaying the rest of the page.
func (h *Pages) cachedNotices(c echo.Context) func(context.Context) *taskviews.TaskEvents {
	var mu sync.Mutex
	last := h.notices(c)(c.Request().Context())
	read := h.Now()
	return func(ctx context.Context) *taskviews.TaskEvents {
		mu.Lock()
		defer mu.Unlock()
		if now := h.Now(); now.Sub(read) >= noticesEvery {
			read = now
			readNow := h.notices(c) // with the current groups of the user
			go func() {
				found := readNow(ctx)
				mu.Lock()
				defer mu.Unlock()
				last = found
			}()
		}
		return last
	}
}

func noticesView(list []queries.Notice) *taskviews.TaskEvents {
	view := &taskviews.TaskEvents{}
	for _, n := range list {
		line := taskviews.EventLine{At: n.At.UTC().Format(time.RFC3339), Tone: "idle", Title: n.Reason, About: n.About, Text: n.Text}
		if n.Warning {
			line.Tone = "bad"
		}
		if n.Count > 1 {
			line.Count = fmt.Sprintf("%d times", n.Count)
		}
		view.Lines = append(view.Lines, line)
	}
	return view
}
