package handlers

import (
	"bytes"
	"encoding/csv"
	"net/http"
	"strconv"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/quota"

	"github.com/labstack/echo/v4"
)

const tasksCSVURL = "/tasks.csv"

// csvFile answers with a table that spreadsheets open.
func csvFile(c echo.Context, name string, rows [][]string) error {
	var text bytes.Buffer
	w := csv.NewWriter(&text)
	for _, row := range rows {
		for i := range row {
			row[i] = harmless(row[i])
		}
		if err := w.Write(row); err != nil {
			return &governance.Error{Op: "write CSV", Message: "The table cannot be written down.", Err: err}
		}
	}
	w.Flush()
	c.Response().Header().Set(echo.HeaderContentDisposition, `attachment; filename="`+name+`.csv"`)
	return c.Blob(http.StatusOK, "text/csv; charset=utf-8", text.Bytes())
}

// harmless keeps a spreadsheet from taking a text for a formula
// (https://owasp.org/www-community/attacks/CSV_Injection).
func harmless(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}

// tasksCSV answers GET /tasks.csv: all of a list of tasks.
func (h *Handlers) tasksCSV(c echo.Context) error {
	q := parseTaskQuery(c.QueryParams())
	q.All = true
	scope, err := h.Tasks.Scope(c.Request().Context(), userOf(c))
	if err != nil {
		return err
	}
	list, err := h.Tasks.ListWithin(c.Request().Context(), scope, q.Query, q.teams)
	if err != nil {
		return err
	}
	rows := [][]string{{"namespace", "kind", "name", "team", "status", "reason", "priority class", "priority", "place", "GPUs", "Neuron devices", "vCPU", "memory GiB", "pool", "submitted", "waited s", "ran s", "pre-emptions"}}
	now := h.Now()
	for _, t := range list.Items {
		r := t.Resources()
		place := ""
		if t.Place > 0 {
			place = strconv.Itoa(t.Place)
		}
		rows = append(rows, []string{
			t.Namespace, t.Kind, t.Name, t.Team, string(t.State), t.Reason, className(t.Class), strconv.Itoa(int(t.Priority)), place,
			quota.Number(catalog.GPU, r[catalog.GPU]), quota.Number(catalog.Neuron, r[catalog.Neuron]), quota.Number(catalog.CPU, r[catalog.CPU]), quota.Number(catalog.Memory, r[catalog.Memory]),
			strings.Join(t.Pools, " "), t.Submitted.UTC().Format(time.RFC3339), seconds(t.Waited(now)), seconds(t.Ran(now)), strconv.Itoa(int(t.Preemptions)),
		})
	}
	return csvFile(c, "tasks", rows)
}

func seconds(d time.Duration) string {
	return strconv.FormatInt(int64(d/time.Second), 10)
}
