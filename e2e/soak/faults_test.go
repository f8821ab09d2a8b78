package soak_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"kuota.dev/kuota/e2e/consoles"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/record/history/historytest"
)

// faults makes one part after the other fail.
type faults struct {
	t          *testing.T
	c          *clustertest.Cluster
	load       *load
	a, b       *consoles.Replica // b is killed
	samplers   []*sampler
	admin      *http.Client
	pages      streams
	database   *historytest.Server
	prometheus *prometheus
	plan       plan

	answering atomic.Bool // the API server and Kueue's webhooks
	rounds    int
	longest   map[string]time.Duration // figure by name
}

// round makes each part fail once.
func (f *faults) round() {
	for _, fault := range []struct {
		name string
		do   func()
	}{
		{"API server", f.apiServer}, {"Kueue", f.kueue}, {"database", f.stopDatabase}, {"Prometheus", f.stopPrometheus}, {"replica", f.killReplica},
	} {
		began := time.Now()
		fault.do()
		f.t.Logf("%s failed and recovered: %s", fault.name, time.Since(began).Round(100*time.Millisecond))
		f.rest(f.plan.calm)
	}
	f.rounds++
}

// rest waits; the load continues, which is the condition under test.
func (f *faults) rest(d time.Duration) { time.Sleep(d) }

// took keeps the longest time of a figure.
func (f *faults) took(name string, d time.Duration) { f.longest[name] = max(f.longest[name], d) }

// until waits until all open pages pass a check, and fails the test if that takes
// longer than bound. It returns how long it took.
func (f *faults) until(what string, bound time.Duration, check func(*stream) error) time.Duration {
	f.t.Helper()
	began, last, late := time.Now(), error(nil), false
	for {
		if last = f.pages.all(check); last == nil {
			return time.Since(began)
		}
		if !late && time.Since(began) > bound {
			late = true
			f.t.Errorf("%s: %v after %s", what, last, bound)
		}
		if time.Since(began) > clustertest.Patience {
			f.t.Fatalf("%s: %v after %s", what, last, clustertest.Patience)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// apiServer stops the API server: all pages must say that their data is old.
func (f *faults) apiServer() {
	f.answering.Store(false)
	var down, back, fresh atomic.Pointer[time.Time]
	ctx, cancel := context.WithCancel(f.t.Context())
	defer cancel()
	go func() { // notes the first failure, the first response after it, and when all pages are fresh
		note := func(to *atomic.Pointer[time.Time]) { to.Store(new(time.Now())) }
		for wait := time.NewTicker(20 * time.Millisecond); ctx.Err() == nil; <-wait.C {
			err := f.load.answers(ctx)
			switch {
			case err != nil && down.Load() == nil:
				note(&down)
			case err == nil && down.Load() != nil && back.Load() == nil:
				note(&back)
			case back.Load() != nil && f.pages.all((*stream).fresh) == nil:
				note(&fresh)
				return
			}
		}
	}()
	wait := func(what string, event *atomic.Pointer[time.Time]) time.Time {
		f.t.Helper()
		clustertest.Eventually(f.t, clustertest.Patience, func(context.Context) error {
			if event.Load() == nil {
				return errors.New(what)
			}
			return nil
		})
		return *event.Load()
	}
	var stopped time.Time
	f.c.Without(f.t, func() {
		stopped = wait("the API server still answers", &down)
		f.until("API server stopped", staleBound-time.Since(stopped), (*stream).stale)
		f.took("stale_shown_after_max", time.Since(stopped))
		for _, r := range []*consoles.Replica{f.a, f.b} {
			for _, path := range []string{"/teams", "/tasks"} {
				// After ten seconds nobody knows what the admin may see: 503.
				if _, err := getSlowly(f.t.Context(), f.admin, r.Address+path); err != nil && !strings.Contains(err.Error(), ": 503 ") {
					f.t.Errorf("replica %s while the API server is stopped: %v", r.Name, err)
				}
			}
		}
		f.rest(f.plan.outage - time.Since(stopped))
	})
	answered := wait("the API server does not answer again", &back)
	f.took("api_server_down_max", answered.Sub(stopped))
	took := wait("pages stay old", &fresh).Sub(answered)
	f.took("fresh_shown_after_max", took)
	if took > freshBound {
		f.t.Errorf("pages are fresh %s after the API server answers again, want at most %s", took.Round(time.Millisecond), freshBound)
	}
	f.answering.Store(true)
	f.recorded("API server answers again")
}

// kueue restarts Kueue: no page shows it.
func (f *faults) kueue() {
	f.answering.Store(false) // its webhooks do not answer
	f.c.Control(f.t, "stop", "kueue")
	f.rest(5 * time.Second)
	f.until("Kueue stopped", quiet, (*stream).fresh)
	f.c.Control(f.t, "start", "kueue")
	f.answering.Store(true)
}

// stopDatabase stops PostgreSQL: pages without history are not affected, and what was
// observed meanwhile is written afterwards.
func (f *faults) stopDatabase() {
	f.database.Stop(f.t)
	stopped := time.Now()
	for time.Since(stopped) < f.plan.outage {
		for _, r := range []*consoles.Replica{f.a, f.b} {
			for _, path := range []string{"/", "/teams", "/tasks"} {
				if _, err := getSlowly(f.t.Context(), f.admin, r.Address+path); err != nil {
					f.t.Errorf("replica %s while the database is stopped: %v", r.Name, err)
				}
			}
		}
		f.rest(time.Second)
	}
	f.until("database stopped", quiet, (*stream).fresh)
	f.database.Restart(f.t)
	f.recorded("database answers again")
}

// getSlowly is consoles.Get for pages that wait for a database that does not answer.
func getSlowly(ctx context.Context, client *http.Client, address string) (text string, err error) {
	for range 5 {
		if text, err = consoles.Get(ctx, client, address); err == nil || !errors.Is(err, context.DeadlineExceeded) {
			return text, err
		}
	}
	return text, err
}

// recorded waits until the leader has written all that it observed.
func (f *faults) recorded(what string) {
	f.t.Helper()
	began := time.Now()
	clustertest.Eventually(f.t, historyBound, func(ctx context.Context) error {
		for _, s := range f.samplers {
			values, err := s.read(ctx)
			if err != nil || values["kuota_leader"] != 1 {
				continue
			}
			if lag := values["kuota_history_lag_seconds"]; !(lag < 8) || values["kuota_history_waiting"] > 20 {
				return fmt.Errorf("%s: replica %s has a history lag of %.1f s, and %g rows wait", what, s.replica.Name, lag, values["kuota_history_waiting"])
			}
			return nil
		}
		return fmt.Errorf("%s: no replica leads", what)
	})
	f.took("history_recovered_after_max", time.Since(began))
}

// unreachable is the sentence of the dashboard while Prometheus does not answer.
const unreachable = "Prometheus cannot be reached"

// stopPrometheus stops Prometheus: the dashboard says so, and nothing else changes.
func (f *faults) stopPrometheus() {
	f.t.Helper()
	shows := func(want bool) time.Duration {
		began := time.Now()
		clustertest.Eventually(f.t, prometheusBound, func(ctx context.Context) error {
			for _, r := range []*consoles.Replica{f.a, f.b} {
				text, err := consoles.Get(ctx, f.admin, r.Address+"/")
				if err == nil && strings.Contains(text, unreachable) != want {
					err = fmt.Errorf("replica %s shows %q: got %t, want %t", r.Name, unreachable, !want, want)
				}
				if err != nil {
					return err
				}
			}
			time.Sleep(200 * time.Millisecond)
			return nil
		})
		return time.Since(began)
	}
	f.prometheus.stop()
	f.took("prometheus_shown_after_max", shows(true))
	f.until("Prometheus stopped", quiet, (*stream).fresh)
	f.prometheus.start()
	f.took("prometheus_recovered_after_max", shows(false))
}

// killReplica kills replica b, and starts it again when the other one leads.
func (f *faults) killReplica() {
	if f.b.Leads(f.t.Context()) == nil {
		f.longest["kills_of_the_leader"]++
	}
	f.b.End(syscall.SIGKILL)
	killed := time.Now().Add(50 * time.Millisecond) // later events are those of replica a
	f.took("streams_reconnected_after_max", f.until("replica killed", quiet, func(s *stream) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.at.After(killed) {
			return fmt.Errorf("page %s has not reconnected", s.path)
		}
		return nil
	}))
	f.took("takeover_max", f.a.WaitLeads(14*time.Second))
	f.b.Start()
	f.b.WaitReady()
	for _, s := range f.pages {
		s.goHome()
	}
	f.until("replica started again", quiet, (*stream).fresh)
	f.recorded("replica killed")
}

// prometheus is a Prometheus with the metrics of both replicas and of one GPU.
type prometheus struct {
	t       *testing.T
	url     string
	args    []string
	command *exec.Cmd
	ended   chan struct{}
}

// gpu is what dcgm-exporter reports for a GPU of the first node.
const gpu = `# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",Hostname="p5-0"} 50
`

// newPrometheus starts a Prometheus that make prometheus unpacked. It ends with the
// test.
func newPrometheus(t *testing.T) *prometheus {
	t.Helper()
	exporter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprint(w, gpu)
	}))
	t.Cleanup(exporter.Close)
	dir, address := t.TempDir(), consoles.FreeAddress(t)
	config := filepath.Join(dir, "prometheus.yml")
	writeFile(t, config, fmt.Sprintf("global: {scrape_interval: 5s}\nscrape_configs: [{job_name: dcgm, static_configs: [{targets: [%q]}]}]\n", exporter.Listener.Addr()))
	p := &prometheus{t: t, url: "http://" + address, args: []string{"--config.file=" + config, "--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address=" + address}}
	p.start()
	t.Cleanup(p.stop)
	return p
}

// start starts it, and waits until it answers.
func (p *prometheus) start() {
	p.t.Helper()
	p.command = exec.Command(filepath.Join(clustertest.Root(), ".local", "prometheus", "usr", "bin", "prometheus"), p.args...)
	must(p.t, consoles.StartChild(p.command, syscall.SIGKILL))
	p.ended = make(chan struct{})
	go func(command *exec.Cmd, ended chan struct{}) {
		_ = command.Wait()
		close(ended)
	}(p.command, p.ended)
	clustertest.Eventually(p.t, consoles.Patience, func(ctx context.Context) error {
		_, err := consoles.Get(ctx, http.DefaultClient, p.url+"/-/ready")
		return err
	})
}

// stop ends it and waits until it has ended.
func (p *prometheus) stop() {
	_ = p.command.Process.Signal(syscall.SIGKILL)
	<-p.ended
}
