package web

import (
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
)

// Render responds with a component. It renders to a buffer first, so that an
// error page can still be sent if the template fails.
func Render(c echo.Context, status int, component templ.Component) error {
	buffer := templ.GetBuffer()
	defer templ.ReleaseBuffer(buffer)
	if err := component.Render(c.Request().Context(), buffer); err != nil {
		return err
	}
	return c.HTMLBlob(status, buffer.Bytes())
}

// WantsFragment reports whether the page's script requested the part that
// changes, and not a browser the page.
func WantsFragment(c echo.Context) bool {
	return c.Request().Header.Get(echo.HeaderXRequestedWith) == "fetch"
}

// fileBuffer is how much of a file SendFile keeps in memory.
const fileBuffer = 32 << 10

// brokenFile is why a file could not be read to its end. It breaks the connection, and is
// logged.
type brokenFile struct{ error }

// SendFile answers with a file of text, or of CSV, JSON or zip if its name ends so, that browsers save,
// whatever its length. A file that cannot be read to its end is a brokenFile, which the browser
// reports.
func SendFile(c echo.Context, name string, from io.Reader) error {
	response := c.Response()
	kind := "text/plain; charset=utf-8"
	switch {
	case strings.HasSuffix(name, ".csv"):
		kind = "text/csv; charset=utf-8"
	case strings.HasSuffix(name, ".json"):
		kind = "application/json"
	case strings.HasSuffix(name, ".zip"):
		kind = "application/zip"
	}
	response.Header().Set(echo.HeaderContentType, kind)
	response.Header().Set(echo.HeaderContentDisposition, mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	return send(c, from, false)
}

// SendText answers a program with text that is read as it is written, such as a log.
func SendText(c echo.Context, from io.Reader) error {
	c.Response().Header().Set(echo.HeaderContentType, "text/plain; charset=utf-8")
	return send(c, from, true)
}

// send sends what it reads: at once, or when enough is there.
func send(c echo.Context, from io.Reader, atOnce bool) error {
	response := c.Response()
	control := http.NewResponseController(response)
	response.WriteHeader(http.StatusOK)
	buffer, begun := make([]byte, fileBuffer), false
	rest := func() error { // a deadline that passes while nothing is written ends a stream of HTTP/2
		if !atOnce {
			return nil
		}
		response.Flush()
		return control.SetWriteDeadline(time.Time{})
	}
	if err := rest(); err != nil {
		return err
	}
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if err := control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
				return err
			}
			if _, err := response.Write(buffer[:n]); err != nil {
				return err // the client disconnected, or does not read
			}
			if !begun { // a small file can take long to compute
				begun = true
				response.Flush()
			}
			if err := rest(); err != nil {
				return err
			}
		}
		switch {
		case err == io.EOF: //nolint:errorlint // readers return it as it is
			return control.SetWriteDeadline(time.Now().Add(writeTimeout)) // for what is buffered
		case err != nil:
			return brokenFile{err}
		}
	}
}
