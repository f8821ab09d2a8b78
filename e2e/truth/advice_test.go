package truth_test

import (
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/e2e/consoles"
	"kuota.dev/kuota/e2e/podless"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

var (
	firstSeed = flag.Uint64("seed", 1, "the first seed")
	seeds     = flag.Int("seeds", 200, "how many seeds")
	step      = flag.Uint64("step", 1, "from one seed to the next; 2 for trees only, with an even first seed")
	atOnce    = flag.Int("at-once", 24, "how many cohorts run at a time")
	byKuota   = flag.Int("by-kuota", 0, "how many of the seeds run through ComputeAllocations and Kuota's one cohort too, half of them in each mode; one at a time")
	mode      = flag.String("mode", "both", "fair (FairShare), first (FirstComeFirstServe) or both, half of the seeds each")
	verbose   = flag.Bool("verbose", false, "print all of each seed")
)

// What the advice must reach, in percent.
const (
	wantStarted = 99
	wantMinimal = 99
	wantExact   = 98
	wantOffered = 95
	maxTies     = 10
)

// newLab returns what seeds need, without a console.
func newLab(t *testing.T, c *clustertest.Cluster) *lab {
	t.Helper()
	furnish(t, c)
	ctrl.SetLogger(logr.Discard())
	config := rest.CopyConfig(c.Config)
	config.QPS, config.Burst = 1000, 2000
	fast, err := client.New(config, client.Options{Scheme: cluster.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	podless.Run(t, c)
	c.Apply(t, consoles.AdminBinding)
	return &lab{client: fast, watcher: watchWorkloads(t, c), readers: make(chan struct{}, 2)}
}

// start starts a console, and signs the admin in.
func (l *lab) start(t *testing.T, c *clustertest.Cluster, name string, env ...string) *consoles.Replica {
	t.Helper()
	console := consoles.New(t, c, name, "none", append([]string{"KUOTA_MANAGE_KUEUE=false"}, env...)...)
	console.WaitReady()
	l.console, l.browser = console.Address, consoles.SignIn(t, console)
	l.browser.Timeout = time.Minute
	l.browser.Transport = &http.Transport{MaxIdleConnsPerHost: *atOnce}
	return console
}

// TestFewSeeds keeps the measurement itself working: each seed must have an outcome. So
// few outcomes say nothing about the product.
func TestFewSeeds(t *testing.T) {
	if clustertest.Verify {
		t.Skip("TestAdvice runs more of them")
	}
	c := clustertest.Get(t)
	l := newLab(t, c)
	l.start(t, c, "truth")
	judged := 0
	var small []uint64 // with few tasks, which take a second each
	for seed := uint64(1); len(small) < 4; seed++ {
		if len(randomCohort(seed).tasks) <= 6 {
			small = append(small, seed)
		}
	}
	for _, o := range l.runAll(t, small, "s0", "s1", "s2", "s3") {
		o.print()
		if o.started != unknown || o.brute {
			judged++
		}
	}
	if judged < 2 {
		t.Errorf("got %d outcomes of %d seeds, want at least 2", judged, len(small))
	}
}

// TestAdvice makes one change that the page of a waiting task offers, for each seed.
func TestAdvice(t *testing.T) {
	clustertest.OnlyVerify(t)
	c := clustertest.Get(t)
	l := newLab(t, c)
	first := *firstSeed
	for i, m := range modes() {
		n := *seeds / len(modes())
		if i == 0 {
			n += *seeds % len(modes())
		}
		t.Run(m, func(t *testing.T) {
			configure(t, c, m == "fair")
			l.start(t, c, "truth-"+m)
			var one []outcome
			var wg sync.WaitGroup
			all := make([]uint64, n)
			for i := range all {
				all[i] = first + *step*uint64(i)
			}
			wg.Go(func() { one = l.runAll(t, all[:min(n, *byKuota/len(modes()))], kuotaSlot) })
			slots := make([]string, *atOnce)
			for i := range slots {
				slots[i] = fmt.Sprintf("s%d", i)
			}
			many := l.runAll(t, all, slots...)
			wg.Wait()
			fmt.Printf("figure truth_%s_instances %d instances, %d of which changed when Kueue tried all tasks again\n", m, l.instances.Swap(0), l.nudged.Swap(0))
			report(t, m, many)
			if trees := slices.DeleteFunc(slices.Clone(many), func(o outcome) bool { return len(o.cohort.departments) == 0 }); len(trees) > 0 {
				report(t, m+"_trees", trees)
			}
			if len(one) > 0 {
				report(t, m+"_by_kuota", one)
			}
		})
		first += *step * uint64(n)
	}
}

// modes are the modes of Kueue to run in: FirstComeFirstServe and FairShare.
func modes() []string {
	if *mode == "both" {
		return []string{"first", "fair"}
	}
	return []string{*mode}
}

// configure restarts Kueue with fair sharing as Kuota configures it, or without.
func configure(t *testing.T, c *clustertest.Cluster, fair bool) {
	t.Helper()
	c.Configure(t, func(text string) string {
		var config map[string]any
		if err := yaml.Unmarshal([]byte(text), &config); err != nil {
			t.Fatal(err)
		}
		delete(config, "fairSharing")
		if fair {
			config["fairSharing"] = map[string]any{"preemptionStrategies": []string{"LessThanOrEqualToFinalShare", "LessThanInitialShare"}}
		}
		edited, err := yaml.Marshal(config)
		if err != nil {
			t.Fatal(err)
		}
		return string(edited)
	})
}

// runAll runs seeds, as many at a time as there are slots.
func (l *lab) runAll(t *testing.T, seeds []uint64, slots ...string) []outcome {
	t.Helper()
	all := make([]outcome, len(seeds))
	free := make(chan string, len(slots))
	for _, slot := range slots {
		free <- slot
	}
	var wg sync.WaitGroup
	began := time.Now()
	for i, seed := range seeds {
		slot := <-free
		wg.Go(func() {
			defer func() { free <- slot }()
			var err error
			if all[i], err = l.run(t.Context(), seed, slot); err != nil {
				t.Errorf("seed %d: %v", seed, err)
				all[i].skipped = "error"
			}
			for _, cause := range all[i].causes {
				fmt.Printf("miss seed %d: task %s, %s: %s\n", seed, all[i].picked, all[i].chosen, cause)
			}
			if *verbose {
				all[i].print()
			}
		})
		if i < len(slots) {
			time.Sleep(300 * time.Millisecond) // so that they do not all start at once
		}
		if i%50 == 49 {
			fmt.Printf("%d seeds begun in %s\n", i+1, time.Since(began).Round(time.Second))
		}
	}
	wg.Wait()
	return all
}

// share counts how many of some cases were right.
type share struct{ right, of int }

func (s *share) add(v verdict) {
	if v != unknown {
		s.of++
	}
	if v == yes {
		s.right++
	}
}

func (s share) percent() float64 { return 100 * float64(s.right) / float64(max(1, s.of)) }

// conclusive is how many cases decide about a percentage alone.
const conclusive = 200

// tooFew reports whether fewer than a percentage were right. Of less than conclusive
// cases, two more may be wrong by chance: a percent of them is a case or two. Of less
// than ten, one.
func (s share) tooFew(percent float64) bool {
	chance := 0
	if s.of < conclusive {
		chance = min(2, (s.of+9)/10)
	}
	return float64(s.right+chance) < percent/100*float64(s.of)
}

// report prints the figures of a mode, and one line for each miss. It fails the test
// where they do not reach what they must.
func report(t *testing.T, mode string, all []outcome) {
	t.Helper()
	var started, exact, minimal, also, offered, strict, tied share
	byKind := map[kind]*[3]share{}
	skipped := map[string]int{}
	causes := map[string][]uint64{}
	briefly := 0
	for i := range all {
		o := &all[i]
		for _, cause := range o.causes {
			short, _, _ := strings.Cut(cause, ":")
			causes[short] = append(causes[short], o.seed)
		}
		if o.skipped != "" {
			skipped[o.skipped]++
			continue
		}
		if len(o.page.changes) == 0 {
			if o.brute && o.found != "" {
				offered.add(no)
			}
			continue
		}
		offered.add(yes)
		if o.passing > 0 {
			briefly++
		}
		if tied.add(is(o.chosen.tied)); o.chosen.tied {
			continue
		}
		k := byKind[o.chosen.kind]
		if k == nil {
			k = &[3]share{}
			byKind[o.chosen.kind] = k
		}
		for j, v := range []verdict{o.started, o.exact, o.minimal} {
			k[j].add(v)
		}
		started.add(o.started)
		exact.add(o.exact)
		minimal.add(o.minimal)
		also.add(o.also)
		strict.add(is(o.started == yes && o.exact != no && o.minimal != no))
	}
	figure := func(name string, s share) {
		fmt.Printf("figure truth_%s_%s %.1f %% (%d of %d)\n", mode, name, s.percent(), s.right, s.of)
	}
	fmt.Printf("figure truth_%s_seeds %d seeds, skipped %v\n", mode, len(all), skipped)
	for _, kind := range kinds {
		if k := byKind[kind]; k != nil {
			figure(string(kind)+"_started", k[0])
			figure(string(kind)+"_exact", k[1])
			if k[2].of > 0 {
				figure(string(kind)+"_minimal", k[2])
			}
		}
	}
	figure("started", started)
	figure("exact", exact)
	figure("minimal", minimal)
	figure("also_started", also)
	figure("offered", offered)
	figure("ties", tied)
	figure("strictly_right", strict)
	fmt.Printf("figure truth_%s_passing %d seeds in which a task starts and is preempted again\n", mode, briefly)
	for cause, seeds := range causes {
		slices.Sort(seeds)
		fmt.Printf("cause %s %q: %d, seeds %v\n", mode, cause, len(seeds), seeds)
	}
	if tied.percent() > maxTies {
		t.Errorf("ties: got %.1f %% of %d, want at most %d %%", tied.percent(), tied.of, maxTies)
	}
	for name, want := range map[string]struct {
		share
		percent float64
	}{"started": {started, wantStarted}, "exact": {exact, wantExact}, "minimal": {minimal, wantMinimal}, "offered": {offered, wantOffered}} {
		if want.tooFew(want.percent) {
			t.Errorf("%s: got %.1f %% of %d, want at least %.0f %%", name, want.share.percent(), want.of, want.percent)
		}
	}
}
