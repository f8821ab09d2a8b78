package truth_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"kuota.dev/kuota/e2e/consoles"
	"kuota.dev/kuota/e2e/podless"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/views"

	"github.com/PuerkitoBio/goquery"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// The load of TestFigures: each team has 43 tasks of one GPU, and quota for four.
const (
	figureTeams = 100
	figureTasks = 43
)

// TestFigures measures advice and previews as pages show them, with 4,300 tasks in one
// cohort on the real Kueue.
func TestFigures(t *testing.T) {
	if os.Getenv("KUOTA_BENCH") == "" {
		t.Skip("measured by make bench")
	}
	c := clustertest.Get(t)
	l := newLab(t, c)
	console := l.start(t, c, "figures")
	f := &load{lab: l, prefix: c.ReadyTeams(t, figureTeams)}
	began := time.Now()
	must(t, f.submit(t.Context()))
	must(t, f.settle(t.Context()))
	t.Logf("%d tasks submitted and tried in %s", figureTeams*figureTasks, time.Since(began).Round(time.Second))

	var warm, all, changed, allChanged, cold, allCold, pages, previews []time.Duration
	advise := func(team, task int, first, done *[]time.Duration) {
		t.Helper()
		page, verified, complete, err := f.advice(t.Context(), team, task)
		must(t, err)
		pages, *first, *done = append(pages, page), append(*first, verified), append(*done, complete)
	}
	advise(0, 20, new([]time.Duration), new([]time.Duration)) // starts the child
	for i := range 20 {
		advise(i, 21, &warm, &all)
	}
	for i := range 20 {
		must(t, f.end(t.Context(), i))
		must(t, f.settle(t.Context()))
		advise(i, 22, &changed, &allChanged)
	}
	for i := range 20 {
		must(t, syscall.Kill(consoles.Simulation(t, console.PID()), syscall.SIGKILL))
		advise(i, 23, &cold, &allCold)
	}
	for i := range 20 {
		took, err := f.previewQuota(t.Context(), i, 5+i)
		must(t, err)
		previews = append(previews, took)
	}
	var arithmetic, simulated []time.Duration
	ticks := time.NewTicker(2 * time.Second) // a person pauses; the console limits who does not
	defer ticks.Stop()
	for i := range 40 {
		<-ticks.C
		first, second, err := f.typeQuota(t.Context(), i, 5+i)
		must(t, err)
		arithmetic, simulated = append(arithmetic, first), append(simulated, second)
	}
	consoles.Figures(t, "effect_arithmetic", arithmetic)
	consoles.Figures(t, "effect_simulated", simulated)
	for name, samples := range map[string][]time.Duration{
		"page_of_waiting_task": pages, "first_change_warm": warm, "all_changes_warm": all, "first_change_after_changes": changed, "all_changes_after_changes": allChanged,
		"first_change_cold": cold, "all_changes_cold": allCold, "preview": previews,
	} {
		consoles.Figures(t, "advice_"+name, samples)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// load is the load of TestFigures.
type load struct {
	*lab
	prefix string // of the teams
}

func (f *load) namespace(team int) string { return fmt.Sprintf("hyperpod-ns-%s-%d", f.prefix, team) }

// submit creates the Jobs, those of a team one after the other.
func (f *load) submit(ctx context.Context) error {
	var creating sync.WaitGroup
	var failed [8]error
	for worker := range failed {
		creating.Go(func() {
			for task := range figureTasks {
				for team := worker; team < figureTeams && failed[worker] == nil; team += len(failed) {
					failed[worker] = f.client.Create(ctx, f.job(team, task))
				}
			}
		})
	}
	creating.Wait()
	return errors.Join(failed[:]...)
}

func (f *load) job(team, task int) *batchv1.Job {
	one := corev1.ResourceList{catalog.GPU: resource.MustParse("1")}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "task-" + strconv.Itoa(task), Namespace: f.namespace(team), Labels: map[string]string{"kueue.x-k8s.io/queue-name": f.namespace(team) + "-localqueue"}},
		Spec: batchv1.JobSpec{Suspend: ptr.To(true), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "train", Image: "example.com/train:1", Resources: corev1.ResourceRequirements{Requests: one, Limits: one}}},
		}}},
	}
	podless.SetUp(job, 0, 0)
	return job
}

// settle waits until Kueue has tried all tasks.
func (f *load) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	for quiet := 0; quiet < 2; {
		select {
		case <-ctx.Done():
			return fmt.Errorf("Kueue has not tried all tasks: %w", ctx.Err())
		case <-time.After(time.Second):
		}
		var workloads kueue.WorkloadList
		if err := f.client.List(ctx, &workloads); err != nil {
			return err
		}
		tried := 0
		for i := range workloads.Items {
			if c := meta.FindStatusCondition(workloads.Items[i].Status.Conditions, kueue.WorkloadQuotaReserved); c != nil && c.Reason != kueue.WorkloadQuotaReservedReasonPendingEvaluation {
				tried++
			}
		}
		var jobs batchv1.JobList
		if err := f.client.List(ctx, &jobs); err != nil {
			return err
		}
		if quiet++; tried < len(jobs.Items) {
			quiet = 0
		}
	}
	return nil
}

// end ends a running task of a team.
func (f *load) end(ctx context.Context, team int) error {
	var jobs batchv1.JobList
	if err := f.client.List(ctx, &jobs, client.InNamespace(f.namespace(team))); err != nil {
		return err
	}
	for i := range jobs.Items {
		if !ptr.Deref(jobs.Items[i].Spec.Suspend, false) {
			return f.client.Delete(ctx, &jobs.Items[i], client.PropagationPolicy(metav1.DeletePropagationBackground))
		}
	}
	return fmt.Errorf("no task of team %d runs", team)
}

// advice opens the page of a waiting task, and returns how long it took until the page
// was read, until its first change was verified, and until all were.
func (f *load) advice(ctx context.Context, team, task int) (page, first, all time.Duration, err error) {
	began := time.Now()
	document, err := f.open(ctx, http.MethodGet, fmt.Sprintf("/tasks/%s/job/task-%d", f.namespace(team), task), nil)
	if err != nil {
		return 0, 0, 0, err
	}
	page = time.Since(began)
	verified := func(part *goquery.Document) bool {
		state := part.Find("#checked").AttrOr("data-state", "")
		if first == 0 && (state == "verified" || part.Find(`#task-changes li[data-verified="true"]`).Length() > 0) {
			first = time.Since(began)
		}
		if state == "failed" {
			err = fmt.Errorf("%s: %s", document.Url.Path, text(part.Find("#checked")))
		}
		return err != nil || state == "verified"
	}
	if streamErr := f.stream(ctx, document, verified); streamErr != nil {
		err = streamErr
	}
	return page, first, time.Since(began), err
}

// previewQuota returns how long the preview of a larger quota of a team takes.
func (f *load) previewQuota(ctx context.Context, team, gpus int) (time.Duration, error) {
	form, err := f.open(ctx, http.MethodGet, fmt.Sprintf("/policies/allocations/%s-%d/edit", f.prefix, team), nil)
	if err != nil {
		return 0, err
	}
	values := formValues(form.Find("form#allocation-form"))
	values.Set("row-0-accelerators", strconv.Itoa(gpus))
	review, err := f.submitForm(ctx, form, "form#allocation-form", values, "review")
	if err != nil {
		return 0, err
	}
	began := time.Now()
	_, err = f.preview(ctx, review)
	return time.Since(began), err
}

// typeQuota measures the effect beside the form of a team after a key: the response to it,
// and the simulation, without the 400 ms for which the script waits before.
func (f *load) typeQuota(ctx context.Context, team, gpus int) (arithmetic, simulated time.Duration, err error) {
	form, err := f.open(ctx, http.MethodGet, fmt.Sprintf("/policies/allocations/%s-%d/edit", f.prefix, team), nil)
	if err != nil {
		return 0, 0, err
	}
	values := formValues(form.Find("form#allocation-form"))
	values.Set("row-0-accelerators", strconv.Itoa(gpus))
	began := time.Now()
	typed, err := f.submitForm(ctx, form, "form#allocation-form", values, "preview")
	if err != nil {
		return 0, 0, err
	}
	arithmetic = time.Since(began)
	if typed.Find("#effect[data-verify]").Length() != 1 {
		return 0, 0, fmt.Errorf("the form asks for no simulation: %s", text(typed.Find("#effect, .field-error, .notice")))
	}
	began = time.Now()
	shown, err := f.submitForm(ctx, form, "form#allocation-form", values, "verify")
	if err == nil && shown.Find("#effect").AttrOr("data-state", "") != string(views.PreviewReady) {
		err = fmt.Errorf("the effect is not known: %s", text(shown.Find("#effect")))
	}
	return arithmetic, time.Since(began), err
}
