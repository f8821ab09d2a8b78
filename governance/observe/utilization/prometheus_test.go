package utilization

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// exporterDir is the environment variable with the folder that the exporter serves. It
// makes this test binary an exporter.
const exporterDir = "KUOTA_TEST_EXPORTER"

// TestMain runs the tests, or the exporter if a test started this process.
func TestMain(m *testing.M) {
	if dir := os.Getenv(exporterDir); dir != "" {
		serveMetrics(dir)
		return
	}
	os.Exit(m.Run())
}

var counter = regexp.MustCompile(`@([0-9.]+)`)

// serveMetrics serves the files of a folder. @0.25 in a file becomes a counter that
// increases by 0.25 per second.
func serveMetrics(dir string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr())
	started := time.Now()
	panic(http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := os.ReadFile(filepath.Join(dir, filepath.Base(r.URL.Path)))
		if err != nil {
			http.NotFound(w, r)
			return
		}
		now := time.Now()
		fmt.Fprint(w, counter.ReplaceAllStringFunc(string(text), func(rate string) string {
			var each float64
			fmt.Sscanf(rate, "@%f", &each)
			return fmt.Sprintf("%f %d", each*now.Sub(started).Seconds(), now.UnixMilli())
		}))
	})))
}

// start starts a program that ends with the test. It returns the first group of line
// in the first line of output that matches.
func start(t *testing.T, line *regexp.Regexp, env []string, name string, args ...string) string {
	t.Helper()
	command := exec.Command(name, args...)
	command.Env = append(os.Environ(), env...)
	output, err := command.StdoutPipe()
	must(t, err)
	command.Stderr = command.Stdout
	must(t, command.Start())
	found, ended := make(chan string, 1), make(chan struct{})
	t.Cleanup(func() {
		_ = command.Process.Kill()
		<-ended
		_ = command.Wait()
	})
	var printed strings.Builder
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(output); lines.Scan(); {
			if m := line.FindStringSubmatch(lines.Text()); m != nil {
				select {
				case found <- m[1]:
				default:
				}
			}
			if printed.Len() < 1<<16 {
				printed.WriteString(lines.Text() + "\n")
			}
		}
	}()
	select {
	case address := <-found:
		return address
	case <-ended:
		t.Fatalf("%s ended: %s", name, printed.String())
	case <-time.After(time.Minute):
		t.Fatalf("%s does not start", name)
	}
	return ""
}

// prometheusProgram returns the path of the Prometheus that `make prometheus` installs.
func prometheusProgram(t *testing.T) string {
	t.Helper()
	name := os.Getenv("KUOTA_PROMETHEUS")
	if name == "" {
		name = "../../../.local/prometheus/usr/bin/prometheus"
	}
	name, err := filepath.Abs(name)
	must(t, err)
	if _, err := os.Stat(name); err != nil {
		t.Fatalf("Prometheus is not installed, run `make prometheus`: %v", err)
	}
	return name
}

// lab is a Prometheus that scrapes an exporter each second.
type lab struct {
	dir string // that the exporter serves
	url string
}

// newLab starts a lab with these files. EXPORTER in scrape, a list of scrape_configs,
// is replaced by the exporter's address.
func newLab(t *testing.T, files map[string]string, scrape string) lab {
	return newLabSince(t, "", files, scrape)
}

// newLabSince is newLab with earlier series, in the format of OpenMetrics.
func newLabSince(t *testing.T, earlier string, files map[string]string, scrape string) lab {
	t.Helper()
	l := lab{dir: t.TempDir()}
	for name, text := range files {
		l.write(t, name, text)
	}
	self, err := os.Executable()
	must(t, err)
	exporter := start(t, regexp.MustCompile(`^(127\.0\.0\.1:\d+)$`), []string{exporterDir + "=" + l.dir}, self)
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	must(t, os.WriteFile(config, []byte("global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs:\n"+strings.ReplaceAll(scrape, "EXPORTER", exporter)), 0o600))
	if earlier != "" {
		file := filepath.Join(dir, "earlier")
		must(t, os.WriteFile(file, []byte(earlier), 0o600))
		out, err := exec.Command(filepath.Join(filepath.Dir(prometheusProgram(t)), "promtool"), "tsdb", "create-blocks-from", "openmetrics", file, filepath.Join(dir, "data")).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	l.url = "http://" + start(t, regexp.MustCompile(`msg="Listening on" address=(\S+)`), nil, prometheusProgram(t),
		"--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address=127.0.0.1:0")
	return l
}

// write replaces a file of the exporter atomically, so that no part of it is scraped.
func (l lab) write(t *testing.T, name, text string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(l.dir, name+".new"), []byte(text), 0o600))
	must(t, os.Rename(filepath.Join(l.dir, name+".new"), filepath.Join(l.dir, name)))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// until polls until check returns no error, and returns the Reading.
func until(t *testing.T, s *Service, check func(*Reading) error) *Reading {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		s.Poll(t.Context())
		now := s.Now()
		err := fmt.Errorf("no reading: %s", now.Warning)
		if now.Reading != nil {
			err = check(now.Reading)
		}
		if err == nil {
			return now.Reading
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		<-time.After(100 * time.Millisecond)
	}
}
