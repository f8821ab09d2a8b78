package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestKnownReleasesAreReadable(t *testing.T) {
	if _, err := parseReleases(knownReleases); err != nil {
		t.Error(err)
	}
	for _, line := range []string{"etcd v1 linux/amd64 123 http://a", "etcd v1 linux/amd64", strings.Repeat("a ", 7)} {
		if _, err := parseReleases(line); err == nil {
			t.Errorf("%q is accepted", line)
		}
	}
}

// archive returns a .tar.gz archive of one file.
func archive(t *testing.T, name, content string) []byte {
	t.Helper()
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	files := tar.NewWriter(zipped)
	if err := files.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))}); err != nil {
		t.Fatal(err)
	}
	if _, err := files.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := files.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReleaseBinaries(t *testing.T) {
	packed := archive(t, "etcd-v3/etcd", "packed")
	served := map[string][]byte{"/plain": []byte("plain"), "/packed.tar.gz": packed}
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		body, found := served[r.URL.Path]
		if !found {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(body)
	}))
	t.Cleanup(server.Close)
	line := func(version, platform, path, member string, content []byte) string {
		return fmt.Sprintf("etcd %s %s %x %s%s %s", version, platform, sha256.Sum256(content), server.URL, path, member)
	}
	platform := runtime.GOOS + "/" + runtime.GOARCH
	for name, tc := range map[string]struct {
		mode, line  string
		wantContent string // of the program; empty if it has to be built
		wantError   string
	}{
		"plain":                       {binariesDownload, line("v3.6.8", platform, "/plain", "", []byte("plain")), "plain", ""},
		"in an archive":               {binariesAuto, line("v3.6.8", platform, "/packed.tar.gz", "etcd-v3/etcd", packed), "packed", ""},
		"not in the archive":          {binariesDownload, line("v3.6.8", platform, "/packed.tar.gz", "etcd", packed), "", "the archive has no etcd"},
		"only to be built":            {binariesBuild, line("v3.6.8", platform, "/plain", "", []byte("plain")), "", ""},
		"another version":             {binariesAuto, line("v3.6.9", platform, "/plain", "", []byte("plain")), "", ""},
		"another version, required":   {binariesDownload, line("v3.6.9", platform, "/plain", "", []byte("plain")), "", "no checksum of etcd v3.6.8"},
		"another platform":            {binariesAuto, line("v3.6.8", "plan9/mips", "/plain", "", []byte("plain")), "", ""},
		"wrong checksum":              {binariesAuto, line("v3.6.8", platform, "/plain", "", []byte("what was published")), "", "wrong checksum"},
		"not served":                  {binariesAuto, line("v3.6.8", platform, "/none", "", []byte("plain")), "", ""},
		"not served, and is required": {binariesDownload, line("v3.6.8", platform, "/none", "", []byte("plain")), "", "404"},
		"unknown, and is required":    {binariesDownload, "", "", "no checksum"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("XDG_CACHE_HOME", t.TempDir())
			store, err := openStore()
			if err != nil {
				t.Fatal(err)
			}
			folder := t.TempDir()
			writeFiles(t, folder, map[string]string{"releases.txt": tc.line, "go.mod": "module a\n\nrequire (\n\tgo.etcd.io/etcd/server/v3 v3.6.8\n\tgo.etcd.io/etcd v1.0.0\n)\n"})
			p := programs{module: folder}
			if p.downloads, err = newDownloads(tc.mode, filepath.Join(folder, "releases.txt")); err != nil {
				t.Fatal(err)
			}
			to := filepath.Join(t.TempDir(), "etcd")
			etcd := tool{"etcd", "go.etcd.io/etcd/server/v3"}
			downloaded, err := p.download(t.Context(), store, etcd, to)
			if (err != nil) != (tc.wantError != "") || err != nil && !strings.Contains(err.Error(), tc.wantError) {
				t.Fatalf("got error %v, want %q", err, tc.wantError)
			}
			content, _ := os.ReadFile(to)
			if downloaded != (tc.wantContent != "") || string(content) != tc.wantContent {
				t.Fatalf("downloaded %t with content %q, want %q", downloaded, content, tc.wantContent)
			}
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(to), ".new-*")); len(left) > 0 {
				t.Errorf("the download left %v", left)
			}
			if !downloaded {
				return
			}
			before := requests
			if again, err := p.download(t.Context(), store, etcd, to); !again || err != nil || requests != before {
				t.Errorf("again: downloaded %t, error %v, %d requests; want it from the store", again, err, requests-before)
			}
		})
	}
}
