package estimate_test

import (
	"cmp"
	"encoding/csv"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/governance/kueue/simulate"
	"kuota.dev/kuota/governance/kueue/simulate/engine"
	"kuota.dev/kuota/governance/tasks/estimate"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

const gpu = "nvidia.com/gpu"

// day zero of the history, at midnight.
var origin = time.Date(2026, 9, 7, 0, 0, 0, 0, time.UTC)

// job is one task of the history.
type job struct {
	key       string // namespace/name
	kind      estimate.Kind
	priority  int32
	gpus      int64
	submitted time.Time
	length    time.Duration
	workload  *kueue.Workload

	runs     []span // what really happened
	finished bool
}

type span struct{ began, ended time.Time }

func (j *job) started() time.Time {
	if len(j.runs) == 0 {
		return time.Time{}
	}
	return j.runs[0].began
}

// runningSince returns when the run at a time began; zero if it does not run.
func (j *job) runningSince(at time.Time) time.Time {
	for _, r := range j.runs {
		if !r.began.After(at) && (r.ended.IsZero() || r.ended.After(at)) {
			return r.began
		}
	}
	return time.Time{}
}

// end returns when the task finished; zero if it did not.
func (j *job) end() time.Time {
	if !j.finished {
		return time.Time{}
	}
	return j.runs[len(j.runs)-1].ended
}

// workKind is a kind of work of a team.
type workKind struct {
	name     string
	class    string
	gpus     []int64
	median   time.Duration
	sigma    float64 // of the logarithm of run times
	share    float64
	failures float64 // share that ends within minutes
}

var priorities = map[string]int32{"low": 10, "normal": 100, "high": 1000}

// teams have quota for 8, 12, 12 and 16 GPUs.
var teams = []struct {
	name  string
	gpus  int64
	kinds []workKind
}{
	{"vision", 16, []workKind{{"train-resnet", "normal", []int64{4, 8}, 2 * time.Hour, 0.6, 0.35, 0.15}, {"eval", "normal", []int64{1, 2}, 12 * time.Minute, 0.5, 0.45, 0.05}, {"sweep-lr", "low", []int64{2}, 45 * time.Minute, 0.4, 0.2, 0.1}}},
	{"speech", 12, []workKind{{"asr-train", "normal", []int64{4}, 3 * time.Hour, 0.8, 0.4, 0.2}, {"asr-eval", "high", []int64{1}, 8 * time.Minute, 0.4, 0.4, 0}, {"augment", "low", []int64{1, 2}, 70 * time.Minute, 0.5, 0.2, 0.05}}},
	{"nlp", 12, []workKind{{"pretrain", "normal", []int64{8}, 5 * time.Hour, 0.5, 0.15, 0.2}, {"finetune", "normal", []int64{2, 4}, 50 * time.Minute, 0.7, 0.55, 0.1}, {"score", "high", []int64{1}, 5 * time.Minute, 0.6, 0.3, 0}}},
	{"robotics", 8, []workKind{{"sim", "low", []int64{1}, 30 * time.Minute, 0.9, 0.6, 0.05}, {"policy-train", "normal", []int64{4}, 4 * time.Hour, 0.6, 0.4, 0.15}}},
}

// load returns what part of the cluster the submitted work needs at a time, on
// average: more on weekdays and in the afternoon, and another level in each week.
func load(at time.Duration) float64 {
	hours := at.Hours()
	level := []float64{0.7, 0.85, 0.6, 0.95, 0.75, 0.9, 0.65, 0.8}[int(hours/24/7)%8]
	ofDay := 1 + 0.8*math.Sin(2*math.Pi*(math.Mod(hours, 24)-9)/24)
	if day := int(hours/24) % 7; day >= 5 {
		ofDay *= 0.6
	}
	return level * ofDay
}

// generate returns the work of some days: arrivals whose rate follows load, bursts of
// equal tasks, and run times that become longer in the second half.
func generate(seed uint64) []*job {
	r := rand.New(rand.NewPCG(seed, 20))
	var all []*job
	for t, team := range teams {
		// GPU hours of an average task of the team.
		work, shares := 0.0, 0.0
		for _, k := range team.kinds {
			work += k.share * k.median.Hours() * math.Exp(k.sigma*k.sigma/2) * (1 - k.failures) * float64(k.gpus[0]+k.gpus[len(k.gpus)-1]) / 2
			shares += k.share
		}
		perHour := float64(team.gpus) / (work / shares)
		for at := time.Duration(0); at < days*24*time.Hour; {
			const highest = 2.2
			at += time.Duration(r.ExpFloat64() / (perHour * highest) * float64(time.Hour))
			if r.Float64() > load(at)/highest {
				continue
			}
			k := team.kinds[0]
			for pick := r.Float64() * shares; ; {
				if pick -= k.share; pick < 0 {
					break
				}
				k = team.kinds[(slices.IndexFunc(team.kinds, func(o workKind) bool { return o.name == k.name })+1)%len(team.kinds)]
			}
			copies := 1
			if r.Float64() < 0.04 {
				copies = 3 + r.IntN(8)
			}
			for range copies {
				all = append(all, newJob(r, team.name, k, at, len(all), at > days*12*time.Hour && t < 2))
			}
		}
	}
	slices.SortFunc(all, func(a, b *job) int { return cmp.Or(a.submitted.Compare(b.submitted), strings.Compare(a.key, b.key)) })
	return all
}

func newJob(r *rand.Rand, team string, k workKind, at time.Duration, n int, longer bool) *job {
	length := time.Duration(float64(k.median) * math.Exp(k.sigma*r.NormFloat64()))
	if longer {
		length = length * 5 / 4
	}
	if r.Float64() < k.failures {
		length = time.Duration(1+r.IntN(5*60)) * time.Second
	}
	name := fmt.Sprintf("%s-%05d", k.name, n)
	j := &job{key: team + "/" + name, kind: estimate.Kind{Team: team, Class: k.class, Pattern: estimate.Pattern(name)}, priority: priorities[k.class],
		gpus: k.gpus[r.IntN(len(k.gpus))], submitted: origin.Add(at).Truncate(time.Second), length: max(length, 30*time.Second).Truncate(time.Second)}
	j.workload = &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: name, UID: types.UID(j.key), CreationTimestamp: metav1.NewTime(j.submitted)},
		Spec: kueue.WorkloadSpec{QueueName: "queue", Priority: ptr.To(j.priority), Active: ptr.To(true), PodSets: []kueue.PodSet{{Name: "main", Count: 1, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{gpu: *resource.NewQuantity(j.gpus, resource.DecimalSI)}}}}}}}}},
	}
	return j
}

// cohort returns the queues of the teams, without Workloads.
func cohort(at time.Time) *simulate.Snapshot {
	s := &simulate.Snapshot{Time: at, Flavors: []*kueue.ResourceFlavor{{ObjectMeta: metav1.ObjectMeta{Name: "pool"}}}, Cohorts: []*kueue.Cohort{{ObjectMeta: metav1.ObjectMeta{Name: "kuota"}}}}
	for _, team := range teams {
		s.Namespaces = append(s.Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team.name}})
		s.ClusterQueues = append(s.ClusterQueues, &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: team.name}, Spec: kueue.ClusterQueueSpec{
			CohortName: "kuota", NamespaceSelector: &metav1.LabelSelector{}, QueueingStrategy: kueue.BestEffortFIFO,
			Preemption: &kueue.ClusterQueuePreemption{WithinClusterQueue: kueue.PreemptionPolicyLowerPriority, ReclaimWithinCohort: kueue.PreemptionPolicyAny},
			ResourceGroups: []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{gpu}, Flavors: []kueue.FlavorQuotas{{Name: "pool", Resources: []kueue.ResourceQuota{
				{Name: gpu, NominalQuota: *resource.NewQuantity(team.gpus, resource.DecimalSI)}}}}}},
		}})
		s.LocalQueues = append(s.LocalQueues, &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: team.name, Name: "queue"}, Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(team.name)}})
	}
	return s
}

// live runs the work day after day, by Kueue's scheduler.
func live(t *testing.T, all []*job) {
	s := cohort(origin)
	lengths, jobs := map[string]time.Duration{}, map[string]*job{}
	for _, j := range all {
		s.Workloads = append(s.Workloads, j.workload)
		lengths[j.key], jobs[j.key] = j.length, j
	}
	out, err := engine.Run(t.Context(), s, engine.Options{Arrivals: true, RunTimes: lengths, Horizon: all[len(all)-1].submitted.Sub(origin) + 14*24*time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range out.Events {
		j, at := jobs[e.Workload], origin.Add(e.After)
		if e.Kind == simulate.Started {
			j.runs = append(j.runs, span{began: at})
			continue
		}
		j.runs[len(j.runs)-1].ended, j.finished = at, e.Kind == simulate.Finished
	}
}

// at returns the cluster at a time, with the tasks that wait and run then.
func at(now time.Time, present []*job) *simulate.Snapshot {
	s := cohort(now)
	for _, j := range present {
		w := j.workload
		if since := j.runningSince(now); !since.IsZero() {
			w = w.DeepCopy()
			w.Status.Admission = &kueue.Admission{ClusterQueue: kueue.ClusterQueueReference(w.Namespace), PodSetAssignments: []kueue.PodSetAssignment{{Name: "main", Count: ptr.To[int32](1),
				Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{gpu: "pool"}, ResourceUsage: corev1.ResourceList{gpu: *resource.NewQuantity(j.gpus, resource.DecimalSI)}}}}
			for _, condition := range []string{kueue.WorkloadQuotaReserved, kueue.WorkloadAdmitted} {
				w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(since), Reason: condition})
			}
		}
		s.Workloads = append(s.Workloads, w)
	}
	return s
}

// Parameters of the replay.
const (
	days     = 28
	training = 3 * 24 * time.Hour // starts before are not held out
	period   = 20 * time.Minute   // between the moments at which tasks are estimated
	draws    = 12
	horizon  = 5 * 24 * time.Hour
	maxRuns  = 20_000

	simulated = "testdata/replay.csv"
)

var (
	update = flag.Bool("update", false, "with KUOTA_VERIFY: write "+simulated)
	seed   = flag.Uint64("seed", 2, "of the history; with KUOTA_VERIFY")
)

// forecast is what was simulated for one task, when it was first seen waiting.
type forecast struct {
	at          time.Time
	team, class string
	wait        time.Duration // until it started
	runs        int           // recorded at the time
	ok          bool          // there is a forecast
	forecast    time.Duration
}

func (f *forecast) start() time.Time { return f.at.Add(f.wait) }

// TestReplay makes estimates through a history whose load changes, each from what was
// known at the time, and compares them with what happened. The forecasts were simulated
// by TestSimulateReplay.
func TestReplay(t *testing.T) {
	evaluate(t, readForecasts(t))
}

// TestSimulateReplay lives the history and simulates all forecasts again. It takes 40
// minutes of a core.
func TestSimulateReplay(t *testing.T) {
	if os.Getenv("KUOTA_VERIFY") == "" {
		t.Skip("takes 40 minutes of a core: set KUOTA_VERIFY=1")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // as in the child process
	all := generate(*seed)
	live(t, all)
	forecasts := simulateAll(t, all)
	if *update {
		writeForecasts(t, forecasts)
	}
	evaluate(t, forecasts)
}

// simulateAll simulates, on all cores, at each moment at which tasks wait that did not
// wait before. A simulation uses the runs that had ended, and no estimate.
func simulateAll(t *testing.T, all []*job) (forecasts []*forecast) {
	seen := map[*job]bool{}
	var work sync.WaitGroup
	slots := make(chan struct{}, runtime.NumCPU())
	for now := origin.Add(period); now.Before(origin.Add(days * 24 * time.Hour)); now = now.Add(period) {
		next, _ := slices.BinarySearchFunc(all, now, func(j *job, now time.Time) int { return cmp.Or(j.submitted.Compare(now), -1) })
		submitted := all[:next]
		var present, ended, fresh []*job
		for _, j := range submitted {
			if end := j.end(); !end.IsZero() && !end.After(now) {
				ended = append(ended, j)
			} else {
				present = append(present, j)
			}
		}
		for _, j := range present {
			if !seen[j] && j.started().After(now) {
				seen[j] = true
				fresh = append(fresh, j)
			}
		}
		if len(fresh) == 0 {
			continue
		}
		of := make([]*forecast, len(fresh))
		for i, j := range fresh {
			of[i] = &forecast{at: now, team: j.kind.Team, class: j.kind.Class, wait: j.started().Sub(now).Truncate(time.Second), runs: len(ended)}
		}
		forecasts = append(forecasts, of...)
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			starts := simulateMoment(t, now, submitted, present, ended, fresh)
			for i, j := range fresh {
				if s := starts[j.key]; s != nil {
					of[i].forecast, of[i].ok = estimate.Forecast(s.After, simulate.NotStarted)
				}
			}
		})
	}
	work.Wait()
	return forecasts
}

// simulateMoment returns the starts of fresh tasks in several draws.
func simulateMoment(t *testing.T, now time.Time, submitted, present, ended, fresh []*job) map[string]*simulate.Start {
	var past []estimate.Run
	for _, j := range ended[max(0, len(ended)-maxRuns):] {
		last := j.runs[len(j.runs)-1]
		past = append(past, estimate.Run{Kind: j.kind, Length: last.ended.Sub(last.began)})
	}
	runs := estimate.NewRuns(past)
	s := at(now, present)
	random := rand.New(rand.NewPCG(uint64(now.Unix()), 1))
	var waiting, running []*job
	for _, j := range present {
		if j.runningSince(now).IsZero() {
			waiting = append(waiting, j)
		} else {
			running = append(running, j)
		}
	}
	question := &simulate.Question{Horizon: horizon}
	for _, j := range fresh {
		question.Waiting = append(question.Waiting, j.key)
	}
	var submissions estimate.Submissions
	for _, j := range submitted {
		submissions = append(submissions, estimate.Submission{Kind: j.kind, At: j.submitted, Workload: len(question.Submitted)})
		question.Submitted = append(question.Submitted, j.workload)
	}
	for range draws {
		draw := simulate.Draw{RunTimes: simulate.RunTimes{Whole: map[string]time.Duration{}, Remaining: map[string]time.Duration{}}}
		for _, j := range waiting {
			length, ok := runs.Draw(j.kind, 0, random)
			if !ok {
				return nil
			}
			draw.Whole[j.key] = length
		}
		for _, j := range running {
			elapsed := now.Sub(j.runningSince(now))
			length, _ := runs.Draw(j.kind, elapsed, random)
			draw.Whole[j.key], draw.Remaining[j.key] = length, length-elapsed
		}
		for _, one := range submissions.Draw(now, horizon, random) {
			length, _ := runs.Draw(one.Kind, 0, random)
			draw.Submissions = append(draw.Submissions, simulate.Submission{Workload: one.Workload, After: one.At.Sub(now), RunTime: length})
		}
		question.Draws = append(question.Draws, draw)
	}
	report, err := new(engine.Engine).Answer(t.Context(), s, question)
	if err != nil {
		t.Error(err)
		return nil
	}
	return report.Starts
}

// evaluate walks through the forecasts, calibrates with what was known at each, and
// compares the estimates with what happened.
func evaluate(t *testing.T, forecasts []*forecast) {
	var (
		made                               []*forecast
		past                               []estimate.Past
		eligible, given, held, early, late int
		plainGiven, plainHeld              int
		widths, plainWidths, both          []float64
		calibration                        *estimate.Calibration
		known                              []estimate.Past
		calibratedAt                       time.Time
	)
	type share struct{ held, of int }
	weeks, groups := map[string]share{}, map[string]share{}
	for _, f := range forecasts {
		if !f.at.Equal(calibratedAt) {
			known, calibratedAt = slices.Clone(past), f.at
			for i, m := range made {
				if m.start().After(f.at) {
					known[i].Started = time.Time{}
				}
			}
			calibration = estimate.Calibrate(known, f.at)
		}
		if f.runs < estimate.MinRuns {
			continue
		}
		heldOut := f.at.Sub(origin) > training
		if heldOut {
			eligible++
		}
		if !f.ok {
			continue
		}
		p := estimate.Past{Team: f.team, Class: f.class, Made: f.at, Forecast: f.forecast, Range: calibration.Range(f.team, f.class, f.forecast), Started: f.start()}
		past, made = append(past, p), append(made, f)
		if !heldOut {
			continue
		}
		given++
		switch {
		case p.Held():
			held++
		case f.wait < p.Low:
			early++
		default:
			late++
		}
		for key, in := range map[string]map[string]share{fmt.Sprint("week ", 1+int(f.at.Sub(origin).Hours()/24/7)): weeks, f.team + " " + f.class: groups} {
			s := in[key]
			if s.of++; p.Held() {
				s.held++
			}
			in[key] = s
		}
		widths = append(widths, (p.High - p.Low).Minutes())
		if low, high, ok := plain(known, f); ok {
			plainGiven++
			plainWidths, both = append(plainWidths, (high-low).Minutes()), append(both, (p.High-p.Low).Minutes())
			if low <= f.wait && f.wait <= high {
				plainHeld++
			}
		}
	}
	percent := func(n, of int) float64 { return 100 * float64(n) / float64(of) }
	t.Logf("%d held-out starts, an estimate for %.1f %% of them; %.1f %% of these held, %.1f %% started earlier, %.1f %% later", eligible, percent(given, eligible), percent(held, given), percent(early, given), percent(late, given))
	t.Logf("median width %.0f min; where the plain quantile of past waits gives a range too (%d), %.0f min and that %.0f min, of which %.1f %% held", median(widths), plainGiven, median(both), median(plainWidths), percent(plainHeld, plainGiven))
	for _, in := range []map[string]share{weeks, groups} {
		for _, key := range slices.Sorted(maps.Keys(in)) {
			t.Logf("%s: %.1f %% of %d held", key, percent(in[key].held, in[key].of), in[key].of)
		}
	}
	if given < 2000 {
		t.Errorf("%d held-out starts, want at least 2,000", given)
	}
	if share := percent(held, given); share < 75 || share > 85 {
		t.Errorf("%.1f %% of the ranges contain the start, want 75 to 85", share)
	}
	if share := percent(given, eligible); share < 80 {
		t.Errorf("an estimate for %.1f %%, want at least 80", share)
	}
	if median(both) >= median(plainWidths) || median(widths) >= median(plainWidths) {
		t.Error("the plain quantile of past waits is not wider")
	}
}

// plain returns the quantiles 0.1 and 0.9 of past waits of the same team and class.
func plain(known []estimate.Past, f *forecast) (low, high time.Duration, ok bool) {
	var waits []time.Duration
	for _, p := range known {
		if p.Team == f.team && p.Class == f.class && !p.Started.IsZero() {
			waits = append(waits, p.Started.Sub(p.Made))
		}
	}
	if len(waits) < estimate.MinRuns {
		return 0, 0, false
	}
	slices.Sort(waits)
	return waits[len(waits)/10], waits[len(waits)-1-len(waits)/10], true
}

func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}

// The columns of a forecast: seconds since origin, team, class, wait in seconds,
// recorded runs, and the forecast in seconds, empty for none.
func writeForecasts(t *testing.T, forecasts []*forecast) {
	file, err := os.Create(simulated)
	if err != nil {
		t.Fatal(err)
	}
	w := csv.NewWriter(file)
	seconds := func(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }
	for _, f := range forecasts {
		waits := ""
		if f.ok {
			waits = seconds(f.forecast)
		}
		if err := w.Write([]string{seconds(f.at.Sub(origin)), f.team, f.class, seconds(f.wait), strconv.Itoa(f.runs), waits}); err != nil {
			t.Fatal(err)
		}
	}
	if w.Flush(); w.Error() != nil {
		t.Fatal(w.Error())
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

func readForecasts(t *testing.T) (forecasts []*forecast) {
	file, err := os.Open(simulated)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	number := func(text string) float64 {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	seconds := func(text string) time.Duration { return time.Duration(number(text)) * time.Second }
	for _, r := range rows {
		f := &forecast{at: origin.Add(seconds(r[0])), team: r[1], class: r[2], wait: seconds(r[3]), runs: int(number(r[4])), ok: r[5] != ""}
		if f.ok {
			f.forecast = seconds(r[5])
		}
		forecasts = append(forecasts, f)
	}
	return forecasts
}
