package submit_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/submit"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/queries"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// again reads the plan of a task that is submitted again, as the pages do.
func (w world) again(t *testing.T, kind, name string) submit.Plan {
	t.Helper()
	team, err := w.Service.Team(t.Context(), w.member, w.team)
	if err != nil {
		t.Fatal(err)
	}
	text, err := w.Again(t.Context(), w.member, team, kind, name, "")
	if err != nil {
		t.Fatal(err)
	}
	script, rest := submit.CutScript(text)
	object, wrong := submit.ReadSource([]byte(rest))
	if object == nil {
		t.Fatalf("%v of %s", wrong, text)
	}
	plan, changed, wrong := team.PlanSource(object)
	if len(changed)+len(wrong) > 0 {
		t.Fatalf("%v and %v of %s", changed, wrong, text)
	}
	if plan, wrong = plan.WithScript(script); len(wrong) > 0 {
		t.Fatal(wrong)
	}
	return plan
}

// The form has all values of a task that it submitted, although the API server added
// defaults to it, and Kueue admitted it with fewer pods and a node selector.
func TestSubmitAgain(t *testing.T) {
	t.Parallel()
	w := setup(t, 8)
	first := w.plan(t, "train", 4, 4).Request
	first.MinPods, first.Script, first.Tries, first.ServiceAccount = 1, "#!/usr/bin/env python3\nprint('again')\n", 3, "default"
	first.PerPod.Memory = new(resource.MustParse("64Gi"))
	first.Runtime.Env = []corev1.EnvVar{{Name: "SEED", Value: "1"}}
	first.Volumes = []submit.ClaimMount{{Path: "/data", Claim: "data", ReadOnly: true}}
	team, err := w.Service.Team(t.Context(), w.member, w.team)
	if err != nil {
		t.Fatal(err)
	}
	plan, wrong := team.Complete(first)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	w.submit(t, plan)
	d := w.is(t, "train", func(d queries.Detail) bool { return d.State == tasks.Starting || d.State == tasks.Running })
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error { // Kueue changes the Job after the Workload
		if got := w.Kubectl(t, "", "get", "job", "train", "-n", d.Namespace, "-o", "jsonpath={.spec.parallelism} {.spec.template.spec.nodeSelector}"); !strings.HasPrefix(got, "2 {") {
			return fmt.Errorf("the running job has %s, want 2 pods and a node selector of Kueue", got)
		}
		return nil
	})
	from := w.again(t, "Job", "train")
	got := from.Express()
	want := first
	want.Name = "train-2"
	want.Kind, want.Image = submit.Job, got.Image
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(resource.Quantity{})); diff != "" {
		t.Error(diff)
	}
	form, wrong := team.Complete(got)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	missed, err := w.Differences(t.Context(), w.member, form, from)
	if err != nil || len(missed) > 0 {
		t.Errorf("the form misses %v (%v)", missed, err)
	}
	w.submit(t, form)
	third := w.again(t, "Job", "train-2")
	if third.Name != "train-3" || third.Script != first.Script {
		t.Errorf("got the name %q and the script %q", third.Name, third.Script)
	}
}

// What the form cannot express stays in the manifest. A task of another name or UID, and
// one that the user may not read, is not found.
func TestSubmitAgainAsYAML(t *testing.T) {
	t.Parallel()
	w := setup(t, 8)
	namespace := desired.DefaultNaming.Namespace(w.team)
	w.Apply(t, strings.NewReplacer("NAMESPACE", namespace, "QUEUE", desired.DefaultNaming.LocalQueue(w.team)).Replace(`
apiVersion: batch/v1
kind: Job
metadata:
  name: typed
  namespace: NAMESPACE
  labels: {kueue.x-k8s.io/queue-name: QUEUE, mine: "yes"}
spec:
  suspend: true
  template:
    metadata: {labels: {also: mine}, annotations: {pod-complete.stage.kwok.x-k8s.io/delay: 1h}}
    spec:
      restartPolicy: Never
      hostname: here
      containers: [{name: main, image: "example.com/a:1", resources: {requests: {cpu: "1", memory: 1Gi}}}]
`))
	w.is(t, "typed", func(d queries.Detail) bool { return d.State == tasks.Starting || d.State == tasks.Running })
	from := w.again(t, "Job", "typed")
	text, err := from.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"name: typed-2", "mine: \"yes\"", "also: mine", "hostname: here"} {
		if !strings.Contains(text.Text, want) {
			t.Errorf("the manifest lacks %q", want)
		}
	}
	for _, not := range []string{"controller-uid", "job-name", "selector:", "nodeSelector", "uid:", "status", "last-applied"} {
		if strings.Contains(text.Text, not) {
			t.Errorf("the manifest has %q: %s", not, text.Text)
		}
	}
	team, err := w.Service.Team(t.Context(), w.member, w.team)
	if err != nil {
		t.Fatal(err)
	}
	form, wrong := team.Plan(from.Express())
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	missed, err := w.Differences(t.Context(), w.member, form, from)
	want := []string{ // the form always sets limits and selects a pool
		"metadata.labels.mine", "spec.template.metadata", "spec.template.spec.containers[0].resources.limits", "spec.template.spec.hostname", "spec.template.spec.nodeSelector",
	}
	if diff := cmp.Diff(want, missed); diff != "" || err != nil {
		t.Errorf("%s (%v)", diff, err)
	}
	if _, err := w.SubmitPlan(t.Context(), w.member, from, "again"); err != nil {
		t.Errorf("the manifest is refused: %v", err)
	}
	at := tasks.Address{Namespace: namespace, Kind: "Job", Name: "typed"}
	names, err := w.NamesAgain(t.Context(), w.member, []tasks.Address{at, at})
	if want := []string{"typed-3", "typed-4"}; !slices.Equal(names, want) || err != nil {
		t.Errorf("two more are called %q (%v), want %q", names, err, want)
	}
	if err := w.Repeat(t.Context(), w.member, w.team, at, "typed-4", nil); err != nil {
		t.Errorf("it cannot be repeated: %v", err)
	}
	if err := w.Repeat(t.Context(), w.member, w.team, at, "typed-4", nil); governance.KindOf(err) != governance.Invalid {
		t.Errorf("a second one of that name: got %v", err)
	}
	w.is(t, "typed-4", func(d queries.Detail) bool { return d.State == tasks.Starting || d.State == tasks.Running })
	for name, try := range map[string]func() error{
		"another name": func() error { _, err := w.Again(t.Context(), w.member, team, "Job", "none", ""); return err },
		"another UID":  func() error { _, err := w.Again(t.Context(), w.member, team, "Job", "typed", "none"); return err },
		"another person": func() error {
			_, err := w.Again(t.Context(), governance.User{Name: clustertest.Name("eve")}, team, "Job", "typed", "")
			return err
		},
		"a kind of Kueue": func() error { _, err := w.Again(t.Context(), w.member, team, "Workload", "typed", ""); return err },
	} {
		want := governance.NotFound
		switch name {
		case "another person":
			want = governance.Forbidden
		case "a kind of Kueue":
			want = governance.Invalid
		}
		if err := try(); err == nil || governance.KindOf(err) != want {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if may, err := w.MayAgain(t.Context(), w.member, namespace, "Job"); err != nil || !may {
		t.Errorf("the member may not submit again (%v)", err)
	}
}

// A task that was deleted is submitted again from the manifest that history keeps: with its
// script if the console submitted it, and as it was before Kueue changed it if not.
func TestSubmitDeletedTaskAgain(t *testing.T) {
	t.Parallel()
	w := setup(t, 8)
	store, err := history.New(filepath.Join(t.TempDir(), "history.db"), history.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	service := *w.Service
	service.Manifests = store
	w.Service = &service
	namespace := desired.DefaultNaming.Namespace(w.team)

	first := w.plan(t, "scripted", 1, 1)
	first.Request.Script = "echo kept\n"
	w.submit(t, first)
	w.Apply(t, strings.NewReplacer("NAMESPACE", namespace, "QUEUE", desired.DefaultNaming.LocalQueue(w.team)).Replace(`
apiVersion: batch/v1
kind: Job
metadata: {name: typed, namespace: NAMESPACE, labels: {kueue.x-k8s.io/queue-name: QUEUE}}
spec:
  suspend: true
  template:
    metadata: {annotations: {pod-complete.stage.kwok.x-k8s.io/delay: 1h}}
    spec: {restartPolicy: Never, containers: [{name: main, image: "example.com/a:1", resources: {requests: {cpu: "1"}}}]}
`))
	typed := w.is(t, "typed", func(d queries.Detail) bool { return d.State == tasks.Running })
	keeper, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- (&submit.Keeper{Service: w.Service, Log: slog.New(slog.DiscardHandler)}).Run(keeper) }()
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		kept, err := store.WithManifest(ctx, []string{typed.UID})
		if err == nil && !kept[typed.UID] {
			err = fmt.Errorf("the manifest of %s is not kept", typed.Name)
		}
		return err
	})
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	scripted := w.is(t, "scripted", func(queries.Detail) bool { return true })
	past := history.Task{UID: "past", Namespace: namespace, Kind: "Job", Name: "typed-5", Team: w.team, SubmittedAt: time.Now()}
	if err := store.RecordTasks(t.Context(), []history.Record{{Task: past}}); err != nil {
		t.Fatal(err)
	}
	w.Kubectl(t, "", "delete", "jobs", "scripted", "typed", "-n", namespace)

	team, err := w.Service.Team(t.Context(), w.member, w.team)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ name, uid, want, not string }{
		{"scripted", scripted.UID, "echo kept", "request"}, {"typed", typed.UID, "name: typed-6", "nodeSelector"},
	} {
		if may, err := w.MayAgainPast(t.Context(), w.member, namespace, "Job", tc.uid); err != nil || !may {
			t.Errorf("%s may not be submitted again (%v)", tc.name, err)
		}
		var text string
		clustertest.Eventually(t, soon, func(ctx context.Context) (err error) {
			text, err = w.Again(ctx, w.member, team, "Job", tc.name, tc.uid)
			return err
		})
		if !strings.Contains(text, tc.want) || strings.Contains(text, tc.not) && tc.name == "typed" {
			t.Errorf("%s is\n%s", tc.name, text)
		}
	}
	other := team
	other.Namespace = "another"
	if _, err := w.Again(t.Context(), w.member, other, "Job", "typed", typed.UID); err == nil {
		t.Error("the manifest of another team's task is returned")
	}
	if _, err := w.Again(t.Context(), w.member, team, "Job", "typed", ""); governance.KindOf(err) != governance.NotFound {
		t.Errorf("a deleted task without a UID: %v", err)
	}
	if may, err := w.MayAgainPast(t.Context(), w.member, namespace, "Job", "none"); err != nil || may {
		t.Errorf("a task without a manifest may be submitted again (%v)", err)
	}
}
