package console

import (
	"bytes"
	"encoding/csv"
	"net/http"
	"strings"

	"kuota.dev/kuota/governance"

	"github.com/labstack/echo/v4"
)

// CSVFile answers with a table as a CSV file.
func CSVFile(c echo.Context, name string, rows [][]string) error {
	var text bytes.Buffer
	w := csv.NewWriter(&text)
	for _, row := range rows {
		for i := range row {
			row[i] = escapeFormula(row[i])
		}
		if err := w.Write(row); err != nil {
			return &governance.Error{Op: "write CSV", Message: "The table cannot be written as CSV.", Err: err}
		}
	}
	w.Flush()
	c.Response().Header().Set(echo.HeaderContentDisposition, `attachment; filename="`+name+`.csv"`)
	return c.Blob(http.StatusOK, "text/csv; charset=utf-8", text.Bytes())
}

// escapeFormula prevents a spreadsheet from reading a text as a formula
// (https://owasp.org/www-community/attacks/CSV_Injection).
func escapeFormula(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
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
