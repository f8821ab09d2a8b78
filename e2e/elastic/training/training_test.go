package training_test

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/e2e/consoles"
	"kuota.dev/kuota/governance/api/v1alpha1"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The plan of the training: 1,440 steps.
const (
	samples     = 4500
	epochs      = 16
	globalBatch = 50 // cannot be divided by three, four or six
	interval    = 50 // steps between two checkpoints
)

// The training of the docs runs in containers, with four pods, then six, then three,
// because Kueue preempts its growth for a task of a team that reclaims its quota, then five.
// Then a worker is killed. The training ends as if nothing had happened: with the loss of an
// uninterrupted run on one worker, with each sample trained on once, and with the pods that
// it began with. Their workers started again once for each of these.
func TestTraining(t *testing.T) {
	if reason := skipped(); reason != "" {
		t.Skip(reason)
	}
	l, console := newLab(t)
	// Percent of the node: a pod of the training takes 16. Beside 30 there is room for four
	// pods, but not for six, and beside the 50 of the other team's quota for three.
	blocker := l.submit("other", "blocker", 30, "sleep", "3600")
	l.waitPod(blocker)
	e := l.elastic("training", 16, func(*v1alpha1.ElasticJob) {})
	l.waitSize(e, 4)
	l.waitSteps(e, 4, 20)
	before := l.basePods(e)

	l.remove(blocker)
	l.waitSize(e, 6)
	l.waitSteps(e, 6, 20)

	submitted := time.Now()
	inference := l.submit("other", "inference", 50, "sleep", "3600")
	l.waitSize(e, 3)
	l.waitPod(inference)
	t.Logf("the other team's pod runs %s after it was submitted", time.Since(submitted).Round(100*time.Millisecond))
	l.waitSteps(e, 3, 20)

	l.submit("other", "small", 10, "sleep", "3600")
	preemptor := l.workload(inference)
	l.remove(inference)
	l.waitSize(e, 5)
	l.waitSteps(e, 5, 20)
	l.killWorker(e)
	l.waitEnd(e)

	if diff := cmp.Diff(before, l.basePods(e)); diff != "" {
		t.Errorf("pods of the base, and restarts of their containers (-before +after):\n%s", diff)
	}
	l.checkEvents(e, preemptor)
	l.checkLogs(console, e)
	lines := parse(l.log(e))
	report(t, lines)
	got, err := trace(lines)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("numbers of workers: %v; positions repeated: %v", got.Worlds, got.Repeated)
	if last := got.Steps[len(got.Steps)-1].To; last != samples*epochs || lines[len(lines)-1].Event != "end" {
		t.Errorf("the training ends at position %d of %d with %q", last, samples*epochs, lines[len(lines)-1].Event)
	}
	if !contains(got.Worlds, 4, 6, 3, 5, 5) {
		t.Errorf("the numbers of workers are %v, want 4, then 6, 3, 5, and 5 after one was killed", got.Worlds)
	}
	if len(got.Worlds) > 6 { // three pods can be there before the fourth
		t.Errorf("the workers started %d times, want at most once for each change: %v", len(got.Worlds), got.Worlds)
	}
	killed := len(got.Repeated) - 1
	for i, n := range got.Repeated {
		switch {
		case i < killed && n > 0:
			t.Errorf("%d positions were repeated after change %d, whose pods had time to save", n, i+1)
		case i == killed && (n == 0 || n > interval*globalBatch):
			t.Errorf("%d positions were repeated after a worker was killed, want some, and at most a checkpoint interval of %d", n, interval*globalBatch)
		}
	}
	if first, last := mean(got.Steps[:50]), mean(got.Steps[len(got.Steps)-50:]); !(last < first/2) {
		t.Errorf("the loss of the first 50 steps is %.4f and of the last %.4f; it must fall", first, last)
	} else {
		t.Logf("mean loss of the first 50 steps %.4f, of the last 50 %.4f", first, last)
	}
	l.compare(got.Steps, l.reference(e))
}

// A checkpoint takes 60 seconds, twice as long as torchrun by itself leaves its workers, and the
// pods have 90: growth is preempted, the checkpoint is written, and the training goes on from it.
func TestGrace(t *testing.T) {
	if reason := skipped(); reason != "" {
		t.Skip(reason)
	}
	l, _ := newLab(t)
	const seconds = 60
	e := l.elastic("training", 40, func(e *v1alpha1.ElasticJob) {
		e.Name = "slow"
		p := &e.Spec.ElasticPolicy
		p.MinReplicas, p.MaxReplicas, p.ReplicaDiscreteValues, p.ReplicaIncrementStep, p.GracefulShutdownTimeoutInSeconds = 1, 2, nil, ptr.To[int32](1), 90
		e.Spec.ScaleConfig = nil
		container := &e.Spec.Template.Spec.Containers[0]
		for name, value := range map[string]string{"CHECKPOINT": "/checkpoints/slow", "CHECKPOINT_STEPS": "100000", "EPOCHS": "1000", "MIN_CHECKPOINT_SECONDS": fmt.Sprint(seconds)} {
			container.Env = slices.DeleteFunc(container.Env, func(v corev1.EnvVar) bool { return v.Name == name })
			container.Env = append(container.Env, corev1.EnvVar{Name: name, Value: value})
		}
	})
	l.waitSize(e, 2)
	l.waitSteps(e, 2, 20)
	began := time.Now()
	small := l.submit("other", "urgent", 50, "sleep", "3600")
	l.waitSize(e, 1)
	l.waitSteps(e, 1, 20)
	l.remove(small)

	lines := parse(l.log(e))
	report(t, lines)
	got, err := trace(lines)
	if err != nil {
		t.Fatal(err)
	}
	if last := got.Repeated[len(got.Repeated)-1]; last != 0 {
		t.Errorf("%d positions were repeated, want none: the checkpoint takes %d s of 90", last, seconds)
	}
	for _, line := range lines {
		if line.Event == "checkpoint" {
			t.Logf("the checkpoint was written %s after the task was submitted that growth was preempted for", line.Time.Sub(began).Round(time.Second))
			if line.Time.Sub(began) < seconds*time.Second {
				t.Error("the checkpoint took less than it should, so that the check above shows nothing")
			}
		}
	}
	if err := l.Client.Delete(t.Context(), e); err != nil {
		t.Fatal(err)
	}
}

//go:embed testdata/cost.py
var cost string

// TestCost prints what the library costs in a step with four workers.
func TestCost(t *testing.T) {
	if reason := skipped(); reason != "" {
		t.Skip(reason)
	}
	l, _ := newLab(t)
	job := l.submit("training", "cost", 50, "sh", "-c", "cat > cost.py <<'END'\n"+cost+"END\nOMP_NUM_THREADS=1 python3 -m kuota.elastic.run --standalone --nproc-per-node=4 cost.py")
	l.waitJob(job)
	for text := range strings.Lines(l.Kubectl(t, "", "logs", "-n", job.Namespace, "job/cost", "--tail=-1")) {
		var got struct {
			Event                        string
			Used, Step, Ratio, Low, High float64
		}
		if strings.HasPrefix(text, "{") && json.Unmarshal([]byte(text), &got) == nil && got.Event == "cost" { // not one of progress
			fmt.Printf("figure elastic_library %.3f ms of processor time in a step of %.3f ms, which takes %.2f %% more with it (95 %% interval %.2f to %.2f)\n", got.Used, got.Step, 100*(got.Ratio-1), 100*(got.Low-1), 100*(got.High-1))
			return
		}
	}
	t.Fatal("the log has no figures")
}

// waitSteps waits until the last n lines of steps are of a number of workers.
func (l *lab) waitSteps(e *v1alpha1.ElasticJob, world, n int) {
	l.Helper()
	l.wait(fmt.Sprintf("%d steps with %d workers", n, world), func(context.Context) error {
		count, last := 0, line{}
		for _, last = range parse(l.log(e)) {
			switch {
			case last.Event == "end":
				l.Fatalf("the training ended before it had %d workers", world)
			case last.Event == "step" && last.World == world:
				count++
			case last.Event == "step":
				count = 0
			}
		}
		if count < n {
			return fmt.Errorf("%d steps; the last line is %+v", count, last)
		}
		return nil
	})
}

// killWorker kills the worker in the second pod of the base, between two checkpoints, and
// waits until the workers have started again.
func (l *lab) killWorker(e *v1alpha1.ElasticJob) {
	l.Helper()
	starts := func() (n, step int) {
		for _, at := range parse(l.log(e)) {
			if at.Event == "start" {
				n++
			}
			step = at.Step
		}
		return n, step
	}
	var before int
	l.wait("a step between two checkpoints", func(context.Context) error {
		var step int
		if before, step = starts(); step%interval < 10 || step%interval > 35 {
			return fmt.Errorf("step %d", step)
		}
		return nil
	})
	pod := l.Kubectl(l.T, "", "get", "pods", "-n", e.Namespace, "-l", "job-name="+e.Name+"-base,batch.kubernetes.io/job-completion-index=1", "-o", "name")
	// The workers are the children of torchrun, which is the first process.
	l.Kubectl(l.T, "", "exec", "-n", e.Namespace, strings.TrimSpace(pod), "--", "sh", "-c", `for p in /proc/[0-9]*/stat; do set -- $(cat $p); if [ "$4" = 1 ]; then kill -KILL $1; fi; done`)
	l.wait("workers after one was killed", func(context.Context) error {
		if n, _ := starts(); n == before {
			return fmt.Errorf("%d starts", n)
		}
		return nil
	})
}

// checkLogs checks that the console shows a member the log that kubectl reads.
func (l *lab) checkLogs(console *consoles.Replica, e *v1alpha1.ElasticJob) {
	l.Helper()
	l.Apply(l, consoles.AdminBinding)
	l.Apply(l, strings.ReplaceAll(asMember, "NAMESPACE", e.Namespace))
	client := consoles.SignIn(l, console)
	pods := l.Kubectl(l, "", "get", "pods", "-n", e.Namespace, "-l", "job-name="+e.Name+"-base,batch.kubernetes.io/job-completion-index=0", "-o", "jsonpath={.items[*].metadata.name}")
	address := console.Address + "/tasks/" + e.Namespace + "/elasticjob/" + e.Name + "/logs"
	want := l.log(e)
	var got string
	l.wait("the permission to read logs", func(ctx context.Context) (err error) {
		got, err = consoles.Get(ctx, client, address+"/download?pod="+pods)
		return err
	})
	if diff := cmp.Diff(strings.TrimSpace(want), strings.TrimSpace(got)); diff != "" {
		l.Errorf("downloaded log (-kubectl +console):\n%s", diff)
	}
	page, err := consoles.Get(l.Context(), client, address+"?timestamps=true&pod="+pods)
	if err != nil {
		l.Fatal(err)
	}
	if !strings.Contains(page, "&#34;event&#34;: &#34;end&#34;") || !strings.Contains(page, "The container has ended.") {
		l.Errorf("page of the log: got no last line, or no sentence after it:\n%s", page)
	}
}

// pod is what must not change of a pod of the base.
type pod struct {
	UID      types.UID
	Restarts int32
}

func (l *lab) basePods(e *v1alpha1.ElasticJob) map[string]pod {
	l.Helper()
	var list corev1.PodList
	if err := l.Client.List(l.Context(), &list, client.InNamespace(e.Namespace), client.MatchingLabels{v1alpha1.LabelElasticJob: e.Name, v1alpha1.LabelElasticIncrement: "0"}); err != nil {
		l.Fatal(err)
	}
	pods := map[string]pod{}
	for _, p := range list.Items {
		pods[p.Name] = pod{p.UID, p.Status.ContainerStatuses[0].RestartCount}
	}
	if len(pods) != 3 {
		l.Fatalf("%d pods of the base, want 3: %v", len(pods), pods)
	}
	return pods
}

// checkEvents checks that Kueue preempted the growth for a Workload.
func (l *lab) checkEvents(e *v1alpha1.ElasticJob, preemptor types.UID) {
	l.Helper()
	var causes []v1alpha1.ScaleCause
	for _, event := range e.Status.ScaleEvents {
		l.Logf("%s from %d to %d: %s", event.Time.UTC().Format(time.TimeOnly), event.From, event.To, event.Cause)
		causes = append(causes, event.Cause)
		if event.Cause == v1alpha1.ScalePreempted && event.ForWorkload != preemptor {
			l.Errorf("preempted for Workload %s, want %s", event.ForWorkload, preemptor)
		}
	}
	want := []v1alpha1.ScaleCause{v1alpha1.ScaleAdmitted, v1alpha1.ScaleIdleCompute, v1alpha1.ScalePreempted, v1alpha1.ScaleIdleCompute, v1alpha1.ScaleSucceeded}
	if diff := cmp.Diff(want, slices.Compact(causes)); diff != "" {
		l.Errorf("causes (-want +got):\n%s", diff)
	}
}

// reference runs the same training on one worker, without a pause, and returns its steps.
func (l *lab) reference(e *v1alpha1.ElasticJob) []line {
	l.Helper()
	job := l.submit("training", "reference", 16, "env", "CHECKPOINT=/tmp/reference", "OMP_NUM_THREADS=1",
		fmt.Sprintf("SAMPLES=%d", samples), fmt.Sprintf("EPOCHS=%d", epochs), fmt.Sprintf("GLOBAL_BATCH=%d", globalBatch),
		"python3", "-m", "kuota.elastic.run", "--standalone", "/train.py")
	l.waitJob(job)
	got, err := trace(parse(l.Kubectl(l.T, "", "logs", "-n", e.Namespace, "job/reference", "--tail=-1")))
	if err != nil {
		l.Fatalf("the reference: %v", err)
	}
	return got.Steps
}

// compare checks that the loss of each step is that of the reference, but for the order in
// which floating point numbers are added.
func (l *lab) compare(got, want []line) {
	l.Helper()
	if len(got) != len(want) {
		l.Fatalf("%d steps, and the reference has %d", len(got), len(want))
	}
	most := 0.0
	for i := range got {
		most = max(most, math.Abs(got[i].Loss-want[i].Loss)/want[i].Loss)
	}
	l.Logf("the loss of a step differs by at most %.1e from an uninterrupted run on one worker", most)
	if !(most < 1e-3) {
		l.Errorf("the loss of a step differs by %.1e from an uninterrupted run on one worker", most)
	}
}

// report logs when workers started, and how long the training paused before.
func report(t *testing.T, lines []line) {
	t.Helper()
	var text bytes.Buffer
	var last time.Time
	for _, l := range lines {
		switch l.Event {
		case "start":
			fmt.Fprintf(&text, "\n%s %d workers at step %d", l.Time.UTC().Format(time.TimeOnly), l.World, l.Step)
			if !last.IsZero() {
				fmt.Fprintf(&text, ", %.1f s after the step before", l.Time.Sub(last).Seconds())
			}
		case "step":
			last = l.Time
		case "stop", "end":
			fmt.Fprintf(&text, "\n%s %s at step %d", l.Time.UTC().Format(time.TimeOnly), l.Event, l.Step)
		}
	}
	t.Log(text.String())
}

func mean(steps []line) float64 {
	sum := 0.0
	for _, s := range steps {
		sum += s.Loss
	}
	return sum / float64(len(steps))
}

// contains reports whether numbers are in a list in their order, with others between.
func contains(list []int, numbers ...int) bool {
	for _, n := range list {
		if len(numbers) > 0 && n == numbers[0] {
			numbers = numbers[1:]
		}
	}
	return len(numbers) == 0
}
