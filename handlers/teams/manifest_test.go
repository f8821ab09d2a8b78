package teams_test

import (
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"

	"github.com/PuerkitoBio/goquery"
)

func hyperPodJob(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../governance/imports/trainingjobs/testdata/hyperpod.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// post sends a form, and returns the response with its page.
func post(t *testing.T, address string, values url.Values) (*http.Response, *goquery.Document) {
	t.Helper()
	response, err := handlerstest.Client.PostForm(address, values)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	page, err := goquery.NewDocumentFromReader(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, page
}

// A HyperPodPyTorchJob is read, shown as the ElasticJob that it becomes with what is not
// imported, and submitted.
func TestSubmitManifest(t *testing.T) {
	d := &handlerstest.Backend{}
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+"/teams/vision/submit")
	to := page.Find("a:contains('Submit from a manifest')").AttrOr("href", "")
	_, page = handlerstest.Get(t, address+to)
	htmlcheck.Page(t, page)
	id := page.Find("[name=request-id]").AttrOr("value", "")
	typed := url.Values{"request-id": {id}, "action": {"read"}, "text": {strings.Replace(hyperPodJob(t), "namespace: hyperpod-ns-vision", "namespace: elsewhere", 1)}}
	response, page := post(t, address+to, typed)
	htmlcheck.Page(t, page)
	if response.StatusCode != http.StatusOK || len(d.SubmitBackend.Plans) != 0 {
		t.Fatalf("%s, and %v was submitted", response.Status, d.SubmitBackend.Plans)
	}
	for selector, texts := range map[string][]string{
		"#verdict":               {"It would be admitted now.", "There is quota for its minimum: 2 pods with 8 GPUs"},
		"#manifest-elasticjob":   {"kind: ElasticJob", "namespace: hyperpod-ns-vision", "maxReplicas: 8", "mountPath: /dev/shm"},
		"#manifest-not-imported": {"hyperpodrun", "spec.runPolicy.cleanPodPolicy", "metadata.namespace: is elsewhere; the team's hyperpod-ns-vision is used"},
		"#text":                  {"HyperPodPyTorchJob"},
	} {
		for _, want := range texts {
			if got := page.Find(selector).Text(); !strings.Contains(got, want) {
				t.Errorf("%s lacks %q: %s", selector, want, got)
			}
		}
	}
	typed.Set("action", "save")
	response, _ = post(t, address+to, typed)
	if at := response.Header.Get("Location"); response.StatusCode != http.StatusSeeOther || at != "/tasks/hyperpod-ns-vision/elasticjob/llama" || d.SubmitBackend.Forms[0] != id || id == "" {
		t.Errorf("%s to %q, of the forms %v", response.Status, at, d.SubmitBackend.Forms)
	}
	if e := d.SubmitBackend.Plans[0].ElasticJob(); e.Namespace != "hyperpod-ns-vision" || e.Spec.ElasticPolicy.MaxReplicas != 8 {
		t.Errorf("got %+v", e)
	}
}

// A text that cannot be submitted is kept, with the reasons.
func TestSubmitManifestRefused(t *testing.T) {
	const elastic = "apiVersion: kuota.dev/v1alpha1\nkind: ElasticJob\nmetadata: {name: NAME}\nspec: {elasticPolicy: {minReplicas: 1, maxReplicas: 4, replicaIncrementStep: STEP}, template: {spec: {containers: [{name: a, image: a}]}}}\n"
	job := func(name, step string) string {
		return strings.NewReplacer("NAME", name, "STEP", step).Replace(elastic)
	}
	for name, tc := range map[string]struct {
		text       string
		failure    error
		wantStatus int
		want       []string
	}{
		"nothing":            {text: "", wantStatus: 422, want: []string{"Paste a text"}},
		"another kind":       {text: "kind: CronJob\napiVersion: batch/v1", wantStatus: 422, want: []string{"kind: a CronJob cannot be submitted from a manifest: write a Job"}},
		"an empty task":      {text: "kind: Job\napiVersion: batch/v1", wantStatus: 422, want: []string{"metadata.name: is missing", "spec: has no pod template"}},
		"broken":             {text: "{", wantStatus: 422, want: []string{"has no task", "not valid"}},
		"an allocation":      {text: "apiVersion: kuota.dev/v1alpha1\nkind: ComputeAllocation\nmetadata: {name: vision}\nspec: {}", wantStatus: 422, want: []string{"admins import it under Policies"}},
		"steps that miss":    {text: job("train", "2"), wantStatus: 422, want: []string{"spec.elasticPolicy.replicaIncrementStep: steps of 2 from 1 do not reach 4; use 1 or 3"}},
		"no name":            {text: job("''", "1"), wantStatus: 422, want: []string{"is missing: use lower-case letters"}},
		"a second task":      {text: job("one", "1") + "---\n" + job("two", "1"), wantStatus: 200, want: []string{"Elastic task two was not read"}},
		"refused by servers": {text: job("train", "1"), failure: &governance.Error{Kind: governance.Invalid, Message: "The API server refused it.", Fields: []governance.FieldError{{Path: "spec.template", Message: "no"}}}, wantStatus: 422, want: []string{"The API server refused it.", "spec.template: no"}},
		"another class":      {text: strings.Replace(job("train", "1"), "name: train", "name: train, labels: {kueue.x-k8s.io/priority-class: none}", 1), wantStatus: 422, want: []string{"there is no priority class none"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &handlerstest.Backend{}
			address := handlerstest.Serve(t, d) + "/teams/vision/manifest"
			action := "read"
			if d.SubmitBackend.Failure = tc.failure; tc.failure != nil {
				action = "save"
			}
			response, page := post(t, address, url.Values{"request-id": {"1"}, "action": {action}, "text": {tc.text}})
			htmlcheck.Page(t, page)
			if response.StatusCode != tc.wantStatus || len(d.SubmitBackend.Plans) != 0 {
				t.Errorf("%s, and %v was submitted", response.Status, d.SubmitBackend.Plans)
			}
			if got := strings.TrimSpace(page.Find("#text").Text()); got != strings.TrimSpace(tc.text) {
				t.Errorf("the text became %q", got)
			}
			for _, want := range tc.want {
				if got := page.Find("main").Text(); !strings.Contains(got, want) {
					t.Errorf("%q lacks %q", strings.Join(strings.Fields(got), " "), want)
				}
			}
		})
	}
	d := &handlerstest.Backend{}
	d.SubmitBackend.Reader = true
	if response, _ := handlerstest.Get(t, handlerstest.Serve(t, d)+"/teams/vision/manifest"); response.StatusCode != http.StatusForbidden {
		t.Errorf("a reader gets %s", response.Status)
	}
}

// Pods without requests are reported: Kueue admits them at once, and assigns them no pool.
func TestManifestWithoutRequests(t *testing.T) {
	const job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a, resources: {requests: {REQUESTS}}}]}}}"
	for name, tc := range map[string]struct {
		text string
		want bool
	}{
		"none":        {strings.Replace(job, "REQUESTS", "", 1), true},
		"disk":        {strings.Replace(job, "REQUESTS", "ephemeral-storage: 1Gi", 1), true},
		"vCPU":        {strings.Replace(job, "REQUESTS", "cpu: 1", 1), false},
		"ElasticJob":  {"apiVersion: kuota.dev/v1alpha1\nkind: ElasticJob\nmetadata: {name: a}\nspec: {elasticPolicy: {minReplicas: 1, maxReplicas: 4, replicaIncrementStep: 1}, template: {spec: {containers: [{name: a, image: a}]}}}", true},
		"head of Ray": {"apiVersion: ray.io/v1\nkind: RayJob\nmetadata: {name: a}\nspec: {rayClusterSpec: {headGroupSpec: {template: {spec: {containers: [{name: a, image: a}]}}}, workerGroupSpecs: [{groupName: w, replicas: 2, template: {spec: {containers: [{name: a, image: a, resources: {limits: {nvidia.com/gpu: 1}}}]}}}]}}", true},
		"form's":      {hyperPodJob(t), false},
	} {
		t.Run(name, func(t *testing.T) {
			d := &handlerstest.Backend{}
			_, page := post(t, handlerstest.Serve(t, d)+"/teams/vision/manifest", url.Values{"request-id": {"1"}, "action": {"read"}, "text": {tc.text}})
			verdict := handlerstest.Text(page.Find("#manifest-verdict"))
			if got := strings.Contains(verdict, "request nothing"); got != tc.want || verdict == "" || tc.want && strings.Contains(verdict, "There is quota") {
				t.Errorf("got %q, want a warning: %t", verdict, tc.want)
			}
		})
	}
}

// The form becomes YAML with all its values, and YAML that it can express becomes the form.
func TestEditAsYAML(t *testing.T) {
	d := &handlerstest.Backend{}
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+"/teams/vision/submit")
	edit := page.Find("button[value=edit]").AttrOr("formaction", "")
	typed := url.Values{"request-id": {"1"}, "action": {"edit"}, "kind": {"RayJob"}, "class": {"training-priority"}, "pool": {"ml.p5.48xlarge"}, "pods": {"3"}, "name": {"train"}, "image": {"train:1"},
		"command": {"python 'train.py'"}, "env": {"A=b=c\nD="}, "secrets": {"T=s/k\nall"}, "volumes": {"/data=datasets:ro"}, "shm": {"8"}, "tries": {"2"}, "vcpu": {"3.5"}}
	response, page := post(t, address+edit, typed)
	htmlcheck.Page(t, page)
	text := page.Find("#text").Text()
	if response.StatusCode != http.StatusOK || !strings.Contains(text, "kind: RayJob") || page.Find("#manifest-missed").Length() != 0 || page.Find("#verdict").Length() != 1 {
		t.Fatalf("got %s with %s", response.Status, page.Find("main").Text())
	}
	response, page = post(t, address+edit, url.Values{"request-id": {"1"}, "action": {"form"}, "text": {text}})
	htmlcheck.Page(t, page)
	if response.StatusCode != http.StatusOK || page.Find("#submit-form").AttrOr("action", "") != "/teams/vision/submit" {
		t.Fatalf("got %s with %s", response.Status, page.Find("main").Text())
	}
	for _, id := range []string{"request-id", "pods", "name", "image", "command", "shm", "tries", "vcpu", "env", "secrets", "volumes"} {
		input := page.Find("[name=" + id + "]")
		got := input.AttrOr("value", input.Text())
		if want := typed.Get(id); got != want {
			t.Errorf("%s: got %q, want %q", id, got, want)
		}
	}
	if got := page.Find("#kind option[selected]").AttrOr("value", ""); got != "RayJob" || page.Find("#memory").AttrOr("value", "") != "" {
		t.Errorf("got the kind %q and memory %q", got, page.Find("#memory").AttrOr("value", ""))
	}

	// What the form cannot express stays YAML, is named, and is submitted.
	other := strings.Replace(text, "shutdownAfterJobFinishes: true", "shutdownAfterJobFinishes: true\n  ttlSecondsAfterFinished: 60", 1)
	_, page = post(t, address+edit, url.Values{"request-id": {"1"}, "action": {"form"}, "text": {other}})
	if got := page.Find("#manifest-missed").Text(); !strings.Contains(got, "spec.ttlSecondsAfterFinished") || page.Find("#text").Text() != other {
		t.Errorf("got what is missed %q and the text\n%s", got, page.Find("#text").Text())
	}
	if response, _ = post(t, address+edit, url.Values{"request-id": {"1"}, "action": {"save"}, "text": {other}}); response.Header.Get("Location") != "/tasks/hyperpod-ns-vision/rayjob/train" {
		t.Errorf("got %s to %s", response.Status, response.Header.Get("Location"))
	}
	if m, err := d.SubmitBackend.Plans[0].Manifest(); err != nil || !strings.Contains(m.Text, "ttlSecondsAfterFinished: 60") {
		t.Errorf("submitted %s (%v)", m.Text, err)
	}

	// A form with an error stays, with all its values. An error of the dry run is shown.
	typed.Set("pods", "many")
	response, page = post(t, address+edit, typed)
	if response.StatusCode != http.StatusUnprocessableEntity || page.Find("#pods").AttrOr("value", "") != "many" || page.Find("#pods-error").Length() != 1 {
		t.Errorf("a form with an error: got %s with %s", response.Status, page.Find("main").Text())
	}
	d.SubmitBackend.Refusal = &governance.Error{Kind: governance.Invalid, Message: "The API server refused it.", Fields: []governance.FieldError{{Path: "spec.rayClusterSpec.headGroupSpec.template.spec.nodeName", Message: "no"}}}
	response, page = post(t, address+edit, url.Values{"request-id": {"1"}, "action": {"read"}, "text": {text}})
	if got := page.Find("#manifest-wrong").Text(); response.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(got, "headGroupSpec.template.spec.nodeName: no") || page.Find("#verdict").Length() != 0 {
		t.Errorf("a dry run: got %s with %q", response.Status, got)
	}
}

// The script of a task is a ConfigMap before it, as text too: it goes back into the form, is
// submitted, and its errors are shown.
func TestEditScriptAsYAML(t *testing.T) {
	const script = "#!/usr/bin/env python3\nprint('a')  \n---\nb: 'c'\n"
	for name, change := range map[string]url.Values{"Job": {}, "RayJob": {"kind": {"RayJob"}}, "ElasticJob": {"elastic": {"true"}, "max": {"4"}}} {
		d := &handlerstest.Backend{}
		address := handlerstest.Serve(t, d) + "/teams/vision/manifest"
		typed := url.Values{"request-id": {"1"}, "action": {"edit"}, "pool": {"ml.p5.48xlarge"}, "pods": {"2"}, "name": {"train"}, "image": {"train:1"}, "script": {script}}
		for input, values := range change {
			typed[input] = values
		}
		_, page := post(t, address, typed)
		htmlcheck.Page(t, page)
		text := strings.ReplaceAll(page.Find("#text").Text(), "\n", "\r\n") // as browsers send it
		if !strings.Contains(text, "kind: ConfigMap") || page.Find("#verdict").Length() != 1 {
			t.Fatalf("%s: got %s", name, page.Find("main").Text())
		}
		_, page = post(t, address, url.Values{"request-id": {"1"}, "action": {"form"}, "text": {text}})
		if got := page.Find("#script").Text(); got != script || page.Find("#command").AttrOr("value", "") != "" {
			t.Errorf("%s: got the script %q in %s", name, got, page.Find("main").Text())
		}
		post(t, address, url.Values{"request-id": {"1"}, "action": {"save"}, "text": {text}})
		if plans := d.SubmitBackend.Plans; len(plans) != 1 || plans[0].Script != script || string(plans[0].Kind) != name {
			t.Errorf("%s: submitted %+v", name, plans)
		}
		for old, wrong := range map[string]string{
			"name: train-script":             "metadata.name: of the ConfigMap must be train-script",
			"kuota.dev/script-of: train":     "the label kuota.dev/script-of: train, and nothing else",
			"#!/usr/bin/env python3\\nprint": "data.script: the first line must name its interpreter by the whole path",
		} {
			new := map[bool]string{true: "#!python3\\nprint", false: "name: other"}[strings.HasPrefix(old, "#!")]
			if strings.HasPrefix(old, "kuota") {
				new = "kuota.dev/script-of: other"
			}
			_, page = post(t, address, url.Values{"request-id": {"1"}, "action": {"read"}, "text": {strings.Replace(text, old, new, 1)}})
			if got := page.Find("#manifest-wrong").Text(); !strings.Contains(got, wrong) {
				t.Errorf("%s with %q: got %q, want %q", name, new, got, wrong)
			}
		}
	}
}
