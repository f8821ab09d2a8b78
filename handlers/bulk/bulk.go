package bulk

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/bulk"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	bulkviews "kuota.dev/kuota/views/bulk"
	"kuota.dev/kuota/web"
	"kuota.dev/kuota/web/session"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
)

// refresh is how often an open page is rendered again.
const refresh = time.Second

// Pages starts changes of many objects, and shows how far they are.
type Pages struct {
	*console.Console
	Bulk *bulk.Service
	// Session returns the user of a request as long as the session lasts: web.Server.Session.
	Session func(c echo.Context) func(context.Context) (web.User, error)
}

// Register adds the routes of this package to the server.
func (h *Pages) Register(s *web.Server) {
	h.Session = s.Session
	s.Page(urls.Bulk+"/:id", h.Handler(h.show))
	s.Events(urls.Bulk+"/:id/events", h.Handler(h.events(s)))
	s.API(web.Endpoint{Method: http.MethodGet, Path: "/bulk/:id", Summary: "Return how far an action on many objects is", Answer: bulk.Run{}, Handler: h.Handler(func(c echo.Context) error {
		run, err := h.Bulk.Get(c.Request().Context(), console.UserOf(c), c.Param("id"))
		if err != nil {
			return err
		}
		return c.JSON(http.StatusOK, run)
	})})
}

// Start starts a change of many objects as the user of the request, and redirects to its page.
func (h *Pages) Start(c echo.Context, run bulk.Run, do func(ctx context.Context, user governance.User, i int) error) error {
	id, err := h.Begin(c, run, do)
	if err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, urls.Bulk+"/"+id)
}

// Begin starts a change of many objects as the user of the request, and returns its ID.
func (h *Pages) Begin(c echo.Context, run bulk.Run, do func(ctx context.Context, user governance.User, i int) error) (string, error) {
	who := h.Session(c)
	as := func(ctx context.Context) (governance.User, error) {
		user, err := who(ctx)
		if errors.Is(err, session.ErrNotFound) || errors.Is(err, web.ErrToken) {
			return governance.User{}, &governance.Error{Kind: governance.Forbidden, Op: "change", Message: "Your session ended before its turn."}
		}
		return console.User(user), err
	}
	return h.Bulk.Start(c.Request().Context(), as, run, do)
}

// show answers GET /bulk/{id}.
func (h *Pages) show(c echo.Context) error {
	page, err := h.page(c.Request().Context(), console.UserOf(c), c.Param("id"))
	if err != nil {
		return err
	}
	page.Chrome = h.Chrome(c)
	page.Title = page.Heading
	page.Stream = urls.Bulk + "/" + c.Param("id") + "/events"
	return web.Render(c, http.StatusOK, bulkviews.Progress(page))
}

// events answers GET /bulk/{id}/events with the live part of the page.
func (h *Pages) events(s *web.Server) func(echo.Context) error {
	return func(c echo.Context) error {
		id, user := c.Param("id"), console.UserOf(c)
		if _, err := h.Bulk.Get(c.Request().Context(), user, id); err != nil {
			return err
		}
		return s.Stream(c, web.Part{Changed: every(refresh), Render: func(ctx context.Context) (templ.Component, error) {
			page, err := h.page(ctx, user, id)
			return bulkviews.ProgressLive(page), err
		}}, h.Frame(c))
	}
}

// every returns a function of web.Part.Changed that signals after each d.
func every(d time.Duration) func(context.Context) <-chan struct{} {
	return func(ctx context.Context) <-chan struct{} {
		changed := make(chan struct{}, 1)
		go func() {
			for governance.Sleep(ctx, d) == nil {
				select {
				case changed <- struct{}{}:
				default: // not rendered since the last
				}
			}
		}()
		return changed
	}
}

func (h *Pages) page(ctx context.Context, user governance.User, id string) (bulkviews.ProgressPage, error) {
	run, err := h.Bulk.Get(ctx, user, id)
	if err != nil {
		return bulkviews.ProgressPage{}, err
	}
	done, failed, left := run.Counts()
	page := bulkviews.ProgressPage{Heading: run.Title, BackURL: run.Back, Done: done, Failed: failed, All: len(run.Items)}
	lost := run.Lost(h.Now())
	switch {
	case run.Ended && failed == 0:
		page.Status = views.Status{Tone: "ok", Label: "Done", Text: fmt.Sprintf("All %s.", format.Thousands(int64(done)))}
	case run.Ended:
		page.Status = views.Status{Tone: "bad", Label: "Done in part", Text: fmt.Sprintf("%s done, %s not.", format.Thousands(int64(done)), format.Thousands(int64(failed)))}
	case lost:
		page.Status = views.Status{Tone: "bad", Label: "Interrupted", Text: fmt.Sprintf("The console that worked on it has stopped. %s done, %s not. Start it again for the rest.", format.Thousands(int64(done)), format.Thousands(int64(failed+left)))}
	default:
		page.Status = views.Status{Tone: "wait", Label: "In progress", Text: fmt.Sprintf("%s of %s.", format.Thousands(int64(done+failed)), format.Thousands(int64(len(run.Items))))}
	}
	for _, item := range run.Items {
		row := bulkviews.ProgressRow{Name: item.Name, Team: item.Team, URL: item.URL, Problem: item.Problem, Status: views.Status{Tone: "idle", Label: "Not started"}}
		switch {
		case item.Done:
			row.Status = views.Status{Tone: "ok", Label: "Done"}
		case item.Problem != "":
			row.Status = views.Status{Tone: "bad", Label: "Not done"}
		case lost:
			row.Status, row.Problem = views.Status{Tone: "bad", Label: "Not done"}, "The console stopped before its turn."
		}
		if row.Problem != "" { // what needs a person comes first
			page.Problems = append(page.Problems, row)
		} else {
			page.Rows = append(page.Rows, row)
		}
	}
	return page, nil
}
