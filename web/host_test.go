package web

import "testing"

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
