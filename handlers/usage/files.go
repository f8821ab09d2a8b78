package usage

import (
	"encoding/json"
	"math/big"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/report/accounting"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/tasks"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// periods returns a function that returns the report of the next period; nil at the end.
// A file has all resources unless its address names one.
func (h *Pages) periods(c echo.Context, scope access.Scope) (*reader, func() (*accounting.Report, error), error) {
	r, err := h.open(c, scope)
	switch {
	case err != nil:
		return nil, nil, err
	case h.History == nil:
		return nil, nil, &governance.Error{Kind: governance.NotFound, Op: "report usage", Message: tasks.NoHistory}
	case r.problem() != "":
		return nil, nil, &governance.Error{Kind: governance.Invalid, Op: "report usage", Message: r.problem()}
	}
	for _, f := range r.choices {
		if f.Wrong != "" {
			return nil, nil, &governance.Error{Kind: governance.Invalid, Op: "report usage", Message: f.Label + ": " + f.Wrong}
		}
	}
	bounds, q := r.bounds(), r.visible(r.scope, r.teams, r.asked)
	return r, func() (*accounting.Report, error) {
		if len(bounds) < 2 || bounds[0].After(h.Now()) {
			return nil, nil
		}
		found, err := accounting.Reports(c.Request().Context(), h.History, q, bounds[:2], r.prices)
		if err != nil {
			return nil, unavailable(err)
		}
		bounds = bounds[1:]
		return &found[0], nil
	}, nil
}

// usageCSV answers GET /usage.csv: the lines of each period, and what is unknown of it.
func (h *Pages) usageCSV(c echo.Context, scope access.Scope) error {
	r, next, err := h.periods(c, scope)
	if err != nil {
		return err
	}
	if r.rows != "" {
		return r.taskCSV(c)
	}
	head := []string{"from", "to", "pool", "resource", "unit", "kind", "team", "seconds", "own s", "borrowed s", "growth s", "own growth s", "lent s", "hours", "cost", "currency", "department"}
	return console.CSVStream(c, "usage", head, func() (rows [][]string, err error) {
		report, err := next()
		if report == nil || err != nil {
			return nil, err
		}
		from, to := report.From.Format(time.RFC3339), report.To.Format(time.RFC3339)
		for _, l := range report.Lines {
			unit := accounting.Unit(l.Resource)
			seconds := func(amount *big.Int) string { return format.ExactSeconds(amount, unit) }
			row := []string{from, to, l.Pool, l.Resource, format.Unit(l.Resource), string(l.Kind), l.Team, seconds(l.Amount()), "", "", "", "", "", hours(l.Amount(), unit), "", "", r.departments.DepartmentOf(l.Team)}
			if l.Kind.Used() {
				row[8], row[9] = seconds(&l.Own), seconds(&l.Borrowed)
			}
			if l.Kind == accounting.Team {
				row[10], row[11], row[12] = seconds(&l.Growth), seconds(&l.OwnGrowth), seconds(&l.Lent)
			}
			if l.Cost != nil {
				row[14], row[15] = l.Cost.FloatString(6), r.prices.Currency
			}
			rows = append(rows, row)
		}
		unknown := big.NewInt(report.Unknown.Milliseconds())
		return append(rows, []string{from, to, "", "", "time", "unknown", "", format.ExactSeconds(unknown, 1), "", "", "", "", "", hours(unknown, 1), "", "", ""}), nil
	})
}

// hours formats an amount × ms for spreadsheets.
func hours(amount *big.Int, unit int64) string {
	return new(big.Rat).SetFrac(amount, big.NewInt(unit*time.Hour.Milliseconds())).FloatString(6)
}

// lineJSON is a line of a report. Numbers are exact, in seconds of one unit.
type lineJSON struct {
	Pool     string      `json:"pool"`
	Resource string      `json:"resource"`
	Unit     string      `json:"unit"`
	Kind     string      `json:"kind"`
	Team     string      `json:"team,omitempty"`
	Of       string      `json:"department,omitempty"` // that the team is in now
	Seconds  json.Number `json:"seconds"`
	Own      json.Number `json:"ownSeconds,omitempty"`
	Borrowed json.Number `json:"borrowedSeconds,omitempty"`
	Growth   json.Number `json:"growthSeconds,omitempty"`
	OwnGrown json.Number `json:"ownGrowthSeconds,omitempty"`
	Lent     json.Number `json:"lentSeconds,omitempty"`
	Cost     json.Number `json:"cost,omitempty"`
}

type reportJSON struct {
	From     time.Time   `json:"from"`
	To       time.Time   `json:"to"`
	Unknown  json.Number `json:"unknownSeconds"`
	Currency string      `json:"currency,omitempty"`
	Lines    []lineJSON  `json:"lines"`
}

// usageJSON answers GET /usage.json: an array of the reports of all periods, by teams or by
// the chosen rows of tasks.
func (h *Pages) usageJSON(c echo.Context, scope access.Scope) error {
	r, period, err := h.periods(c, scope)
	if err != nil {
		return err
	}
	item := func() (any, error) {
		report, err := period()
		if report == nil || err != nil {
			return nil, err
		}
		return r.reportJSON(report), nil
	}
	if r.rows != "" {
		item = r.taskJSON(c.Request().Context())
	}
	next, err := item()
	if err != nil {
		return err
	}
	before := "["
	return web.SendFile(c, "usage.json", &console.Pieces{Next: func() ([]byte, error) {
		switch {
		case before == "":
			return nil, nil
		case next == nil:
			end := strings.TrimSuffix(before, ",\n") + "]\n"
			before = ""
			return []byte(end), nil
		}
		text, err := json.Marshal(next)
		if err != nil {
			return nil, err
		}
		text = append([]byte(before), text...)
		before = ",\n"
		next, err = item()
		return text, err
	}})
}

func (r *reader) reportJSON(report *accounting.Report) reportJSON {
	answer := reportJSON{From: report.From, To: report.To, Unknown: json.Number(format.ExactSeconds(big.NewInt(report.Unknown.Milliseconds()), 1)), Currency: r.prices.Currency, Lines: []lineJSON{}}
	for _, l := range report.Lines {
		seconds := func(amount *big.Int) json.Number {
			return json.Number(format.ExactSeconds(amount, accounting.Unit(l.Resource)))
		}
		line := lineJSON{Pool: l.Pool, Resource: l.Resource, Unit: format.Unit(l.Resource), Kind: string(l.Kind), Team: l.Team, Of: r.departments.DepartmentOf(l.Team), Seconds: seconds(l.Amount())}
		if l.Kind.Used() {
			line.Own, line.Borrowed = seconds(&l.Own), seconds(&l.Borrowed)
		}
		if l.Kind == accounting.Team {
			line.Growth, line.OwnGrown, line.Lent = seconds(&l.Growth), seconds(&l.OwnGrowth), seconds(&l.Lent)
		}
		if l.Cost != nil {
			line.Cost = json.Number(l.Cost.FloatString(6))
		}
		answer.Lines = append(answer.Lines, line)
	}
	return answer
}
