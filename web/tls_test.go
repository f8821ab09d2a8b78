package web_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/web/webtest"
)

func TestTLSVersions(t *testing.T) {
	t.Parallel()
	c := start(t, webtest.Setup{TLS: true})
	address := strings.TrimPrefix(c.URL, "https://")
	for name, tc := range map[string]struct {
		version uint16
		want    bool
	}{
		"1.0": {tls.VersionTLS10, false}, "1.1": {tls.VersionTLS11, false}, "1.2": {tls.VersionTLS12, true}, "1.3": {tls.VersionTLS13, true},
	} {
		connection, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: tc.version})
		if (err == nil) != tc.want {
			t.Errorf("TLS %s: %v", name, err)
		}
		if err == nil {
			connection.Close()
		}
	}
	if statuses, text := raw(t, "http://"+address, "GET /me HTTP/1.1\r\nHost: "+address+"\r\n\r\n"); len(statuses) != 1 || statuses[0] != http.StatusBadRequest {
		t.Errorf("without TLS: %v, %s", statuses, text)
	}
}

// A renewed certificate is served from the next connection on.
func TestCertificateChanges(t *testing.T) {
	t.Parallel()
	c := start(t, webtest.Setup{TLS: true})
	for serial := int64(10); serial < 13; serial++ {
		c.SetCertificate(webtest.NewCertificate(t, serial))
		connection, err := tls.Dial("tcp", strings.TrimPrefix(c.URL, "https://"), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		if got := connection.ConnectionState().PeerCertificates[0].SerialNumber.Int64(); got != serial {
			t.Errorf("the certificate is number %d, want %d", got, serial)
		}
	}
}

func TestStrictTransportSecurity(t *testing.T) {
	t.Parallel()
	for scheme, want := range map[string]string{"https": "max-age=31536000", "http": ""} {
		c := start(t, webtest.Setup{TLS: scheme == "https"})
		b := c.Browser(t).SignIn()
		for _, path := range []string{"/me", "/nowhere", "/panic", "/static/favicon.svg", "/auth/login", "/auth/signed-out"} {
			if got := b.Ask(http.MethodGet, path, "").Header.Get("Strict-Transport-Security"); got != want {
				t.Errorf("%s %s: %q, want %q", scheme, path, got, want)
			}
		}
		if got := b.Ask(http.MethodGet, "/me", "", "Host", "evil.example").Header.Get("Strict-Transport-Security"); got != want {
			t.Errorf("%s of another host: %q, want %q", scheme, got, want)
		}
	}
}

// Streams over HTTP/2, which share one connection, end with the server as well.
func TestStreamsOfHTTP2EndWithTheServer(t *testing.T) {
	t.Parallel()
	c := start(t, webtest.Setup{TLS: true})
	b := c.Browser(t).SignIn()
	var streams []*http.Response
	for range 2 {
		stream := b.Stream(http.MethodGet, "/me/events")
		defer stream.Body.Close()
		if stream.ProtoMajor != 2 || stream.StatusCode != http.StatusOK {
			t.Fatalf("the stream is %s, %s", stream.Proto, stream.Status)
		}
		if _, err := io.ReadFull(stream.Body, make([]byte, len("event: fragment\ndata: ada@example.com"))); err != nil {
			t.Fatal(err)
		}
		streams = append(streams, stream)
	}
	if answer := b.Open("/me"); answer.ProtoMajor != 2 || answer.StatusCode != http.StatusOK {
		t.Errorf("a page beside them is %s, %s", answer.Proto, answer.Status)
	}
	if took := c.Stop(); took > 30*time.Second {
		t.Errorf("stopping took %s with two streams open", took)
	}
	for _, stream := range streams {
		if _, err := io.ReadAll(stream.Body); err != nil {
			t.Errorf("a stream broke off rather than ended: %v", err)
		}
	}
}
