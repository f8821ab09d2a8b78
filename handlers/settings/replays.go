package settings

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/kueue/simulate/live"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/urls"
	settingsviews "kuota.dev/kuota/views/settings"

	"github.com/labstack/echo/v4"
)

// replayLinks returns the links to the kept snapshots, the latest first.
func (h *Pages) replayLinks() (list []settingsviews.SettingsReplay) {
	if h.Replays == nil {
		return nil
	}
	for _, r := range h.Replays() {
		list = append(list, settingsviews.SettingsReplay{Address: urls.Replay(r.ID), ID: r.ID, Constraint: r.Constraint, At: r.Time.UTC().Format(time.DateTime) + " UTC", Size: fmt.Sprintf("%d kB", (len(r.Data)+999)/1000)})
	}
	return list
}

// replay answers GET /settings/replays/:replay with a file for kuota simulate. Only
// those who may open the settings get it.
func (h *Pages) replay(c echo.Context) error {
	notFound := &governance.Error{Kind: governance.NotFound, Op: "read replay", Message: "Page not found, or you do not have access."}
	if h.Replays == nil || !h.Settings.CanView(c.Request().Context(), console.UserOf(c)) {
		return notFound
	}
	list := h.Replays()
	i := slices.IndexFunc(list, func(r live.Replay) bool { return r.ID == c.Param("replay") })
	if i < 0 {
		return notFound
	}
	c.Response().Header().Set(echo.HeaderContentDisposition, `attachment; filename="snapshot-`+list[i].ID+`.json.gz"`)
	return c.Blob(http.StatusOK, "application/gzip", list[i].Data)
}
