package consoles

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"kuota.dev/kuota/governance/cluster/clustertest"
)

// StartPrometheus starts a Prometheus, which make prometheus unpacked, that scrapes what
// metrics returns each second. It returns its address, and ends with the test.
func StartPrometheus(t testing.TB, metrics func() string) string {
	t.Helper()
	exporter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, metrics()) }))
	t.Cleanup(exporter.Close)
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	must(t, os.WriteFile(config, fmt.Appendf(nil, "global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs: [{job_name: dcgm, static_configs: [{targets: [%s]}]}]\n", strings.TrimPrefix(exporter.URL, "http://")), 0o600))
	log, err := os.Create(filepath.Join(dir, "log"))
	must(t, err)
	command := exec.Command(filepath.Join(clustertest.Root(), ".local", "prometheus", "usr", "bin", "prometheus"), "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address=127.0.0.1:0")
	command.Stdout, command.Stderr = log, log
	must(t, StartChild(command, syscall.SIGTERM))
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	listening := regexp.MustCompile(`msg="Listening on" address=(\S+)`)
	var address string
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
		text, err := os.ReadFile(log.Name())
		if m := listening.FindSubmatch(text); m != nil {
			address = "http://" + string(m[1])
			return nil
		}
		return fmt.Errorf("no Prometheus listens (%v): %s", err, text)
	})
	return address
}
