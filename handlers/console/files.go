package console

import (
	"bytes"
	"encoding/csv"
	"io"
	"net/http"
	"regexp"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// PageParameter is the parameter of a list of the API that listing.Part reads.
var PageParameter = web.Parameter{Name: "page", About: "page of the list; without it, all"}

// CSVFile answers with a table as a CSV file. With ?bom=1 it begins with a byte order
// mark, without which Excel takes UTF-8 for an older encoding.
func CSVFile(c echo.Context, name string, rows [][]string) error {
	text, err := csvText(rows)
	if err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderContentDisposition, `attachment; filename="`+name+`.csv"`)
	return c.Blob(http.StatusOK, "text/csv; charset=utf-8", append(byteOrderMark(c), text...))
}

// CSVStream is CSVFile for a table of any length, a batch of rows at a time. next returns
// the next batch, and none at the end. An error of the first batch is returned; a later
// one breaks the connection, so that no reader takes a part for the whole.
func CSVStream(c echo.Context, name string, head []string, next func() ([][]string, error)) error {
	rows, err := next()
	if err != nil {
		return err
	}
	text, err := csvText(append([][]string{head}, rows...))
	if err != nil {
		return err
	}
	return web.SendFile(c, name+".csv", &Pieces{text: append(byteOrderMark(c), text...), Next: func() ([]byte, error) {
		if len(rows) > 0 {
			rows, err = next()
		}
		if len(rows) == 0 || err != nil {
			return nil, err
		}
		return csvText(rows)
	}})
}

// csvBatch is how many rows of CSVItems are in memory at a time.
const csvBatch = 1000

// CSVItems is CSVStream for items that exist, of which row returns one row each.
func CSVItems[T any](c echo.Context, name string, head []string, items []T, row func(T) []string) error {
	return CSVStream(c, name, head, func() ([][]string, error) {
		batch := items[:min(csvBatch, len(items))]
		items = items[len(batch):]
		rows := make([][]string, len(batch))
		for i := range batch {
			rows[i] = row(batch[i])
		}
		return rows, nil
	})
}

func byteOrderMark(c echo.Context) []byte {
	if c.QueryParam("bom") == "1" {
		return []byte("\ufeff")
	}
	return nil
}

func csvText(rows [][]string) ([]byte, error) {
	var text bytes.Buffer
	for _, row := range rows {
		for i := range row {
			row[i] = escapeFormula(row[i])
		}
	}
	if err := csv.NewWriter(&text).WriteAll(rows); err != nil {
		return nil, &governance.Error{Op: "write CSV", Message: "The table cannot be written as CSV.", Err: err}
	}
	return text.Bytes(), nil
}

// Pieces reads a file that Next returns piece by piece, and nothing at the end.
type Pieces struct {
	Next func() ([]byte, error)
	text []byte // that was not read yet
}

// Read implements io.Reader.
func (p *Pieces) Read(into []byte) (int, error) {
	if len(p.text) == 0 {
		text, err := p.Next()
		if err != nil {
			return 0, err
		}
		if len(text) == 0 {
			return 0, io.EOF
		}
		p.text = text
	}
	n := copy(into, p.text)
	p.text = p.text[n:]
	return n, nil
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
