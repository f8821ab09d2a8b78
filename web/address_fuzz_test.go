package web

import (
	"net/url"
	"strings"
	"testing"
)

// The address after sign-in is on this console, also for browsers, which read a
// backslash as a slash and skip line breaks.
func FuzzLocalAddress(f *testing.F) {
	for _, seed := range []string{
		"", "/", "/me", "/me?a=b&c=%2F", "//evil.example", "///evil.example", `/\evil.example`, `\\evil.example`, "/%5cevil.example", "/%2fevil.example", "/%09/evil.example",
		"/\t/evil.example", "\t//evil.example", " //evil.example", "/\r\n/evil.example", "https://evil.example", "http:evil.example", "javascript:alert(1)", "/.//evil.example", "/..//evil.example",
		"/a/..//evil.example", "/@evil.example", "@evil.example", "//a@evil.example", "/?//evil.example", "/#//evil.example", "/;//evil.example", "/auth/login", "/%61uth/login", "/\x00", "/\xff", "/日本",
		"/\uff0fevil.example", "/\u2028/evil.example", "/%zz", "/?%zz", "?a", "/? a=b\\", "http://[::1]:namedport/", "/" + strings.Repeat("a", 2048), "/" + strings.Repeat("é", 900),
	} {
		f.Add(seed)
	}
	base, err := url.Parse("https://kuota.example/auth/callback")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := localAddress(text)
		if !strings.HasPrefix(got, "/") || strings.HasPrefix(got, "//") || strings.HasPrefix(got, `/\`) || strings.HasPrefix(got, "/auth/") {
			t.Errorf("%q leads to %q", text, got)
		}
		path, _, _ := strings.Cut(got, "?")
		if strings.ContainsFunc(got, func(r rune) bool { return r < ' ' || r == 0x7f }) || strings.ContainsAny(path, " \\") {
			t.Errorf("%q leads to %q, which browsers may read otherwise", text, got)
		}
		if to, err := base.Parse("/base" + got); err != nil || to.Host != base.Host || to.Scheme != base.Scheme || to.User != nil || !strings.HasPrefix(to.Path, "/base/") {
			t.Errorf("%q leads to %q, which is %v, %v", text, got, to, err)
		}
	})
}
