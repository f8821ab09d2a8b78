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

// Prometheus is one that make prometheus unpacked.
type Prometheus struct {
	Address string // such as http://127.0.0.1:40001
	data    string // folder
}

// StartPrometheus starts a Prometheus that scrapes what metrics returns each second. It ends
// with the test.
func StartPrometheus(t testing.TB, metrics func() string) Prometheus {
	t.Helper()
	exporter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, metrics()) }))
	t.Cleanup(exporter.Close)
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	must(t, os.WriteFile(config, fmt.Appendf(nil, "global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs: [{job_name: dcgm, static_configs: [{targets: [%s]}]}]\n", strings.TrimPrefix(exporter.URL, "http://")), 0o600))
	log, err := os.Create(filepath.Join(dir, "log"))
	must(t, err)
	data := filepath.Join(dir, "data")
	command := exec.Command(program("prometheus"), "--config.file="+config, "--storage.tsdb.path="+data, "--web.listen-address=127.0.0.1:0")
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
	return Prometheus{address, data}
}

func program(name string) string {
	return filepath.Join(clustertest.Root(), ".local", "prometheus", "usr", "bin", name)
}

// Backfill adds earlier series, in the format of OpenMetrics. Prometheus has them within a minute.
func (p Prometheus) Backfill(t testing.TB, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "earlier")
	must(t, os.WriteFile(file, []byte(text), 0o600))
	if out, err := exec.Command(program("promtool"), "tsdb", "create-blocks-from", "openmetrics", file, p.data).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
