package static

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEveryVendoredFileMatchesItsChecksum(t *testing.T) {
	sums, err := os.ReadFile("vendor/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(sums))
	for lines.Scan() {
		sum, name, ok := strings.Cut(lines.Text(), "  ")
		if !ok {
			t.Fatalf("SHA256SUMS: odd line %q", lines.Text())
		}
		want[name] = sum
	}

	entries, err := os.ReadDir("vendor")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Name() == "SHA256SUMS" {
			continue
		}
		content, err := os.ReadFile(filepath.Join("vendor", entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(content)
		if got := hex.EncodeToString(sum[:]); got != want[entry.Name()] {
			t.Errorf("%s has SHA-256 %s, SHA256SUMS says %q", entry.Name(), got, want[entry.Name()])
		}
		delete(want, entry.Name())
	}
	for name := range want {
		t.Errorf("SHA256SUMS names %s, which is not there", name)
	}
}

func TestURL(t *testing.T) {
	content, err := os.ReadFile("css/kuota.css")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	want := "/static/css/kuota.css?v=" + hex.EncodeToString(sum[:])[:12]
	if got := URL("css/kuota.css"); got != want {
		t.Errorf("URL = %q, want %q", got, want)
	}

	defer func() {
		if recover() == nil {
			t.Error("URL of an unknown name did not panic")
		}
	}()
	URL("css/none.css")
}

func TestHandler(t *testing.T) {
	const forever = "public, max-age=31536000, immutable"
	tests := map[string]struct {
		method, target, ifNoneMatch string
		wantStatus                  int
		wantType, wantCache         string
	}{
		"a stylesheet by its versioned address is kept for ever": {
			target: URL("css/kuota.css"), wantStatus: 200, wantType: "text/css; charset=utf-8", wantCache: forever},
		"a script by its versioned address is kept for ever": {
			target: URL("js/kuota.js"), wantStatus: 200, wantType: "text/javascript; charset=utf-8", wantCache: forever},
		"the icon is an SVG image": {
			target: URL("favicon.svg"), wantStatus: 200, wantType: "image/svg+xml", wantCache: forever},
		"an address without a version is asked for again": {
			target: "/static/css/kuota.css", wantStatus: 200, wantType: "text/css; charset=utf-8", wantCache: "no-cache"},
		"an address of another version is asked for again": {
			target: "/static/css/kuota.css?v=000000000000", wantStatus: 200, wantType: "text/css; charset=utf-8", wantCache: "no-cache"},
		"what the browser has already is not sent again": {
			target: "/static/css/kuota.css", ifNoneMatch: `"` + assets["css/kuota.css"].version + `"`, wantStatus: 304, wantCache: "no-cache"},
		"HEAD works":                      {method: http.MethodHead, target: "/static/js/kuota.js", wantStatus: 200, wantType: "text/javascript; charset=utf-8", wantCache: "no-cache"},
		"nothing can be written":          {method: http.MethodPost, target: "/static/js/kuota.js", wantStatus: 405},
		"an unknown name is not found":    {target: "/static/css/none.css", wantStatus: 404},
		"a directory is not listed":       {target: "/static/css/", wantStatus: 404},
		"a path elsewhere is not found":   {target: "/css/kuota.css", wantStatus: 404},
		"checksums stay in the workshop":  {target: "/static/vendor/SHA256SUMS", wantStatus: 404},
		"a path that climbs is not found": {target: "/static/css/../static.go", wantStatus: 404},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			method := test.method
			if method == "" {
				method = http.MethodGet
			}
			request := httptest.NewRequest(method, test.target, nil)
			if test.ifNoneMatch != "" {
				request.Header.Set("If-None-Match", test.ifNoneMatch)
			}
			recorder := httptest.NewRecorder()
			Handler().ServeHTTP(recorder, request)
			if recorder.Code != test.wantStatus {
				t.Fatalf("status %d, want %d", recorder.Code, test.wantStatus)
			}
			if test.wantType != "" && recorder.Header().Get("Content-Type") != test.wantType {
				t.Errorf("content type %q, want %q", recorder.Header().Get("Content-Type"), test.wantType)
			}
			if test.wantCache != "" && recorder.Header().Get("Cache-Control") != test.wantCache {
				t.Errorf("cache control %q, want %q", recorder.Header().Get("Cache-Control"), test.wantCache)
			}
		})
	}
}
