package e2e_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/web/webtest"

	"github.com/playwright-community/playwright-go"
)

// TestTLS checks a console that serves TLS itself: users can sign in, their cookie is
// bound to the host, and the console serves a renewed certificate without a restart.
func TestTLS(t *testing.T) {
	t.Parallel()
	c := clustertest.Get(t)
	console(t)
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	write := func(serial int64) {
		certificate := webtest.NewCertificate(t, serial)
		der, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
		must(t, err)
		must(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
		must(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]}), 0o600))
	}
	write(1)
	address := replica(t, "tls", append(signInEnv(c), "KUOTA_TLS_CERT_FILE="+cert, "KUOTA_TLS_KEY_FILE="+key)...)
	if !strings.HasPrefix(address, "https://") {
		t.Fatalf("got address %s, want https", address)
	}
	page := visitSignedOut(t, playwright.BrowserNewContextOptions{BaseURL: playwright.String(address), IgnoreHttpsErrors: playwright.Bool(true)})
	open(t, page, "/tasks")
	signInBrowser(t, page, "admin")
	must(t, expect.Page(page).ToHaveURL(regexp.MustCompile("^"+address+"/tasks")))
	must(t, expect.Locator(page.Locator("#cluster-status")).ToContainText("old"))
	cookies, err := page.Context().Cookies(address)
	must(t, err)
	found := false
	for _, cookie := range cookies {
		if cookie.Name == "__Host-kuota" {
			found = cookie.Secure && cookie.HttpOnly && cookie.Path == "/"
		}
	}
	if !found {
		t.Errorf("got cookies %+v, want a secure __Host-kuota", cookies)
	}

	served := func() int64 {
		connection, err := tls.DialWithDialer(&net.Dialer{Timeout: time.Second}, "tcp", strings.TrimPrefix(address, "https://"), &tls.Config{InsecureSkipVerify: true})
		must(t, err)
		defer connection.Close()
		return connection.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	if served() != 1 {
		t.Errorf("got certificate %d, want 1", served())
	}
	write(2)
	for began := time.Now(); served() != 2; time.Sleep(50 * time.Millisecond) {
		if time.Since(began) > 20*time.Second {
			t.Fatal("got certificate 1 after 20s, want 2")
		}
	}
}
