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

// Prefix is the prefix of all paths.
const Prefix = "/static/"

//go:embed css js vendor/*.js vendor/*.css favicon.svg
var files embed.FS

// asset is one embedded file.
type asset struct {
	content     []byte
	contentType string
	version     string // the first 12 hex digits of the content's SHA-256
}

var assets = load(files)

// URL returns the address of an embedded file, such as "css/kuota.css". It changes
// with the content, so that browsers can cache it forever. URL panics if the file
// does not exist.
func URL(name string) string {
	a, ok := assets[name]
	if !ok {
		panic("static: no file " + name)
	}
	return Prefix + name + "?v=" + a.version
}

// Handler serves the embedded files below [Prefix], which is part of the path of the
// request. Addresses from [URL] are cached forever; all others are revalidated.
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

// load reads all embedded files. The content types are explicit because those of
// package mime depend on the machine.
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
