package web_test

import (
	"slices"
	"strings"
	"testing"

	"kuota.dev/kuota/web/webtest"
)

// Grafana served files for paths with .. (CVE-2021-43798). No spelling of a path
// leads to a page or file that the path does not name.
func TestOddPaths(t *testing.T) {
	t.Parallel()
	c := start(t, webtest.Setup{})
	own := "Host: " + strings.TrimPrefix(c.URL, "http://") + "\r\nConnection: close\r\n"
	someone := own + "Cookie: kuota=" + c.Browser(t).SignIn().Cookie("kuota").Value + "\r\n"
	if statuses, text := raw(t, c.URL, "GET /me HTTP/1.1\r\n"+someone+"\r\n"); !slices.Equal(statuses, []int{200}) || !strings.Contains(text, "ada@example.com of") {
		t.Fatalf("the plain page is %v: %s", statuses, text)
	}
	if statuses, text := raw(t, c.URL, "GET "+c.URL+"/me HTTP/1.1\r\n"+someone+"\r\n"); !slices.Equal(statuses, []int{200}) || !strings.Contains(text, "ada@example.com of") {
		t.Errorf("the page by its whole address is %v: %s", statuses, text)
	}
	for _, target := range []string{
		"/static/..%2f..%2fetc/passwd", "/static/../../../../etc/passwd", "/static/%2e%2e/%2e%2e/etc/passwd", "/static/..%252f..%252fetc/passwd",
		"/static/%2e%2e%2f%2e%2e%2fetc%2fpasswd", "/static/....//....//etc/passwd", "/static/..;/..;/etc/passwd", "/static/%c0%ae%c0%ae/etc/passwd",
		"/static/..%00/etc/passwd", `/static/..\..\etc\passwd`, "/static/..%5c..%5cetc%5cpasswd", "/static//etc/passwd", "/static/%2fetc%2fpasswd",
		"/static/file:///etc/passwd", "/static/css/../../web/server.go", "/static/static.go", "/static/vendor/SHA256SUMS", "/static/.", "/static/", "/static",
		"/static/css", "/static/css/", "/static/css/kuota.css.", "/static/css/kuota.css/", "/static/css/kuota.css%00", "/static/css/kuota.css%20", "/static/css/kuota.css::$DATA",
		"//static/css/kuota.css", "/static//css/kuota.css", "/static/./css/kuota.css", "/STATIC/css/kuota.css", `/static\css\kuota.css`, "/static/css%2f..%2fcss%2fkuota.css",
		"/static/../me", "/static/..%2fme", "/open/../me", "/open/..%2fme", "/open%2f..%2fme", "/auth/signed-out/../../me", "/auth/signed-out%2f..%2f..%2fme", "/./me", "//me", "/me/",
		"/me.", "/me..", "/me%00", "/me%20", "/me%0a", "/me%2f", "/me%3f", "/me%23", "/me;a=b", "/me;/static/favicon.svg", "/me/static/favicon.svg", "/me/..;/open", "/ME", "/%6de", "/m%65",
		"/%6d%65", "/me.json", "/me.css", "/me/favicon.svg", "/*", "/:path", "/{path}", "/me*", "/%", "/%zz", "/%u002e", "/?%zz", "/\xff\xfe", "/日本", "/<script>alert(1)</script>",
		"/" + strings.Repeat("a", 16_000), "/" + strings.Repeat("a/", 8_000), "/" + strings.Repeat("../", 5_000) + "etc/passwd", "/static/" + strings.Repeat("%2e%2e%2f", 1_000) + "etc/passwd",
		"/" + strings.Repeat("a", 64_000), "/?" + strings.Repeat("a=b&", 16_000), "me", "../me", "?", "*", "http://evil.example/me", "http://evil.example@127.0.0.1/me", "https://evil.example/",
		"file:///etc/passwd", "http://", "://me", "/me HTTP/1.1 /open", "/debug/pprof/", "/.git/config", "/.env", "/metrics", "/api/v1/secrets", "/server-status",
	} {
		for who, headers := range map[string]string{"a user": someone, "a stranger": own + "Accept: text/html\r\n"} {
			statuses, text := raw(t, c.URL, "GET "+target+" HTTP/1.1\r\n"+headers+"\r\n")
			allowed := []int{400, 404, 421, 431}
			if who == "a stranger" {
				allowed = append(allowed, 303, 401)
			}
			if len(statuses) != 1 || !slices.Contains(allowed, statuses[0]) {
				t.Errorf("%.80q for %s: %v: %.200s", target, who, statuses, text)
			}
			for _, foreign := range []string{"root:", "package ", "groups", "--kuota", "<script>alert", "evil"} {
				if _, body, _ := strings.Cut(text, "\r\n\r\n"); strings.Contains(body, foreign) {
					t.Errorf("%.80q for %s: the answer has %q", target, who, foreign)
				}
			}
		}
	}
}
