package submit_test

import (
	"strings"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/submit"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/queries"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A submitted task becomes what Check predicted.
func TestCheckPredictsTheOutcome(t *testing.T) {
	t.Parallel()
	w := setup(t, 4)
	fits := w.plan(t, "fits", 2, 1)
	if v := w.awaitStart(t, fits, 0); v.Ahead != 0 {
		t.Fatalf("got the prediction %+v", v)
	}
	w.submit(t, fits)
	w.is(t, "fits", func(d queries.Detail) bool { return d.State.UsesQuota() })

	waits := w.plan(t, "waits", 3, 1)
	v := w.check(t, waits)
	if v.Outcome != submit.Waits || v.Verdict.Constraint != explain.Quota || v.Verdict.Shortage.Missing() != 1 {
		t.Fatalf("got the prediction %+v", v)
	}
	w.submit(t, waits)
	d := w.is(t, "waits", func(d queries.Detail) bool { return d.State.Waiting() && d.Verdict.Constraint == explain.Quota })
	if predicted, actual := v.Verdict.Shortage, d.Verdict.Shortage; predicted.FlavorResource != actual.FlavorResource || predicted.Missing() != actual.Missing() || predicted.Available != actual.Available || len(predicted.InQueue) != 1 || predicted.InQueue[0].Name != "fits" {
		t.Errorf("got the shortage %+v, predicted %+v", actual, predicted)
	}
	if v := w.check(t, w.plan(t, "behind", 3, 1)); v.Ahead != 1 {
		t.Errorf("got %d tasks ahead, want 1", v.Ahead)
	}
	fewer := w.plan(t, "fewer", 3, 1)
	fewer.MinPods = 1
	if v := w.awaitStart(t, fewer, 0); !v.Partial || v.Pods != 2 {
		t.Errorf("got the prediction %+v", v)
	}

	never := w.plan(t, "never", 6, 1)
	if v := w.check(t, never); v.Outcome != submit.Never || v.Verdict.Constraint != explain.ExceedsMax || v.MaxPods != 4 {
		t.Fatalf("got the prediction %+v", v)
	}
	w.submit(t, never)
	w.is(t, "never", func(d queries.Detail) bool { return d.Verdict != nil && d.Verdict.Constraint == explain.ExceedsMax })
}

func TestPodLargerThanAnyNode(t *testing.T) {
	t.Parallel()
	w := setup(t, 16)
	v := w.check(t, w.plan(t, "large", 1, 16))
	if v.Outcome != submit.Never || v.Verdict.Fit == nil || v.Verdict.Fit.Largest != 8 || v.Verdict.Fit.Resource != catalog.GPU || v.Verdict.Constraint != explain.PendingEvaluation {
		t.Errorf("got the prediction %+v", v)
	}
	whole := w.plan(t, "whole", 2, 8)
	if v := w.awaitStart(t, whole, 0); whole.PodResources[catalog.Network] != 32 {
		t.Errorf("whole nodes with %v: got the prediction %+v", whole.PodResources, v)
	}
}

// The API server accepts the manifest as it is shown.
func TestManifestIsAccepted(t *testing.T) {
	t.Parallel()
	w := setup(t, 4)
	plan := w.plan(t, "by-hand", 2, 1)
	for name, change := range map[string]func(*submit.Plan){
		"as it is": func(*submit.Plan) {}, "fewer": func(p *submit.Plan) { p.MinPods = 1 },
		"nothing typed": func(p *submit.Plan) { p.Name, p.Image = "", "" },
	} {
		changed := plan
		change(&changed)
		all, err := changed.Manifests()
		if err != nil || all[0].Kind != submit.Job {
			t.Fatal(all, err)
		}
		if out, err := w.TryKubectl(all[0].Text, "create", "--dry-run=server", "--validate=strict", "-f", "-"); err != nil {
			t.Errorf("%s: %s\n%s", name, out, all[0].Text)
		}
	}
}

// A form that is submitted twice creates one job. Another form with its name is
// refused.
func TestSubmittedTwice(t *testing.T) {
	t.Parallel()
	w := setup(t, 4)
	plan := w.plan(t, "once", 1, 1)
	w.submit(t, plan)
	w.submit(t, plan)
	changed := plan
	changed.Image = "example.com/train:2"
	for name, form := range map[string]string{"the same form, changed": "form-once", "another form": "other"} {
		_, err := w.Submit(t.Context(), w.member, plan.Team, changed.Request, form)
		if governance.KindOf(err) != governance.Invalid || !strings.Contains(err.Error(), "name: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	var jobs batchv1.JobList
	if err := w.Client.List(t.Context(), &jobs, client.InNamespace(desired.DefaultNaming.Namespace(w.team))); err != nil || len(jobs.Items) != 1 {
		t.Errorf("got %d jobs, %v, want 1", len(jobs.Items), err)
	}
	if text := auditLog.String(); !strings.Contains(text, "user="+w.member.Name) || !strings.Contains(text, "name=once") {
		t.Errorf("got the audit log %s", text)
	}
}

func TestWhoMaySubmit(t *testing.T) {
	t.Parallel()
	w, other := setup(t, 1), setup(t, 1)
	if _, err := w.Service.Team(t.Context(), other.member, w.team); governance.KindOf(err) != governance.NotFound {
		t.Errorf("a member of another team: got %v, want NotFound", err)
	}
	plan := w.plan(t, "foreign", 1, 1)
	if _, err := w.Check(t.Context(), other.member, plan); governance.KindOf(err) != governance.NotFound {
		t.Errorf("a member of another team: got %v, want NotFound", err)
	}
	if _, err := w.Submit(t.Context(), other.member, plan.Team, plan.Request, "x"); governance.KindOf(err) != governance.Forbidden {
		t.Errorf("a member of another team submits: got %v, want Forbidden", err)
	}
}

// A refusal by Kueue or an admission policy is reported at the field it is about.
func TestRefused(t *testing.T) {
	t.Parallel()
	w := setup(t, 1)
	plan := w.plan(t, strings.Repeat("a", 63), 2, 1) // the names of its pods are longer
	_, err := w.Submit(t.Context(), w.member, plan.Team, plan.Request, "x")
	if governance.KindOf(err) != governance.Invalid || !strings.Contains(err.Error(), "; name: ") {
		t.Errorf("got %v, want an error at name", err)
	}
	if _, err := w.Submit(t.Context(), w.member, plan.Team, submit.Request{Pool: "ml.p5.48xlarge", Pods: 1, PerPod: v1alpha1.Quantities{}}, "x"); governance.KindOf(err) != governance.Invalid {
		t.Errorf("without name and image: got %v, want Invalid", err)
	}
}
