package console

import (
	"archive/zip"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// maxExported is how many tables one export can have.
const maxExported = 16

// export answers GET /export.zip?table=…&table=…: CSV files of a page, each as its own
// address answers it to the user, in one file. One that cannot be read is named in missing.txt.
func (c *Console) export(ctx echo.Context) error {
	var tables []*url.URL
	for _, address := range ctx.QueryParams()["table"] {
		table, err := url.Parse(address)
		if err != nil || table.Host != "" || !strings.HasPrefix(table.Path, "/") || !strings.HasSuffix(table.Path, ".csv") {
			return echo.ErrNotFound
		}
		tables = append(tables, table)
	}
	if len(tables) == 0 || len(tables) > maxExported {
		return echo.ErrNotFound
	}
	reader, writer := io.Pipe()
	defer reader.Close()
	request, server := ctx.Request(), ctx.Echo()
	go func() { writer.CloseWithError(writeZip(server, request, tables, writer)) }()
	return web.SendFile(ctx, "kuota-"+time.Now().UTC().Format("2006-01-02-1504")+".zip", reader)
}

// writeZip writes the tables to a zip file, with requests of the same user.
func writeZip(server http.Handler, request *http.Request, tables []*url.URL, to io.Writer) error {
	archive := zip.NewWriter(to)
	var names, missing []string
	for _, table := range tables {
		name := strings.ReplaceAll(strings.Trim(table.Path, "/"), "/", "-")
		for n := 2; slices.Contains(names, name); n++ {
			name = fmt.Sprintf("%s-%d.csv", strings.TrimSuffix(name, ".csv"), n)
		}
		names = append(names, name)
		r := request.Clone(request.Context())
		r.URL, r.RequestURI, r.Form = table, table.RequestURI(), nil
		r.Header.Del(echo.HeaderAcceptEncoding)
		file := &zipped{archive: archive, name: name, header: http.Header{}}
		server.ServeHTTP(file, r)
		if file.err != nil {
			return file.err
		}
		if file.into == nil {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		into, err := create(archive, "missing.txt")
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(into, "These tables could not be read: %s\n", strings.Join(missing, ", ")); err != nil {
			return err
		}
	}
	return archive.Close()
}

// create adds a file to an archive, with the present time.
func create(archive *zip.Writer, name string) (io.Writer, error) {
	return archive.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: time.Now()})
}

// zipped is a response that becomes a file of an archive, if it is one of success.
type zipped struct {
	archive *zip.Writer
	name    string
	header  http.Header
	status  int
	into    io.Writer
	err     error
}

func (z *zipped) Header() http.Header { return z.header }

func (z *zipped) WriteHeader(status int) {
	if z.status != 0 {
		return
	}
	if z.status = status; status == http.StatusOK {
		z.into, z.err = create(z.archive, z.name)
	}
}

func (z *zipped) Write(text []byte) (int, error) {
	z.WriteHeader(http.StatusOK)
	if z.into == nil || z.err != nil {
		return len(text), z.err
	}
	n, err := z.into.Write(text)
	z.err = err
	return n, err
}

// SetWriteDeadline and Flush are those of the response with the archive.
func (z *zipped) SetWriteDeadline(time.Time) error { return nil }

// Flush implements http.Flusher.
func (z *zipped) Flush() {}
