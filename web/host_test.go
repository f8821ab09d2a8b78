package web

import (
	"log/slog"
	"testing"

	"kuota.dev/kuota/views/htmlcheck"
)

// The page for when rendering fails has the base path too.
func TestFallbackUnderBase(t *testing.T) {
	pages, err := newErrorPages("/apps/kuota", nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	htmlcheck.UnderBase(t, htmlcheck.Parse(t, string(pages.fallback)), "/apps/kuota")
}

func TestDefaultPort(t *testing.T) {
	for host, want := range map[string]string{
		"kuota.example.com": "kuota.example.com", "kuota.example.com:443": "kuota.example.com", "kuota.example.com:80": "kuota.example.com:80",
		"kuota.example.com:8443": "kuota.example.com:8443", "[::1]:443": "[::1]", "": "",
	} {
		if got := withoutDefaultPort(host, "https"); got != want {
			t.Errorf("%s over https is %s, want %s", host, got, want)
		}
	}
	if got := withoutDefaultPort("kuota.example.com:80", "http"); got != "kuota.example.com" {
		t.Errorf("port 80 over http is %s", got)
	}
}
