package strange_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/e2e/consoles"
	"kuota.dev/kuota/governance/cluster/clustertest"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	seeds  = flag.Int("seeds", 100, "how many seeds run")
	first  = flag.Uint64("from", 1, "the first seed")
	replay = flag.String("file", "", "the file of scenarios that run instead")
)

// slowest is what 99 of 100 answers take at most.
const slowest = 500 * time.Millisecond

// agreeWithin is how long figures may differ from Kueue's after it has decided.
const agreeWithin = 15 * time.Second

// alertsFire is how long an alert about Kueue takes to fire: its time, and two evaluations.
const alertsFire = 15 * time.Second

// alertPolicy makes alerts about Kueue fire within the time of a seed.
const alertPolicy = `{apiVersion: kuota.dev/v1alpha1, kind: ClusterPolicy, metadata: {name: default}, spec: {alerts: {rules: [{rule: not-admitted, after: 5s}]}}}`

// atOnce is how many scenarios share the cluster.
const atOnce = 4

type lab struct {
	*reader
	cluster client.Client
	metrics string

	refused  int // objects
	compared int // amounts, with Kueue's
}

func newLab(t *testing.T) *lab {
	t.Helper()
	c := clustertest.Get(t)
	c.Apply(t, consoles.AdminBinding)
	c.Apply(t, alertPolicy)
	console := consoles.New(t, c, "strange", filepath.Join(t.TempDir(), "history.db"), "KUOTA_MANAGE_KUEUE=false")
	console.WaitReady()
	browser := consoles.SignIn(t, console)
	browser.Timeout = 30 * time.Second
	return &lab{reader: &reader{client: browser, console: console.Address}, cluster: c.Client, metrics: console.Metrics}
}

// TestFewStrange keeps the measurement itself working.
func TestFewStrange(t *testing.T) {
	if clustertest.Verify {
		t.Skip("TestStrange runs more seeds")
	}
	newLab(t).run(t, []*scenario{generate(1), generate(2)})
}

// TestStrange runs so many seeds, or the scenarios of a file, and reports those that show
// something wrong with the file that repeats it.
func TestStrange(t *testing.T) {
	clustertest.OnlyVerify(t)
	l := newLab(t)
	began := time.Now()
	all, err := readScenarios(*replay)
	if err != nil {
		t.Fatal(err)
	}
	if *replay == "" {
		for seed := *first; seed < *first+uint64(*seeds); seed++ {
			all = append(all, generate(seed))
		}
	}
	for some := range slices.Chunk(all, atOnce) {
		l.run(t, some)
	}
	slices.Sort(l.took)
	p99 := l.took[len(l.took)*99/100]
	fmt.Printf("figure strange_answers %d answers\nfigure strange_answer_p50 %d ms\nfigure strange_answer_p99 %d ms\nfigure strange_answer_max %d ms\nfigure strange_objects_refused %d objects\nfigure strange_amounts_compared %d amounts\nfigure strange_took %.1f min\n",
		len(l.took), l.took[len(l.took)/2].Milliseconds(), p99.Milliseconds(), l.took[len(l.took)-1].Milliseconds(), l.refused, l.compared, time.Since(began).Minutes())
	if p99 > slowest {
		t.Errorf("99 of 100 answers took up to %s, want %s", p99, slowest)
	}
}

// run makes scenarios beside each other, and checks the console before and after objects
// vanish. What shows something wrong is written to a file with all of them.
func (l *lab) run(t *testing.T, all []*scenario) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	before, err := l.figures(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wrong := make([][]string, len(all)+1)
	for i, s := range all {
		wg.Go(func() { wrong[i] = l.check(ctx, t, s) })
	}
	wg.Wait()
	if err := until(ctx, time.Minute, func() error { return l.recorded(ctx, before) }); err != nil {
		wrong[len(all)] = []string{err.Error()}
	}
	found := slices.Concat(wrong...)
	if len(found) == 0 {
		return
	}
	file := filepath.Join(clustertest.Root(), ".local", "strange", fmt.Sprintf("%d.yaml", all[0].Seed))
	if err := writeScenarios(file, all); err != nil {
		t.Error(err)
	}
	t.Errorf("make strange FILE=%s:\n  %s", file, strings.Join(found, "\n  "))
}

// check runs one scenario, and returns what is wrong.
func (l *lab) check(ctx context.Context, t *testing.T, s *scenario) (wrong []string) {
	prefix := fmt.Sprintf("x%d-", s.Seed)
	c := &cluster{Client: l.cluster, prefix: prefix}
	fail := func(err error) {
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("seed %d: %v", s.Seed, err))
		}
	}
	made, refused := c.apply(ctx, s)
	if len(made) == 0 {
		return []string{fmt.Sprintf("seed %d: nothing can be made: %s", s.Seed, refused[0])}
	}
	fail(c.settle(ctx))
	compared, found := l.agree(ctx, c)
	wrong = append(wrong, found...)
	settled := time.Now()
	pages, found := l.crawl(ctx, prefix, func(path string) bool { return !strings.Contains(path, prefix) })
	wrong = append(wrong, found...)
	if len(s.Vanish) > 0 {
		fail(c.vanish(ctx, s.Vanish))
		fail(c.settle(ctx))
		more, found := l.agree(ctx, c)
		compared += more
		wrong = append(wrong, found...)
		settled = time.Now()
		read, found := l.crawl(ctx, prefix, func(string) bool { return true })
		pages += read
		wrong = append(wrong, found...)
	}
	fail(until(ctx, time.Minute, func() error { // until an alert about this state would fire
		alerts, err := l.falseAlerts(ctx, prefix)
		if err == nil && len(alerts) == 0 && time.Since(settled) < alertsFire {
			err = errors.New("no alert fires yet")
		}
		wrong = append(wrong, alerts...)
		return err
	}))
	fail(c.clear(ctx, made))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused += len(refused)
	l.compared += compared
	t.Logf("seed %d: %d objects, %d refused, %d vanish, %d pages, %d wrong", s.Seed, len(made), len(refused), len(s.Vanish), pages, len(wrong))
	return wrong
}

// agree waits until the console shows what Kueue has decided. It returns how many amounts
// it compared, and what still differs.
func (l *lab) agree(ctx context.Context, c *cluster) (compared int, wrong []string) {
	_ = until(ctx, agreeWithin, func() error {
		tasks, err := l.checkTasks(ctx, c)
		if err != nil {
			wrong = []string{err.Error()}
			return err
		}
		n, queues, err := l.checkQueues(ctx, c)
		if err != nil {
			wrong = []string{err.Error()}
			return err
		}
		if wrong = append(tasks, queues...); len(wrong) > 0 {
			return fmt.Errorf("%d differ", len(wrong))
		}
		compared = n
		return nil
	})
	return compared, wrong
}

// falseAlerts returns the alerts that blame a component although all of them work.
func (l *lab) falseAlerts(ctx context.Context, prefix string) (wrong []string, err error) {
	var list struct {
		Alerts []struct{ Rule, State, Team, Summary string }
	}
	if err := l.json(ctx, "/alerts.json", &list); err != nil {
		return nil, err
	}
	for _, a := range list.Alerts {
		if a.State != "firing" {
			continue
		}
		switch a.Rule {
		case "console-stale", "history-refused", "nodes-lost":
			wrong = append(wrong, fmt.Sprintf("alert %s: %s", a.Rule, a.Summary))
		case "not-admitted": // the other words of this rule are about a queue that does not work
			if strings.Contains(a.Summary, prefix) && strings.Contains(a.Summary, "Check that Kueue runs") {
				wrong = append(wrong, fmt.Sprintf("alert %s: %s", a.Rule, a.Summary))
			}
		}
	}
	return wrong, nil
}

var metric = regexp.MustCompile(`(?m)^(kuota_history_\w+)(?:\{([^}]*)\})? ([0-9.e+-]+)$`)

// figures returns the metrics of the history.
func (l *lab) figures(ctx context.Context) (map[string]float64, error) {
	text, err := consoles.Get(ctx, http.DefaultClient, "http://"+l.metrics+"/metrics")
	if err != nil {
		return nil, err
	}
	found := map[string]float64{}
	for _, m := range metric.FindAllStringSubmatch(text, -1) {
		var n float64
		if _, err := fmt.Sscan(m[3], &n); err != nil {
			return nil, err
		}
		found[m[1]] += n
		found[m[1]+"{"+m[2]+"}"] = n
	}
	return found, nil
}

// recorded returns nil if all that happened since before is in the history.
func (l *lab) recorded(ctx context.Context, before map[string]float64) error {
	now, err := l.figures(ctx)
	if err != nil {
		return err
	}
	const written, failed = `kuota_history_writes_total{outcome="written"}`, `kuota_history_writes_total{outcome="failed"}`
	for _, name := range []string{"kuota_history_set_aside_total", "kuota_history_gaps_total", failed} {
		if now[name] > before[name] {
			return fmt.Errorf("%s rose from %v to %v", name, before[name], now[name])
		}
	}
	if now[written] <= before[written] || now["kuota_history_waiting"] > 0 || now["kuota_history_lag_seconds"] > 10 {
		return fmt.Errorf("history: %v writes before, %v now, %v wait, the last %v s ago", before[written], now[written], now["kuota_history_waiting"], now["kuota_history_lag_seconds"])
	}
	return nil
}
