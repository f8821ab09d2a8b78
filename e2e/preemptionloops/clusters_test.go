package preemptionloops_test

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/e2e/podless"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/controllers/loopguard"
)

// The flags select what TestRandomClusters runs, for a search for seeds.
var (
	firstSeed  = flag.Uint64("seed", 1, "the first seed")
	seeds      = flag.Int("seeds", 200, "how many seeds")
	atOnce     = flag.Int("at-once", 20, "how many settings run at a time")
	watchFor   = flag.Duration("watch", 75*time.Second, "how long a setting is watched after its last submission")
	strategies = flag.String("strategies", finalShare+","+initialShare, "the strategies of fair sharing; empty is first come, first served")
	prioritize = flag.Bool("prioritize", false, "set the feature gate PrioritizePreemptorWorkloads")
	verbose    = flag.Bool("histories", false, "print the preemptions of every Workload")
)

// longestLoop is how long a loop may last that the guard breaks.
const longestLoop = 30 * time.Second

// holdLimit is how long a hold may go on that a setting's end finds: the first two
// of a pair last a minute.
const holdLimit = 90 * time.Second

// outcome is what the oracle observed of one setting.
type outcome struct {
	setting setting
	loops   []loop
	seen    map[string]history // by the names of Jobs
	// reported are the guard's loops, by the names of the victims' Jobs. The guard
	// forgets none within the time that a setting is watched.
	reported map[string]loopguard.Loop
	inactive []string // Jobs whose hold did not end in time
}

// TestRandomClusters runs the settings of 200 seeds. Without the guard Kueue
// loops in one of ten at least; with it no loop lasts longer than longestLoop,
// and no Workload is left inactive.
func TestRandomClusters(t *testing.T) {
	clustertest.OnlyVerify(t)
	c := clustertest.Get(t)
	furnish(t, c)
	config := configuration{strategies: strings.FieldsFunc(*strategies, func(r rune) bool { return r == ',' }), prioritize: *prioritize}
	config.apply(t, c)
	t.Run(warn, func(t *testing.T) {
		guard := startGuard(t, warn)
		all := runSeeds(t, c, guard)
		figures(warn, all)
		if looping := countLooping(all); len(config.strategies) > 0 && !config.prioritize && looping*10 < len(all) {
			t.Errorf("%d of %d settings loop, too few to test the guard", looping, len(all))
		}
		for _, out := range all {
			for name, h := range out.seen {
				if h.deactivated > 0 {
					t.Errorf("%s of %s was deactivated in mode %s", name, out.setting.name, warn)
				}
			}
		}
	})
	t.Run(breakUp, func(t *testing.T) {
		guard := startGuard(t, breakUp)
		all := runSeeds(t, c, guard)
		figures(breakUp, all)
		for _, out := range all {
			for _, l := range out.loops {
				if l.lasts() > longestLoop {
					t.Errorf("a loop lasted %.0f s: %s; %s", l.lasts().Seconds(), l, out.setting)
				}
			}
			for _, name := range out.inactive {
				t.Errorf("%s of %s was left inactive; %s", name, out.setting.name, out.setting)
			}
		}
	})
}

// runSeeds runs the settings of all seeds, some at a time.
func runSeeds(t *testing.T, c *clustertest.Cluster, guard *loopguard.Guard) []outcome {
	t.Helper()
	podless.Run(t, c)
	o := watchWorkloads(t, c)
	all := make([]outcome, *seeds)
	slots := make(chan struct{}, *atOnce)
	var wg sync.WaitGroup
	for i := range all {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			var err error
			if all[i], err = runSeed(t.Context(), c, o, guard, *firstSeed+uint64(i)); err != nil {
				t.Errorf("seed %d: %v", *firstSeed+uint64(i), err)
			}
		})
		time.Sleep(time.Second) // so that they do not all start at once
	}
	wg.Wait()
	return all
}

func runSeed(ctx context.Context, c *clustertest.Cluster, o *oracle, guard *loopguard.Guard, seed uint64) (outcome, error) {
	s := randomSetting(seed)
	s.name += "-" + strings.TrimPrefix(clustertest.Name("x"), "x-") // a namespace of an earlier run may still be terminating
	if err := s.create(ctx, c.Client); err != nil {
		return outcome{setting: s}, err
	}
	if err := s.submit(ctx, c.Client); err != nil {
		return outcome{setting: s}, err
	}
	time.Sleep(*watchFor)
	out := outcome{setting: s, loops: o.loops(s.name + "-"), seen: o.of(s.name + "-"), reported: reported(guard, s)}
	for end := time.Now().Add(holdLimit); ; time.Sleep(50 * time.Millisecond) { // a hold may be going on
		if out.inactive = inactive(o.of(s.name + "-")); len(out.inactive) == 0 || time.Now().After(end) {
			break
		}
	}
	return out, s.remove(ctx, c.Client)
}

// inactive returns the Jobs whose Workloads are inactive.
func inactive(seen map[string]history) (names []string) {
	for name, h := range seen {
		if h.inactive && !h.done {
			names = append(names, name)
		}
	}
	return names
}

func countLooping(all []outcome) (looping int) {
	for _, out := range all {
		if len(out.loops) > 0 {
			looping++
		}
	}
	return looping
}

// figures prints the figures of all settings, one `name value unit` a line, and one
// line for each loop.
func figures(mode string, all []outcome) {
	figure := func(name string, value float64, unit string) {
		fmt.Printf("figure loops_%s_%s %.1f %s\n", strings.ToLower(mode), name, value, unit)
	}
	var loops, rotations, preemptions, tasks, preempted, deactivated int
	var longest time.Duration
	for _, out := range all {
		victims, preemptors := map[string]bool{}, map[string]bool{}
		for _, l := range out.loops {
			fmt.Printf("loop %s\n", l)
			loops++
			longest = max(longest, l.lasts())
			victims[l.victim] = true
			for _, name := range l.preemptors {
				preemptors[name] = true
			}
		}
		for name := range preemptors {
			if victims[name] {
				rotations++
				break
			}
		}
		for _, h := range out.seen {
			tasks++
			preemptions += int(h.count)
			deactivated += h.deactivated
			if h.count > 0 {
				preempted++
			}
		}
		if *verbose || len(out.loops) > 0 {
			fmt.Printf("setting %s\n", out.setting)
		}
		if *verbose {
			out.print()
		}
	}
	figure("settings", float64(len(all)), "settings")
	figure("looping", float64(countLooping(all)), "settings")
	figure("rotating", float64(rotations), "settings")
	figure("loops", float64(loops), "loops")
	figure("longest", longest.Seconds(), "s")
	figure("tasks", float64(tasks), "tasks")
	figure("preempted", float64(preempted), "tasks")
	figure("preemptions", float64(preemptions), "preemptions")
	figure("deactivations", float64(deactivated), "deactivations")
	guardFigures(all, figure)
	for _, rule := range []struct {
		name string
		of   func(history) int32
	}{{"pair", history.pairs}, {"fruitless", history.fruitless}} {
		for limit := int32(2); limit <= 4; limit++ {
			hits, falsePositives, missed := judge(all, func(h history) bool { return rule.of(h) >= limit })
			figure(fmt.Sprintf("%s_%d_right", rule.name, limit), float64(hits), "tasks")
			figure(fmt.Sprintf("%s_%d_wrong", rule.name, limit), float64(falsePositives), "tasks")
			figure(fmt.Sprintf("%s_%d_missed", rule.name, limit), float64(missed), "tasks")
		}
	}
}

// guardFigures prints how the guard's reports compare with the oracle: loops that
// it missed, reports of Workloads that are no loop to the oracle, and the time from
// the first preemption of a loop until its report.
func guardFigures(all []outcome, figure func(name string, value float64, unit string)) {
	var reports, missed, other int
	var delays []time.Duration
	for _, out := range all {
		victims := map[string]time.Time{}
		for _, l := range out.loops {
			victims[l.victim] = l.first
			if _, ok := out.reported[l.victim]; !ok {
				missed++
			}
		}
		for name, l := range out.reported {
			reports++
			first, ok := victims[name]
			if !ok { // few preemptions in a minute: none, with the guard, or a loop that ended by itself
				other++
				continue
			}
			delays = append(delays, l.Detected.Sub(first))
		}
	}
	slices.Sort(delays)
	figure("reported", float64(reports), "tasks")
	figure("reported_missed", float64(missed), "loops")
	figure("reported_no_loop", float64(other), "tasks")
	if n := len(delays); n > 0 {
		figure("detection_p50", delays[n/2].Seconds(), "s")
		figure("detection_largest", delays[n-1].Seconds(), "s")
	}
}

// judge compares a rule for what a loop's victim is with the oracle.
func judge(all []outcome, rule func(history) bool) (hits, falsePositives, missed int) {
	for _, out := range all {
		victims := map[string]bool{}
		for _, l := range out.loops {
			victims[l.victim] = true
		}
		for name, h := range out.seen {
			switch is := rule(h); {
			case is && victims[name]:
				hits++
			case is:
				falsePositives++
			case victims[name]:
				missed++
			}
		}
	}
	return hits, falsePositives, missed
}

// print prints the preemptions of each Workload of a setting.
func (out outcome) print() {
	names := map[string]string{}
	for name, h := range out.seen {
		names[string(h.uid)] = name
	}
	for name, h := range out.seen {
		if h.count == 0 {
			continue
		}
		fmt.Printf("  %s %s: %d preemptions, %d reservations, uses quota %t:", out.setting.name, name, h.count, h.reservations, h.usesQuota)
		for _, p := range h.preemptions[:min(10, len(h.preemptions))] {
			fmt.Printf(" +%.1fs by %s %s fruitless=%t;", p.at.Sub(h.preemptions[0].at).Seconds(), names[string(p.preemptor)], p.reason, p.fruitless)
		}
		fmt.Println()
	}
}
