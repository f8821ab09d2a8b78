package static

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

// Prefix is the path that every address starts with.
const Prefix = "/static/"

//go:embed css js vendor/*.js vendor/*.css favicon.svg
var files embed.FS

// asset is one embedded file, ready to be sent.
type asset struct {
	content     []byte
	contentType string
	version     string // the first 12 hex digits of the content's SHA-256
}

var assets = load(files)

// URL is the address of an embedded file, such as "css/kuota.css". It changes
// with the content, so that browsers may keep what they fetched for ever. A
// name that does not exist is a mistake in the program, and panics.
func URL(name string) string {
	a, ok := assets[name]
	if !ok {
		panic("static: no file " + name)
	}
	return Prefix + name + "?v=" + a.version
}

// Handler serves the embedded files below [Prefix], which is part of the
// request's path. An address made by [URL] may be cached for ever; any other
// is asked for again each time.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, ok := strings.CutPrefix(r.URL.Path, Prefix)
		a, found := assets[name]
		if !ok || !found {
			http.NotFound(w, r)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
			return
		}
		h := w.Header()
		h.Set("Content-Type", a.contentType)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("ETag", `"`+a.version+`"`)
		h.Set("Cache-Control", "no-cache")
		if r.URL.Query().Get("v") == a.version {
			h.Set("Cache-Control", "public, max-age=31536000, immutable")
		}
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(a.content))
	})
}

// load reads every embedded file once. The types are spelled out, as what the
// mime package answers depends on the machine.
func load(fsys fs.FS) map[string]asset {
	types := map[string]string{
		".css": "text/css; charset=utf-8",
		".js":  "text/javascript; charset=utf-8",
		".svg": "image/svg+xml",
	}
	loaded := map[string]asset{}
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		contentType, ok := types[path.Ext(name)]
		if !ok {
			panic("static: no content type for " + name)
		}
		sum := sha256.Sum256(content)
		loaded[name] = asset{content, contentType, hex.EncodeToString(sum[:])[:12]}
		return nil
	})
	if err != nil {
		panic("static: " + err.Error()) // cannot happen: the files are in the binary
	}
	return loaded
}
