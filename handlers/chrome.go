package handlers

import (
	"context"
	"fmt"
	"time"

	"kuota.dev/kuota/views"
	"kuota.dev/kuota/web"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
)

// Chrome is the frame of a page. Somebody who is not signed in is told nothing
// of the cluster.
func (h *Handlers) Chrome(c echo.Context) views.Chrome {
	user := web.UserOf(c)
	if user.Name == "" {
		return views.Chrome{}
	}
	chrome := views.Chrome{User: user.Name, SignOut: !user.Local, Cluster: h.clusterStatus(), Stream: "/events"}
	// A cluster that does not answer is not asked: nobody waits for a link.
	if chrome.Cluster.Reachable && h.Settings.CanView(c.Request().Context(), userOf(c)) {
		chrome.Settings = settingsURL
	}
	chrome.Trouble = h.trouble()
	return chrome
}

// trouble is a sentence about what keeps the whole console from working.
func (h *Handlers) trouble() string {
	if why := h.readOnly(); why != "" || h.Trouble == nil {
		return why
	}
	return h.Trouble()
}

// events answers GET /events: the frame's part that changes, for pages that
// have no stream of their own.
func (h *Handlers) events(s *web.Server) func(echo.Context) error {
	return func(c echo.Context) error {
		frame := h.frame(c)
		return s.Stream(c, web.Part{Render: frame}, frame)
	}
}

func (h *Handlers) clusterStatus() views.ClusterStatus {
	age, ok := h.Contact.Age(h.Now())
	status := views.ClusterStatus{Name: h.ClusterName, Reachable: ok}
	if ok || age > 0 {
		status.Age = shortAge(age)
	}
	return status
}

// frame renders what changes around every page.
func (h *Handlers) frame(c echo.Context) func(context.Context) (templ.Component, error) {
	settings := ""
	if h.Settings.CanView(c.Request().Context(), userOf(c)) {
		settings = settingsURL
	}
	return func(context.Context) (templ.Component, error) {
		return views.Frame(views.Chrome{Cluster: h.clusterStatus(), Trouble: h.trouble(), Settings: settings}), nil
	}
}

// shortAge writes a time span for people: 0.3 s, 12 s, 2 h 05 m, 3 d 04 h.
func shortAge(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	return duration(d)
}

// duration writes a time span in its two largest units.
func duration(d time.Duration) string {
	seconds := int64(max(0, d) / time.Second)
	switch {
	case seconds < 60:
		return fmt.Sprintf("%d s", seconds)
	case seconds < 3600:
		return fmt.Sprintf("%d m %02d s", seconds/60, seconds%60)
	case seconds < 86400:
		return fmt.Sprintf("%d h %02d m", seconds/3600, seconds/60%60)
	}
	return fmt.Sprintf("%d d %02d h", seconds/86400, seconds/3600%24)
}
