package activity

import (
	"net/http"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/handlers/tasks"

	"github.com/labstack/echo/v4"
)

// activityAnswer is the answer of GET /activity.json.
type activityAnswer struct {
	Entries []entryJSON `json:"entries"`        // the latest first
	Next    string      `json:"next,omitempty"` // the value of before= for older entries
}

type entryJSON struct {
	At        time.Time `json:"at"`
	ID        string    `json:"id"`
	Actor     string    `json:"actor,omitempty"` // absent for controllers, and if unknown
	Source    string    `json:"source"`
	Address   string    `json:"address,omitempty"`
	Action    string    `json:"action"`
	Outcome   string    `json:"outcome"`
	Kind      string    `json:"kind"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	UID       string    `json:"uid,omitempty"`
	Team      string    `json:"team,omitempty"`
	Changes   []string  `json:"changes,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	Error     string    `json:"error,omitempty"`
}

// openFile is open for a file, which cannot show why it has no rows.
func (h *Pages) openFile(c echo.Context, scope access.Scope, q *query) (*reader, error) {
	r, _, err := h.open(c, scope, q)
	switch {
	case err != nil:
		return nil, err
	case h.History == nil:
		return nil, &governance.Error{Kind: governance.NotFound, Op: "list activity", Message: tasks.NoHistory}
	case q.problem != "":
		return nil, &governance.Error{Kind: governance.Invalid, Op: "list activity", Message: q.problem}
	}
	return r, nil
}

// activityJSON answers GET /activity.json: the rows of one page of the list.
func (h *Pages) activityJSON(c echo.Context, scope access.Scope) error {
	q := parse(c.QueryParams())
	r, err := h.openFile(c, scope, &q)
	if err != nil {
		return err
	}
	found, rest, err := r.read(c.Request().Context(), q.ActivityQuery, pageSize)
	if err != nil {
		return err
	}
	answer := activityAnswer{Entries: []entryJSON{}}
	for _, e := range found {
		answer.Entries = append(answer.Entries, entryJSON{
			At: e.At.UTC(), ID: e.ID, Actor: e.Actor, Source: string(e.Source), Address: e.Address, Action: e.Action, Outcome: string(e.Outcome),
			Kind: e.Kind, Namespace: e.Namespace, Name: e.Name, UID: e.UID, Team: e.Team, Changes: e.Changes, Reason: e.Reason, Error: e.Error,
		})
	}
	if rest != nil {
		answer.Next = cursor(*rest.Before)
	}
	return c.JSON(http.StatusOK, answer)
}
