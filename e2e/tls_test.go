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

// A console that serves TLS itself: people sign in, their cookies are bound to
// it, and a renewed certificate is served without a restart.
func TestTLS(t *testing.T) {
	t.Parallel()
	c := clustertest.Get(t)
	console(t)
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	write := func(serial int64) {
		made := webtest.NewCertificate(t, serial)
		der, err := x509.MarshalPKCS8PrivateKey(made.PrivateKey)
		must(t, err)
		must(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
		must(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made.Certificate[0]}), 0o600))
	}
	write(1)
	address := replica(t, "tls", append(signInEnv(c), "KUOTA_TLS_CERT_FILE="+cert, "KUOTA_TLS_KEY_FILE="+key)...)
	if !strings.HasPrefix(address, "https://") {
		t.Fatalf("it listens on %s", address)
	}
	page := visitAsNobody(t, playwright.BrowserNewContextOptions{BaseURL: playwright.String(address), IgnoreHttpsErrors: playwright.Bool(true)})
	open(t, page, "/tasks")
	signInBrowser(t, page, "admin")
	must(t, see.Page(page).ToHaveURL(regexp.MustCompile("^"+address+"/tasks")))
	must(t, see.Locator(page.Locator("#cluster-status")).ToContainText("old"))
	cookies, err := page.Context().Cookies(address)
	must(t, err)
	found := false
	for _, cookie := range cookies {
		if cookie.Name == "__Host-kuota" {
			found = cookie.Secure && cookie.HttpOnly && cookie.Path == "/"
		}
	}
	if !found {
		t.Errorf("the browser keeps %+v", cookies)
	}

	served := func() int64 {
		connection, err := tls.DialWithDialer(&net.Dialer{Timeout: time.Second}, "tcp", strings.TrimPrefix(address, "https://"), &tls.Config{InsecureSkipVerify: true})
		must(t, err)
		defer connection.Close()
		return connection.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	if served() != 1 {
		t.Errorf("it serves certificate %d", served())
	}
	write(2)
	for began := time.Now(); served() != 2; time.Sleep(50 * time.Millisecond) {
		if time.Since(began) > 20*time.Second {
			t.Fatal("the old certificate is still served")
		}
	}
}
