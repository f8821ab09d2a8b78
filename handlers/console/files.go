package console

import (
	"bytes"
	"encoding/csv"
	"net/http"
	"regexp"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// CSVFile answers with a table as a CSV file. With ?bom=1 it begins with a byte order
// mark, without which Excel takes UTF-8 for an older encoding.
func CSVFile(c echo.Context, name string, rows [][]string) error {
	var file csvRows
	file.mark(c)
	if err := file.add(rows); err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderContentDisposition, `attachment; filename="`+name+`.csv"`)
	return c.Blob(http.StatusOK, "text/csv; charset=utf-8", file.text.Bytes())
}

// CSVStream is CSVFile for a table of any length, a batch of rows at a time. next returns
// the next batch, and none at the end. An error of the first batch is returned; a later
// one breaks the connection, so that no reader takes a part for the whole.
func CSVStream(c echo.Context, name string, head []string, next func() ([][]string, error)) error {
	first, err := next()
	if err != nil {
		return err
	}
	rows := &csvRows{next: next, ended: len(first) == 0}
	rows.mark(c)
	if err := rows.add(append([][]string{head}, first...)); err != nil {
		return err
	}
	return web.SendFile(c, name+".csv", rows)
}

// csvRows reads batches of rows as CSV.
type csvRows struct {
	next  func() ([][]string, error)
	text  bytes.Buffer // of rows that were not read yet
	ended bool
}

func (r *csvRows) mark(c echo.Context) {
	if c.QueryParam("bom") == "1" {
		r.text.WriteString("\ufeff")
	}
}

func (r *csvRows) add(rows [][]string) error {
	w := csv.NewWriter(&r.text)
	for _, row := range rows {
		for i := range row {
			row[i] = escapeFormula(row[i])
		}
		if err := w.Write(row); err != nil {
			return &governance.Error{Op: "write CSV", Message: "The table cannot be written as CSV.", Err: err}
		}
	}
	w.Flush()
	return nil
}

// Read implements io.Reader.
func (r *csvRows) Read(into []byte) (int, error) {
	if r.text.Len() == 0 && !r.ended {
		rows, err := r.next()
		if err != nil {
			return 0, err
		}
		r.ended = len(rows) == 0
		if err := r.add(rows); err != nil {
			return 0, err
		}
	}
	return r.text.Read(into)
}

var negative = regexp.MustCompile(`^-[0-9]+(\.[0-9]+)?$`)

// escapeFormula prevents a spreadsheet from reading a text as a formula
// (https://owasp.org/www-community/attacks/CSV_Injection). A negative number is none.
func escapeFormula(text string) string {
	if text != "" && !negative.MatchString(text) && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}

// YAMLFile answers with a file that browsers save. name must be safe in a header:
// that of a team, or a constant.
func YAMLFile(c echo.Context, name, text string) error {
	c.Response().Header().Set(echo.HeaderContentDisposition, `attachment; filename="`+name+`.yaml"`)
	return c.Blob(http.StatusOK, "application/yaml; charset=utf-8", []byte(text))
}
