package kinds_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/submit"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/actions"
	"kuota.dev/kuota/governance/tasks/queries"

	"k8s.io/apimachinery/pkg/api/resource"
)

// servicesTeam returns a new team with four GPUs, and what its member can submit to it, once
// all kinds of services are among it.
func servicesTeam(t *testing.T) (team, submit.Team) {
	t.Helper()
	if !servicesRun {
		t.Skip("needs the operator of LeaderWorkerSets: run by make verify")
	}
	of := newTeam(t)
	var to submit.Team
	clustertest.Eventually(t, soon, func(ctx context.Context) (err error) {
		to, err = of.submit.Team(ctx, of.member, of.name)
		if err == nil && (len(to.ServiceKinds) != 3 || !to.MayServe(submit.Deployment) || !to.MayForward || to.MayExpose) {
			err = fmt.Errorf("got %v, forward %t, expose %t, want all kinds, port-forward, and no Services", to.ServiceKinds, to.MayForward, to.MayExpose)
		}
		return err
	})
	return of, to
}

// TestSubmitServices submits services as a member: the manifest of each is accepted
// unchanged, the verdict says how many replicas start, and these start.
func TestSubmitServices(t *testing.T) {
	gpu := int64(1)
	request := func(pods int32, s submit.Serving) submit.Request {
		return submit.Request{Name: "serve", Class: "dev-priority", Pool: "ml.p5.48xlarge", Pods: pods, PerPod: v1alpha1.Quantities{Accelerators: &gpu}, Image: "example.com/serve:1", Serving: &s}
	}
	for name, tc := range map[string]struct {
		request                   submit.Request
		kind                      submit.Kind
		wantReplicas, wantMaximum int32 // of the verdict
		wantAdmitted, wantAll     int32
		claim                     string // that Kubernetes creates
	}{
		"inference service":          {request: request(1, submit.Serving{Replicas: 5, Port: 8000}), kind: submit.Deployment, wantReplicas: 4, wantMaximum: 4, wantAdmitted: 4, wantAll: 5},
		"replicas of several pods":   {request: request(2, submit.Serving{Replicas: 3, Port: 8000}), kind: submit.LeaderWorkerSet, wantReplicas: 2, wantMaximum: 2, wantAdmitted: 2, wantAll: 3},
		"notebook":                   {request: request(1, submit.Serving{Replicas: 1, Port: 8888, Notebook: &submit.Notebook{}}), kind: submit.StatefulSet, wantReplicas: 1, wantAdmitted: 1, wantAll: 1},
		"notebook with a new volume": {request: request(1, submit.Serving{Replicas: 1, Port: 8888, Notebook: &submit.Notebook{Size: new(resource.MustParse("1Gi"))}}), kind: submit.StatefulSet, wantReplicas: 1, claim: "home-serve-0"},
	} {
		t.Run(name, func(t *testing.T) {
			of, to := servicesTeam(t)
			plan, wrong := to.Complete(tc.request)
			if len(wrong) > 0 {
				t.Fatal(wrong)
			}
			shown, err := plan.Manifest()
			if err != nil {
				t.Fatal(err)
			}
			if err := of.kubectl(shown.Text, "create", "--dry-run=server", "-f", "-", "--as", of.member.Name); err != nil {
				t.Errorf("the manifest that the member sees: %v\n%s", err, shown.Text)
			}
			var v submit.Verdict
			clustertest.Eventually(t, soon, func(ctx context.Context) (err error) { // until Kueue has observed the quota
				if v, err = of.submit.Check(ctx, of.member, plan); err == nil && v.Outcome != submit.Starts {
					err = fmt.Errorf("the verdict is %+v", v)
				}
				return err
			})
			if v.Replicas != tc.wantReplicas || v.MaxReplicas != tc.wantMaximum {
				t.Errorf("%d replicas would be admitted, and at most %d, want %d and %d", v.Replicas, v.MaxReplicas, tc.wantReplicas, tc.wantMaximum)
			}
			for _, form := range []string{"once", "once"} { // the response can be lost
				done, err := of.submit.Submit(t.Context(), of.member, to, tc.request, form)
				if err != nil || done.Kind != tc.kind || !done.Listed {
					t.Fatalf("got %+v, %v", done, err)
				}
			}
			if _, err := of.submit.Submit(t.Context(), of.member, to, tc.request, "another"); governance.KindOf(err) != governance.Invalid || !strings.Contains(err.Error(), "name: there is a "+string(tc.kind)) {
				t.Errorf("another form of its name: got %v, want an error at name", err)
			}
			if tc.claim != "" { // no node can mount it here
				clustertest.Eventually(t, soon, func(context.Context) error {
					out, err := of.TryKubectl("", "get", "pvc", tc.claim, "-n", of.namespace, "-o", "jsonpath={.spec.resources.requests.storage}")
					if err != nil || out != "1Gi" {
						return fmt.Errorf("the claim has %s (%v), want 1Gi", out, err)
					}
					return nil
				})
				return
			}
			of.is(t, kind{name: string(tc.kind)}, "serve", tasks.Running, func(d queries.Detail) error {
				return hasReplicas(d, int64(tc.wantAdmitted), int64(tc.wantAll))
			})
			scale := func(replicas, saw int32) error {
				return of.actions.Scale(t.Context(), of.member, of.at(kind{name: string(tc.kind)}, "serve"), replicas, saw)
			}
			if tc.kind == submit.StatefulSet {
				if err := scale(2, 1); governance.KindOf(err) != governance.Conflict || !strings.Contains(err.Error(), "at once") {
					t.Errorf("scaling a notebook: got %v, want Conflict", err)
				}
				return
			}
			if err := scale(1, tc.wantAll+1); governance.KindOf(err) != governance.Conflict || !strings.Contains(err.Error(), "meanwhile") {
				t.Errorf("a number that the user did not see: got %v, want Conflict", err)
			}
			for _, step := range []struct{ from, to, wantAdmitted int32 }{{tc.wantAll, 1, 1}, {1, tc.wantAll, tc.wantAdmitted}} {
				r, err := of.actions.Review(t.Context(), of.member, of.at(kind{name: string(tc.kind)}, "serve"), actions.Scale)
				if err != nil || r.Obstacle != "" || r.Replicas != step.from {
					t.Errorf("the review has %d replicas and the obstacle %q (%v), want %d", r.Replicas, r.Obstacle, err, step.from)
				}
				if err := scale(step.to, step.from); err != nil {
					t.Fatal(err)
				}
				of.is(t, kind{name: string(tc.kind)}, "serve", tasks.Running, func(d queries.Detail) error {
					return hasReplicas(d, int64(step.wantAdmitted), int64(step.to))
				})
			}
		})
	}
}

func hasReplicas(d queries.Detail, admitted, wanted int64) error {
	if got, all := d.Replicas(); got != admitted || all != wanted {
		return fmt.Errorf("%d of %d replicas have quota, want %d of %d", got, all, admitted, wanted)
	}
	return nil
}

// A refusal of the API server is reported at the field that it is about.
func TestServicesRefused(t *testing.T) {
	of, to := servicesTeam(t)
	gpu := int64(1)
	r := submit.Request{Name: "serve", Class: "dev-priority", Pool: "ml.p5.48xlarge", Pods: 2, PerPod: v1alpha1.Quantities{Accelerators: &gpu}, Image: "example.com/serve:1", Serving: &submit.Serving{Replicas: 1, Port: 8000}}
	other := to
	other.Queue = "no such queue"
	if _, err := of.submit.Submit(t.Context(), of.member, other, r, "queue"); governance.KindOf(err) != governance.Invalid {
		t.Errorf("a queue that no label can name: got %v, want Invalid", err)
	}
	stranger := governance.User{Name: "stranger@example.com"}
	if _, err := of.submit.Submit(t.Context(), stranger, to, r, "stranger"); governance.KindOf(err) != governance.Forbidden || !strings.Contains(err.Error(), "create a LeaderWorkerSet") {
		t.Errorf("a user who is no member: got %v, want Forbidden", err)
	}
}
