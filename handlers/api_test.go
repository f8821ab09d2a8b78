package handlers_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/alerts"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/handlers/teams"
	"kuota.dev/kuota/web"
)

// call sends a request to the API, and reads the answer into a pointer.
func call(t *testing.T, method, address string, body, into any, headers ...string) int {
	t.Helper()
	sent, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, address, bytes.NewReader(sent))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := handlerstest.Client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			t.Fatalf("%s %s: %v: %.300s", method, address, err, text)
		}
	}
	return response.StatusCode
}

const jobText = "apiVersion: batch/v1\nkind: Job\nmetadata: {%s}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: b, resources: {limits: {nvidia.com/gpu: 1}}}]}}}\n"

// TestAPISubmits submits manifests with one and several tasks: all or none.
func TestAPISubmits(t *testing.T) {
	d := &handlerstest.Backend{}
	address := handlerstest.Serve(t, d) + web.APIPrefix + "/teams/vision/tasks"
	one, generated := strings.Replace(jobText, "%s", "name: one", 1), strings.Replace(jobText, "%s", "generateName: lr-", 1)
	var answer, again teams.SubmitAnswer
	if status := call(t, "POST", address+"?dryRun=true", teams.SubmitRequest{Manifest: one}, &answer); status != http.StatusOK || answer.Tasks[0].Verdict == nil || answer.Tasks[0].Created || len(d.SubmitBackend.Plans) > 0 {
		t.Errorf("a dry run: %d, %+v, %d plans", status, answer, len(d.SubmitBackend.Plans))
	}
	d.SubmitBackend.Numbered = true
	for _, numbered := range []teams.SubmitRequest{{Manifest: one, Priority: new(int32(42))}, {Task: &teams.TaskRequest{Name: "n", Image: "i"}, Priority: new(int32(42))}, {Task: &teams.TaskRequest{Name: "n", Image: "i", Class: "42"}}} {
		if status := call(t, "POST", address+"?dryRun=true", numbered, &answer); status != http.StatusOK || !strings.Contains(answer.Tasks[0].Manifest, "priority-class: kuota-priority-42") {
			t.Errorf("a number: %d, %+v", status, answer)
		}
	}
	var refused web.Problem
	if status := call(t, "POST", address+"?dryRun=true", teams.SubmitRequest{Task: &teams.TaskRequest{Name: "n", Image: "i", Class: "training"}, Priority: new(int32(42))}, &refused); status != http.StatusUnprocessableEntity || refused.Errors[0].Field != "task.class" {
		t.Errorf("a number and a class: %d, %+v", status, refused)
	}
	elastic := &teams.ElasticRequest{Max: 4, Times: map[string]int32{"gracefulShutdownTimeoutInSeconds": 90}, ScaleConfig: map[string]map[string]string{"2": {"BATCH": "8"}}}
	grows := teams.SubmitRequest{Task: &teams.TaskRequest{Name: "n", Image: "i", Pods: 2, Elastic: elastic}}
	if status := call(t, "POST", address+"?dryRun=true", grows, &answer); status != http.StatusOK || !strings.Contains(answer.Tasks[0].Manifest, "gracefulShutdownTimeoutInSeconds: 90") || !strings.Contains(answer.Tasks[0].Manifest, "- env:\n    - name: BATCH\n      value: \"8\"\n    replicas: 2") {
		t.Errorf("an elastic task: %d, %+v", status, answer)
	}
	elastic.Times["graceSeconds"] = 1
	if status := call(t, "POST", address+"?dryRun=true", grows, &refused); status != http.StatusUnprocessableEntity || refused.Errors[0].Field != "task.elastic.times" {
		t.Errorf("a time that does not exist: %d, %+v", status, refused)
	}
	recipe := &teams.TaskRequest{Recipe: "vision-model", Name: "n", Env: map[string]string{"EPOCHS": "9"}, Elastic: &teams.ElasticRequest{Max: 2}}
	if status := call(t, "POST", address+"?dryRun=true", teams.SubmitRequest{Task: recipe}, &answer); status != http.StatusOK {
		t.Errorf("a recipe: %d, %+v", status, answer)
	} else if text := answer.Tasks[0].Manifest; !strings.Contains(text, "maxReplicas: 2") || strings.Count(text, "name: EPOCHS") != 1 || !strings.Contains(text, "value: \"9\"") || !strings.Contains(text, "cat >train.py") {
		t.Errorf("the task of a recipe is %s", text)
	}
	recipe.Recipe = "none"
	if status := call(t, "POST", address+"?dryRun=true", teams.SubmitRequest{Task: recipe}, &refused); status != http.StatusNotFound || !strings.Contains(refused.Detail, "vision-model") {
		t.Errorf("an unknown recipe: %d, %+v", status, refused)
	}
	request := teams.SubmitRequest{Manifest: one + "---\n" + generated}
	status := call(t, "POST", address, request, &answer, "Idempotency-Key", "k")
	call(t, "POST", address, request, &again, "Idempotency-Key", "k")
	if status != http.StatusCreated || len(answer.Tasks) != 2 || !answer.Tasks[1].Created || !strings.HasPrefix(answer.Tasks[1].Name, "lr-") || answer.Tasks[1].Name != again.Tasks[1].Name {
		t.Errorf("two tasks: %d, %+v, then %+v", status, answer, again)
	}
	if forms := d.SubmitBackend.Forms; forms[0] != forms[2] || len(forms[0]) != 32 {
		t.Errorf("the keys are %q", forms)
	}
	before := len(d.SubmitBackend.Plans)
	var problem web.Problem
	status = call(t, "POST", address, teams.SubmitRequest{Manifest: one + "---\nkind: Pod\napiVersion: v1\n"}, &problem)
	if status != http.StatusUnprocessableEntity || len(problem.Errors) != 1 || problem.Errors[0].Field != "documents[1].kind" || len(d.SubmitBackend.Plans) != before {
		t.Errorf("one wrong task: %d, %+v", status, problem)
	}
	for _, text := range []string{"", strings.Repeat(one+"---\n", 201)} {
		if status = call(t, "POST", address, teams.SubmitRequest{Manifest: text}, &problem); status != http.StatusUnprocessableEntity || problem.Errors[0].Field != "manifest" {
			t.Errorf("%d bytes: %d, %+v", len(text), status, problem)
		}
	}
}

// TestAPISavesAllocations reviews and saves: the version that was read must be sent.
func TestAPISavesAllocations(t *testing.T) {
	d := handlerstest.WithAllocations(handlerstest.FullAllocation())
	address := handlerstest.Serve(t, d) + web.APIPrefix + "/allocations"
	var saved v1alpha1.ComputeAllocation
	if status := call(t, "GET", address+"/vision", nil, &saved); status != http.StatusOK || saved.Kind != "ComputeAllocation" || saved.ResourceVersion != "7" {
		t.Fatalf("%d, %+v", status, saved)
	}
	saved.Spec.FairShareWeight = 9
	var answer struct{ Saved bool }
	if status := call(t, "PUT", address+"/vision?dryRun=true", saved, &answer); status != http.StatusOK || answer.Saved || len(d.Updated) > 0 {
		t.Errorf("a review: %d, %+v", status, answer)
	}
	if status := call(t, "PUT", address+"/vision?reason=more", saved, &answer); status != http.StatusOK || !answer.Saved || len(d.Updated) != 1 || d.Updated[0].Spec.FairShareWeight != 9 || d.Updated[0].ResourceVersion != "7" {
		t.Errorf("a save: %d, %+v, %+v", status, answer, d.Updated)
	}
	var problem web.Problem
	saved.ResourceVersion = ""
	if status := call(t, "PUT", address+"/vision", saved, &problem); status != http.StatusUnprocessableEntity || problem.Errors[0].Field != "metadata.resourceVersion" {
		t.Errorf("without a version: %d, %+v", status, problem)
	}
	saved.Name = "other"
	if status := call(t, "PUT", address+"/vision", saved, &problem); status != http.StatusUnprocessableEntity || len(d.Updated) != 1 {
		t.Errorf("of another team: %d, %+v", status, problem)
	}
}

// Who is in no team gets an error of the API, and no page.
func TestAPIOutside(t *testing.T) {
	outside := &governance.Error{Kind: governance.Outside, Message: "You are not a member of any team."}
	address := handlerstest.Serve(t, &handlerstest.Backend{ReadError: outside}) + web.APIPrefix
	var problem web.Problem
	if status := call(t, "GET", address+"/tasks", nil, &problem); status != http.StatusForbidden || problem.Detail != outside.Message {
		t.Errorf("got status %d, %+v", status, problem)
	}
}

// TestAPITemplates saves a task as a template, as the page does.
func TestAPITemplates(t *testing.T) {
	d := &handlerstest.Backend{}
	address := handlerstest.Serve(t, d) + web.APIPrefix + "/teams/vision/templates"
	var problem web.Problem
	for _, manifest := range []string{"", "kind: Pod\napiVersion: v1\n"} {
		if status := call(t, "POST", address, map[string]string{"name": "nightly", "manifest": manifest}, &problem); status != http.StatusUnprocessableEntity || len(problem.Errors) == 0 || len(d.SubmitBackend.Saved) > 0 {
			t.Errorf("%q: %d, %+v", manifest, status, problem)
		}
	}
	if status := call(t, "POST", address, map[string]string{"name": "nightly", "manifest": strings.Replace(jobText, "%s", "name: one", 1)}, nil); status != http.StatusOK || !strings.Contains(d.SubmitBackend.Saved["nightly"], "kueue.x-k8s.io/queue-name") {
		t.Errorf("got %d, saved %v", status, d.SubmitBackend.Saved)
	}
	var found struct{ Templates []struct{ Name, Kind string } }
	if status := call(t, "GET", address, nil, &found); status != http.StatusOK || len(found.Templates) != 1 || found.Templates[0].Name != "nightly" {
		t.Errorf("the list: %d, %+v", status, found)
	}
	if status := call(t, "GET", address+"/nightly", nil, nil); status != http.StatusOK {
		t.Errorf("the manifest: %d", status)
	}
	if status := call(t, "DELETE", address+"/nightly", nil, nil); status != http.StatusOK || len(d.SubmitBackend.Saved) > 0 {
		t.Errorf("deleted: %d, %v", status, d.SubmitBackend.Saved)
	}
}

// TestAPISilences silences alerts, ends a silence and tests a receiver, as the page does.
func TestAPISilences(t *testing.T) {
	backend := &handlerstest.AlertsBackend{Admin: true, State: alerts.State{Silences: []history.Silence{{ID: "s1", Rule: "task-waits", Actor: "ada"}}}}
	address := handlerstest.Serve(t, &handlerstest.Backend{Alerts: backend}) + web.APIPrefix + "/alerts"
	var problem web.Problem
	for name, tc := range map[string]struct{ body, field string }{
		"unknown rule": {`{"rule": "x", "for": "1h"}`, "rule"},
		"no duration":  {`{"rule": "task-waits"}`, "for"},
		"too long":     {`{"for": "169h"}`, "for"},
		"negative":     {`{"for": "-1h"}`, "for"},
		"long reason":  {`{"for": "1h", "reason": "` + strings.Repeat("a", 501) + `"}`, "reason"},
	} {
		if status := call(t, "POST", address+"/silences", json.RawMessage(tc.body), &problem); status != http.StatusUnprocessableEntity || len(problem.Errors) != 1 || problem.Errors[0].Field != tc.field || len(backend.Silenced) > 0 {
			t.Errorf("%s: %d, %+v", name, status, problem)
		}
	}
	for _, lasts := range []string{"1w", "30m"} {
		if status := call(t, "POST", address+"/silences", map[string]string{"rule": "task-waits", "team": "vision", "for": lasts, "reason": " known "}, nil); status != http.StatusOK {
			t.Errorf("a silence for %s: %d", lasts, status)
		}
	}
	if n := backend.Silenced; len(n) != 2 || n[0].Team != "vision" || n[0].Reason != "known" || n[0].Until.Sub(n[1].Until).Round(time.Minute) != 7*24*time.Hour-30*time.Minute {
		t.Errorf("silenced %+v", n)
	}
	var list struct {
		Silences []struct{ ID, Rule, Actor string }
	}
	if status := call(t, "GET", address+"/silences", nil, &list); status != http.StatusOK || len(list.Silences) != 1 || list.Silences[0].Rule != "task-waits" {
		t.Errorf("the list: %d, %+v", status, list)
	}
	if status := call(t, "DELETE", address+"/silences/s1", nil, nil); status != http.StatusOK || backend.Ended != "s1" {
		t.Errorf("the end of a silence: %d, %q", status, backend.Ended)
	}
	if status := call(t, "POST", address+"/receivers/ops/test", nil, nil); status != http.StatusOK || backend.Tested != "ops" {
		t.Errorf("a test: %d, %q", status, backend.Tested)
	}
	backend.Admin = false
	if status := call(t, "POST", address+"/silences", map[string]string{"for": "1h"}, &problem); status != http.StatusForbidden || len(backend.Silenced) != 2 {
		t.Errorf("of a reader: %d, %+v", status, problem)
	}
}

// TestAPIKeepsManagedAllocations changes no allocation that another program manages.
func TestAPIKeepsManagedAllocations(t *testing.T) {
	a := handlerstest.FullAllocation()
	a.Labels = map[string]string{"kustomize.toolkit.fluxcd.io/name": "teams", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}
	d := handlerstest.WithAllocations(a)
	address := handlerstest.Serve(t, d) + web.APIPrefix + "/allocations/vision"
	for method, path := range map[string]string{"PUT": "", "DELETE": "", "POST": "/hold"} {
		var problem web.Problem
		if status := call(t, method, address+path, a, &problem); status != http.StatusConflict || !strings.Contains(problem.Detail, "Flux") {
			t.Errorf("%s: %d, %+v", method, status, problem)
		}
	}
	if len(d.Updated) > 0 {
		t.Errorf("updated %v", d.Updated)
	}
}

// TestAPIBoundsSelectors refuses selectors that cost more than a list of tasks.
func TestAPIBoundsSelectors(t *testing.T) {
	address := handlerstest.Serve(t, &handlerstest.Backend{}) + web.APIPrefix + "/tasks/many?dryRun=true"
	for name, selector := range map[string]map[string]any{
		"many names":  {"names": make([]string, 1001)},
		"many teams":  {"teams": make([]string, 1001)},
		"a long text": {"text": strings.Repeat("a", 254)},
	} {
		var problem web.Problem
		if status := call(t, "POST", address, map[string]any{"action": "stop", "selector": selector}, &problem); status != http.StatusUnprocessableEntity || problem.Errors[0].Field != "selector" {
			t.Errorf("%s: %d, %+v", name, status, problem)
		}
	}
}
