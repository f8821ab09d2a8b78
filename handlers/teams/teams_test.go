package teams_test

import (
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/simulate/worker"
	"kuota.dev/kuota/governance/submit"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"

	"github.com/PuerkitoBio/goquery"
)

// sendForm sends the form of a page with some inputs changed.
func sendForm(t *testing.T, address string, page *goquery.Document, change map[string]string) (*http.Response, *goquery.Document) {
	t.Helper()
	values := url.Values{}
	page.Find("#submit-form").Find("input[name], select[name]").Each(func(_ int, input *goquery.Selection) {
		value := input.AttrOr("value", "")
		if input.Is("select") {
			value = input.Find("option[selected]").AttrOr("value", "")
		}
		if !input.Is("[type=checkbox]") {
			values.Set(input.AttrOr("name", ""), value)
		}
	})
	for name, value := range change {
		values.Set(name, value)
	}
	response, err := handlerstest.Client.PostForm(address, values)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := goquery.NewDocumentFromReader(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, answer
}

func TestSubmitPage(t *testing.T) {
	d := &handlerstest.Backend{}
	address := handlerstest.Serve(t, d) + "/teams/vision/submit"
	_, page := handlerstest.Get(t, address+"?pods=2&accelerators=4&name=train")
	htmlcheck.Page(t, page)
	for selector, want := range map[string]string{"#pods": "2", "#accelerators": "4", "#name": "train"} {
		if got := page.Find(selector).AttrOr("value", ""); got != want {
			t.Errorf("%s is %q, want %q", selector, got, want)
		}
	}
	for selector, want := range map[string]string{"#vcpu": "96", "#memory": "1024"} {
		if got := page.Find(selector).AttrOr("placeholder", ""); got != want {
			t.Errorf("%s takes %q, want %q", selector, got, want)
		}
	}
	if got := page.Find("#class option[selected]").AttrOr("value", ""); got != "training-priority" {
		t.Errorf("the class is %q", got)
	}
	text := page.Find("#manifest-job").Text()
	for _, want := range []string{"name: train", "parallelism: 2", `nvidia.com/gpu: "4"`, "memory: 1Ti", "YOUR_IMAGE", "hyperpod-ns-vision-localqueue"} {
		if !strings.Contains(text, want) {
			t.Errorf("the manifest lacks %q:\n%s", want, text)
		}
	}
	if page.Find("#manifest-rayjob").Length() != 0 || page.Find("#manifest-pytorchjob").Length() != 0 || !strings.Contains(page.Find("#verdict").Text(), "It would be admitted now.") {
		t.Errorf("the page shows %s", page.Find("main").Text())
	}
	team := strings.TrimSuffix(address, "/submit")
	_, page = handlerstest.Get(t, team)
	htmlcheck.Page(t, page)
	for _, link := range []string{"/policies/allocations/vision", "/tasks?team=vision", "/teams/vision/submit"} {
		if page.Find(`a[href="`+link+`"]`).Length() == 0 {
			t.Errorf("no link to %s", link)
		}
	}
	// The form was once part of the page of the team.
	response, _ := handlerstest.Get(t, team+"?pods=2&name=train")
	if to := response.Header.Get("Location"); response.StatusCode != http.StatusSeeOther || to != "/teams/vision/submit?name=train&pods=2" {
		t.Errorf("values of the form: %s to %q", response.Status, to)
	}

	d.SubmitBackend.Reader = true
	_, page = handlerstest.Get(t, address)
	htmlcheck.Page(t, page)
	if page.Find("#submit-form").Length() != 0 || page.Find("#manifest-job").Length() != 0 || !strings.Contains(page.Find("#manifests").Text(), "cannot create tasks of any kind") {
		t.Error("a reader gets a form or a manifest")
	}
	if response, _ := sendForm(t, address, page, map[string]string{"action": "save"}); response.StatusCode != http.StatusForbidden {
		t.Errorf("a reader's task is answered %s", response.Status)
	}
	d.SubmitBackend.Hidden = true
	if response, _ := handlerstest.Get(t, address); response.StatusCode != http.StatusNotFound {
		t.Errorf("a team that is not for one is answered %s", response.Status)
	}
}

// A task is of one of the kinds that the user can create. Beside the form is the manifest of
// that kind; what only Jobs have is left out.
func TestSubmitKind(t *testing.T) {
	d := &handlerstest.Backend{}
	address := handlerstest.Serve(t, d) + "/teams/vision/submit"
	_, page := handlerstest.Get(t, address)
	var kinds []string
	page.Find("#kind option").Each(func(_ int, o *goquery.Selection) { kinds = append(kinds, o.AttrOr("value", "")) })
	if !slices.Equal(kinds, []string{"Job", "RayJob"}) {
		t.Errorf("got the kinds %v, want Job and RayJob: an ElasticJob is a Job that is elastic", kinds)
	}
	typed := map[string]string{"action": "preview", "name": "train", "image": "train:1", "kind": "RayJob", "elastic": "true", "least": "1", "pods": "2"}
	_, page = sendForm(t, address, page, typed)
	htmlcheck.Page(t, page)
	if page.Find("#manifest-rayjob").Length() != 1 || page.Find("#manifest-job, #manifest-elasticjob, #manifest-hyp").Length() != 0 || !strings.Contains(page.Find("#submit-section").Text(), "as a RayJob, in your name") {
		t.Errorf("the page shows %s", page.Find("main").Text())
	}
	typed["kind"] = "JobSet"
	if _, page = sendForm(t, address, page, typed); !strings.Contains(page.Find("#kind-error").Text(), "no permission to create a JobSet") {
		t.Errorf("a kind that the user cannot create: got %q", page.Find("#kind-error").Text())
	}
	typed["kind"], typed["action"] = "RayJob", "save"
	response, _ := sendForm(t, address, page, typed)
	if to := response.Header.Get("Location"); to != "/tasks/hyperpod-ns-vision/rayjob/train" {
		t.Errorf("got %s to %q, want the page of the RayJob", response.Status, to)
	}
	if r := d.SubmitBackend.Submitted[0]; r.Kind != submit.RayJob || r.Elastic != nil || r.MinPods != 0 {
		t.Errorf("got the request %+v, want a RayJob", r)
	}
}

// A task uses the queue of the share that is chosen, of those that the user may use.
func TestSubmitToShare(t *testing.T) {
	d := &handlerstest.Backend{}
	address := handlerstest.Serve(t, d) + "/teams/vision/submit"
	if _, page := handlerstest.Get(t, address); page.Find("#share").Length() != 0 {
		t.Error("a team without shares has a choice")
	}
	d.SubmitBackend.Shares = []submit.Share{{Name: "nightly", Queue: "hyperpod-ns-vision-share-nightly"}}
	_, page := handlerstest.Get(t, address)
	htmlcheck.Page(t, page)
	typed := map[string]string{"action": "preview", "name": "train", "image": "train:1", "share": "nightly"}
	_, page = sendForm(t, address, page, typed)
	if got := page.Find("#manifest-job").Text(); !strings.Contains(got, "queue-name: hyperpod-ns-vision-share-nightly") || page.Find("#share option[selected]").Text() != "nightly" {
		t.Errorf("got the manifest %s", got)
	}
	typed["share"] = "research"
	if _, page = sendForm(t, address, page, typed); !strings.Contains(page.Find("#share-error").Text(), "no member of it") {
		t.Errorf("another share: got %q", page.Find("#share-error").Text())
	}
	typed["share"], typed["action"] = "nightly", "edit"
	_, page = sendForm(t, strings.TrimSuffix(address, "submit")+"manifest", page, typed)
	response, page := post(t, strings.TrimSuffix(address, "submit")+"manifest", url.Values{"action": {"form"}, "text": {page.Find("#text").Text()}})
	if response.StatusCode != http.StatusOK || page.Find("#share option[selected]").Text() != "nightly" {
		t.Errorf("as YAML and back: got %s with %s", response.Status, page.Find("main").Text())
	}
}

func TestSubmit(t *testing.T) {
	d := &handlerstest.Backend{}
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+"/teams/vision/submit")
	typed := map[string]string{"action": "save", "name": "train", "image": "train:1", "pods": "4", "accelerators": "2", "least": "2", "limit": "1h30m", "command": "python train.py"}
	response, _ := sendForm(t, address+"/teams/vision/submit", page, typed)
	if to := response.Header.Get("Location"); response.StatusCode != http.StatusSeeOther || to != "/tasks/hyperpod-ns-vision/job/train" {
		t.Errorf("%s to %q", response.Status, to)
	}
	r := d.SubmitBackend.Submitted[0]
	if r.Name != "train" || r.Pods != 4 || *r.PerPod.Accelerators != 2 || r.PerPod.VCPU != nil || r.MinPods != 2 || r.TimeLimit != 5400 || r.Class != "training-priority" || d.SubmitBackend.Forms[0] == "" {
		t.Errorf("%+v was submitted", r)
	}
	d.SubmitBackend.Unlisted = true
	response, _ = sendForm(t, address+"/teams/vision/submit", page, typed)
	to := response.Header.Get("Location")
	if to != "/teams/vision?submitted=train" || d.SubmitBackend.Forms[0] != d.SubmitBackend.Forms[1] {
		t.Errorf("%s to %q, of the forms %v", response.Status, to, d.SubmitBackend.Forms)
	}
	_, page = handlerstest.Get(t, address+to)
	if page.Find(`.notice a[href="/tasks/hyperpod-ns-vision/job/train"]`).Length() != 1 {
		t.Error("nothing leads to the task")
	}
}

// The default time limit of the class is the placeholder of an empty input, and in the
// manifests.
func TestDefaultTimeLimit(t *testing.T) {
	address := handlerstest.Serve(t, &handlerstest.Backend{}) + "/teams/vision/submit"
	for query, want := range map[string]string{"?class=inference-priority": "1h", "?class=training-priority": ""} {
		_, page := handlerstest.Get(t, address+query)
		input := page.Find("#limit")
		if got := input.AttrOr("placeholder", ""); got != want || input.AttrOr("value", "") != "" {
			t.Errorf("%s: the default is %q, want %q", query, got, want)
		}
		if named := strings.Contains(page.Find("#manifest-job").Text(), `kueue.x-k8s.io/max-exec-time-seconds: "3600"`); named != (want != "") {
			t.Errorf("%s: the manifest is %s", query, page.Find("#manifest-job").Text())
		}
	}
}

// An elastic task is submitted with the typed sizes, and the page of the ElasticJob is
// opened.
func TestSubmitElastic(t *testing.T) {
	d := &handlerstest.Backend{}
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+"/teams/vision/submit?elastic=true&pods=4&accelerators=8&max=16")
	htmlcheck.Page(t, page)
	for selector, want := range map[string]string{"#max": "8", "#step": "4", "#scaling": "60", "#graceful": "30"} {
		if got := page.Find(selector).AttrOr("placeholder", ""); got != want {
			t.Errorf("%s takes %q, want %q", selector, got, want)
		}
	}
	text := page.Find("#manifest-elasticjob").Text()
	for _, want := range []string{"kind: ElasticJob", "minReplicas: 4", "maxReplicas: 16", "replicaIncrementStep: 4", "scalingTimeoutInSeconds: 60"} {
		if !strings.Contains(text, want) {
			t.Errorf("the manifest lacks %q:\n%s", want, text)
		}
	}
	if line := page.Find("#manifests"); page.Find("#manifest-job").Length() != 0 || !strings.Contains(line.Text(), "--max-node-count 16") || !strings.Contains(line.Text(), submit.HyperPodOmits) {
		t.Errorf("got the manifests %s", line.Text())
	}
	if label := page.Find("label[for=pods]").Text(); !strings.Contains(label, "Minimum pods") {
		t.Errorf("the pods are labeled %q", label)
	}

	typed := map[string]string{"action": "save", "name": "train", "image": "train:1", "elastic": "true", "pods": "2", "least": "1", "max": "", "step": "", "sizes": "2, 4 8", "scaling": "0", "graceful": "600"}
	response, _ := sendForm(t, address+"/teams/vision/submit", page, typed)
	if to := response.Header.Get("Location"); response.StatusCode != http.StatusSeeOther || to != "/tasks/hyperpod-ns-vision/elasticjob/train" {
		t.Fatalf("%s to %q", response.Status, to)
	}
	r := d.SubmitBackend.Submitted[0]
	if e := r.Elastic; r.Pods != 2 || r.MinPods != 0 || e == nil || e.MaxReplicas != 0 || e.ReplicaIncrementStep != nil || !slices.Equal(e.ReplicaDiscreteValues, []int32{2, 4, 8}) || e.ScalingTimeoutInSeconds != 0 || e.GracefulShutdownTimeoutInSeconds != 600 || e.BackoffMaxSeconds != 3600 {
		t.Errorf("got the request %+v with %+v", r, e)
	}
	d.SubmitBackend.Unlisted = true
	response, _ = sendForm(t, address+"/teams/vision/submit", page, typed)
	_, page = handlerstest.Get(t, address+response.Header.Get("Location"))
	if page.Find(`.notice a[href="/tasks/hyperpod-ns-vision/elasticjob/train"]`).Length() != 1 {
		t.Errorf("nothing at %s leads to the task", response.Header.Get("Location"))
	}
}

// What containers get is read from lines, and shown as typed.
func TestSubmitRuntime(t *testing.T) {
	d := &handlerstest.Backend{}
	address := handlerstest.Serve(t, d) + "/teams/vision/submit"
	_, page := handlerstest.Get(t, address)
	if page.Find("#runtime[open]").Length() != 0 {
		t.Error("the fields are open at first")
	}
	typed := map[string]string{
		"action": "preview", "name": "train", "image": "train:1", "pods": "2", "accelerators": "8", "env": "EPOCHS=10\n\nURL=https://a?b=c", "secrets": "HF_TOKEN=hugging-face/token\r\nwandb",
		"volumes": "/data/=datasets:ro", "shm": "8", "account": "trainer", "processes": "4", "tries": "1",
	}
	_, page = sendForm(t, address, page, typed)
	text := page.Find("#manifest-job").Text()
	for _, want := range []string{"value: https://a?b=c", "key: token", "name: wandb", "mountPath: /data\n", "readOnly: true", "sizeLimit: 8Gi", "medium: Memory", "serviceAccountName: trainer", "backoffLimit: 0", `value: "4"`} {
		if !strings.Contains(text, want) {
			t.Errorf("the manifest lacks %q:\n%s", want, text)
		}
	}
	if got := page.Find("#manifests").Text(); page.Find("#runtime[open]").Length() != 1 || !strings.Contains(got, "The command leaves out the environment, volumes") {
		t.Errorf("got %s", got)
	}
	typed["action"] = "save"
	if response, _ := sendForm(t, address, page, typed); response.StatusCode != http.StatusSeeOther {
		t.Fatalf("got %s", response.Status)
	}
	if r := d.SubmitBackend.Submitted[0]; len(r.Env) != 3 || len(r.EnvFrom) != 1 || !r.Volumes[0].ReadOnly || r.SharedMemory.String() != "8Gi" || r.Tries != 1 {
		t.Errorf("got %+v", r.Runtime)
	}
}

// A script is submitted as it was pasted, or as a file, with the ends of lines that its
// interpreter can read.
func TestSubmitScript(t *testing.T) {
	for name, tc := range map[string]struct {
		text, file string
		want       string // in the form, and submitted
		wantError  string
	}{
		"pasted":                 {text: "#!/bin/sh\r\necho  1 \r\n", want: "#!/bin/sh\necho  1 \n"},
		"a file":                 {file: "\ufeff\n\n#!/usr/bin/env python3\r\nprint(1)", want: "#!/usr/bin/env python3\nprint(1)"},
		"spaces only":            {text: " \r\n \r\n"},
		"both":                   {text: "a", file: "b", want: "a", wantError: "Give either text or a file"},
		"a file that is no text": {file: "a\xff", want: "a\xff", wantError: "UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			d := &handlerstest.Backend{}
			address := handlerstest.Serve(t, d) + "/teams/vision/submit"
			_, page := handlerstest.Get(t, address)
			typed := map[string]string{"action": "preview", "name": "train", "image": "train:1", "script": tc.text, "script-file": tc.file}
			_, page = sendForm(t, address, page, typed)
			htmlcheck.Page(t, page)
			if got := strings.TrimPrefix(page.Find("#script").Text(), "\n"); strings.ToValidUTF8(got, "?") != strings.ToValidUTF8(tc.want, "?") || page.Find("#script-fields[open]").Length() == 0 && tc.want != "" {
				t.Errorf("the form has the script %q, want %q", got, tc.want)
			}
			if got := page.Find("#script-error").Text(); !strings.Contains(got, tc.wantError) || tc.wantError == "" && got != "" {
				t.Errorf("got the error %q, want %q", got, tc.wantError)
			}
			if text := page.Find("#manifest-job").Text(); strings.Contains(text, "kind: ConfigMap") != (tc.wantError == "" && tc.want != "") {
				t.Errorf("got the manifest\n%s", text)
			}
			typed["action"] = "save"
			response, _ := sendForm(t, address, page, typed)
			if tc.wantError != "" {
				if response.StatusCode != http.StatusUnprocessableEntity {
					t.Errorf("got %s", response.Status)
				}
				return
			}
			if len(d.SubmitBackend.Submitted) != 1 || d.SubmitBackend.Submitted[0].Script != tc.want {
				t.Errorf("got %s, submitted %+v", response.Status, d.SubmitBackend.Submitted)
			}
		})
	}
	d := &handlerstest.Backend{}
	d.SubmitBackend.Commands = true
	address := handlerstest.Serve(t, d) + "/teams/vision/submit"
	if _, page := handlerstest.Get(t, address); page.Find("#script, #script-file").Length() > 0 {
		t.Error("a user who cannot create ConfigMaps is offered a script")
	}
	if _, page := handlerstest.Get(t, address+"?script=true"); !strings.Contains(page.Find("#script-error").Text(), "no permission") {
		t.Error("a script in the address is not refused at its field")
	}
}

// Each other pool is a checkbox. A chosen one is submitted, and one that cannot be combined
// is an error at the checkboxes.
func TestSubmitToAnyOfPools(t *testing.T) {
	d := &handlerstest.Backend{}
	for _, name := range []string{"ml.g6.12xlarge", "ml.c5.2xlarge"} {
		instance, _ := catalog.Known(name)
		d.SubmitBackend.MorePools = append(d.SubmitBackend.MorePools, submit.QueuePool{
			Pool: catalog.Pool{Name: name, Instance: instance, Types: []string{name}}, NodeSelector: map[string]string{catalog.InstanceTypeLabel: name},
		})
	}
	address := handlerstest.Serve(t, d) + "/teams/vision/submit"
	_, page := handlerstest.Get(t, address+"?other-pools=ml.g6.12xlarge")
	htmlcheck.Page(t, page)
	if boxes := page.Find("[name=other-pools]"); boxes.Length() != 2 || page.Find("[name=other-pools][checked]").AttrOr("value", "") != "ml.g6.12xlarge" {
		t.Errorf("got %d boxes", boxes.Length())
	}
	if text := page.Find("#manifest-job").Text(); !strings.Contains(text, "nodeSelectorTerms") || page.Find("#vcpu").AttrOr("placeholder", "") != "12" {
		t.Errorf("vCPU is %q by default, in\n%s", page.Find("#vcpu").AttrOr("placeholder", ""), text)
	}
	typed := map[string]string{"action": "save", "name": "train", "image": "train:1", "other-pools": "ml.c5.2xlarge"}
	response, wrong := sendForm(t, address, page, typed)
	htmlcheck.Page(t, wrong)
	if got := wrong.Find("#other-pools-error").Text(); response.StatusCode != 422 || !strings.Contains(got, "has other accelerators") || wrong.Find("[value='ml.c5.2xlarge'][checked]").Length() != 1 {
		t.Errorf("got %s with %q", response.Status, got)
	}
	typed["other-pools"] = "ml.g6.12xlarge"
	response, _ = sendForm(t, address, page, typed)
	if response.StatusCode != http.StatusSeeOther || !slices.Equal(d.SubmitBackend.Submitted[0].OtherPools, []string{"ml.g6.12xlarge"}) {
		t.Errorf("got %s and %+v", response.Status, d.SubmitBackend.Submitted)
	}
}

// Typed values are kept, and each error is shown at its field.
func TestSubmitRefused(t *testing.T) {
	typed := map[string]string{"action": "save", "name": "train", "image": "train:1", "command": "python train.py"}
	for name, tc := range map[string]struct {
		change  map[string]string
		failure error
		status  int
		field   string // field with the error; empty for none
		says    string
	}{
		"no name":              {change: map[string]string{"name": ""}, status: 422, field: "name", says: "Give the task a name."},
		"no such name":         {change: map[string]string{"name": "Train!"}, status: 422, field: "name", says: "lower-case"},
		"not a number":         {change: map[string]string{"pods": "two"}, status: 422, field: "pods", says: "Not a number"},
		"no pods":              {change: map[string]string{"pods": "0"}, status: 422, field: "pods", says: "from 1 to 10,000"},
		"fewer than none":      {change: map[string]string{"least": "0"}, status: 422, field: "least", says: "1 or more"},
		"no unit":              {change: map[string]string{"limit": "90"}, status: 422, field: "limit", says: "Has no unit"},
		"above the maximum":    {change: map[string]string{"class": "inference-priority", "limit": "3h"}, status: 422, field: "limit", says: "Must be at most 2h in priority class inference-priority."},
		"a class that is gone": {change: map[string]string{"class": "old-priority"}, status: 422, field: "class", says: "old-priority"},
		"a pool that is gone":  {change: map[string]string{"pool": "ml.g5.2xlarge"}, status: 422, field: "pool", says: "ml.g5.2xlarge"},
		"max below min":        {change: map[string]string{"elastic": "true", "pods": "4", "max": "2"}, status: 422, field: "max", says: "Is smaller than the minimum of 4 pods."},
		"no maximum":           {change: map[string]string{"elastic": "true", "max": "0"}, status: 422, field: "max", says: "from 1 to 10,000"},
		"step that misses":     {change: map[string]string{"elastic": "true", "pods": "4", "max": "16", "step": "5"}, status: 422, field: "step", says: "use 4 or 6"},
		"step and sizes":       {change: map[string]string{"elastic": "true", "pods": "4", "max": "16", "step": "4", "sizes": "4, 16"}, status: 422, field: "sizes", says: "Give either a step or a list of sizes."},
		"sizes of no number":   {change: map[string]string{"elastic": "true", "sizes": "1, many"}, status: 422, field: "sizes", says: "Not a number"},
		"elastic name":         {change: map[string]string{"elastic": "true", "name": "1-train"}, status: 422, field: "name", says: "start with a letter"},
		"no interpreter":       {change: map[string]string{"command": "", "script": "#!python3\n"}, status: 422, field: "script", says: "by the whole path"},
		"two programs":         {change: map[string]string{"script": "true"}, status: 422, field: "script", says: "either a command or a script"},
		"no = in it":           {change: map[string]string{"env": "A=1\nB"}, status: 422, field: "env", says: "Line 2 has no =; write NAME=value."},
		"no such secret":       {change: map[string]string{"secrets": "A=b"}, status: 422, field: "secrets", says: "Line 1 is neither NAME=secret/key"},
		"no path":              {change: map[string]string{"volumes": "data=claim"}, status: 422, field: "volumes", says: "is no path to mount at"},
		"no size":              {change: map[string]string{"shm": "big"}, status: 422, field: "shm", says: "Not a number"},
		"no such account":      {change: map[string]string{"account": "A b"}, status: 422, field: "account", says: "lower-case"},
		"no processes":         {change: map[string]string{"processes": "0"}, status: 422, field: "processes", says: "from 1 to 1,000"},
		"no tries":             {change: map[string]string{"tries": "many"}, status: 422, field: "tries", says: "Not a number"},
		"endless grace":        {change: map[string]string{"elastic": "true", "graceful": "90000"}, status: 422, field: "graceful", says: "86,400"},
		"taken":                {failure: &governance.Error{Kind: governance.Invalid, Fields: []governance.FieldError{{Path: "name", Message: "there is a job train already"}}}, status: 422, field: "name", says: "There is a job train already."},
		"not for one":          {failure: &governance.Error{Kind: governance.Forbidden, Message: "You may not submit."}, status: 403, says: "You may not submit."},
		"the cluster is away":  {failure: &governance.Error{Kind: governance.Unavailable, Message: "The cluster cannot be reached."}, status: 503, says: "The cluster cannot be reached."},
	} {
		t.Run(name, func(t *testing.T) {
			d := &handlerstest.Backend{}
			address := handlerstest.Serve(t, d) + "/teams/vision/submit"
			_, page := handlerstest.Get(t, address)
			d.SubmitBackend.Failure = tc.failure
			sent := map[string]string{}
			for _, values := range []map[string]string{typed, tc.change} {
				for name, value := range values {
					sent[name] = value
				}
			}
			response, answer := sendForm(t, address, page, sent)
			htmlcheck.Page(t, answer)
			if response.StatusCode != tc.status || len(d.SubmitBackend.Submitted) != 0 {
				t.Errorf("%s, and %v was submitted", response.Status, d.SubmitBackend.Submitted)
			}
			if wrong := answer.Find(".error").Length(); tc.field == "" && wrong != 0 {
				t.Errorf("%d inputs are marked", wrong)
			}
			said := answer.Find("#form-errors").Text()
			if tc.field != "" {
				said = answer.Find("#" + tc.field + "-error").Text()
			}
			if !strings.Contains(said, tc.says) {
				t.Errorf("got %q in %s", said, answer.Find("#form-errors").Text())
			}
			for name, value := range sent {
				if name == "action" {
					continue
				}
				input := answer.Find("#" + name)
				got := input.AttrOr("value", "")
				switch {
				case input.Is("[type=checkbox]"):
					got = map[bool]string{true: value}[input.Is("[checked]")]
				case input.Is("textarea"):
					got = input.Text()
				case input.Is("select"):
					got = input.Find("option[selected]").AttrOr("value", "")
				}
				if got != value {
					t.Errorf("%s is %q, and %q was typed", name, got, value)
				}
			}
			if id := answer.Find("[name=request-id]").AttrOr("value", ""); id != page.Find("[name=request-id]").AttrOr("value", "") {
				t.Error("it is another form now")
			}
		})
	}
}

// A preview reports invalid values, but not missing ones.
func TestSubmitPreview(t *testing.T) {
	d := &handlerstest.Backend{}
	d.SubmitBackend.TakenName = "train"
	address := handlerstest.Serve(t, d) + "/teams/vision/submit"
	_, page := handlerstest.Get(t, address)
	_, answer := sendForm(t, address, page, map[string]string{"action": "preview", "pods": "2", "accelerators": "8"})
	if answer.Find(".error").Length() != 0 || !strings.Contains(answer.Find("#manifest-hyp").Text(), "--node-count 2") {
		t.Errorf("got %s", answer.Find("#submit-form").Text())
	}
	_, answer = sendForm(t, address, page, map[string]string{"action": "preview", "name": "train"})
	if !strings.Contains(answer.Find("#name-error").Text(), "already") || answer.Find("#form-errors").Length() != 0 {
		t.Errorf("got %s", answer.Find("#submit-form").Text())
	}
	_, answer = sendForm(t, address, page, map[string]string{"action": "reset:vcpu", "vcpu": "7", "accelerators": "1"})
	if answer.Find("#vcpu").AttrOr("value", "x") != "" || answer.Find("#vcpu").AttrOr("placeholder", "") != "24" {
		t.Errorf("vCPU is %q", answer.Find("#vcpu").AttrOr("value", ""))
	}
}

func TestVerdictWords(t *testing.T) {
	short := explain.Shortage{FlavorResource: quota.FlavorResource{Flavor: "ml.p5.48xlarge", Resource: catalog.GPU}, Needed: 6, Available: 4, PotentialAvailable: 4, Nominal: 4}
	verdict := func(c explain.Constraint) queries.Hypothesis {
		return queries.Hypothesis{Verdict: explain.Verdict{Constraint: c, Shortage: &short, Detail: "main"}}
	}
	large := verdict(explain.ExceedsMax)
	large.Verdict.Fit = &explain.Fit{Flavor: "ml.p5.48xlarge", Requests: quota.Resources{catalog.GPU: 16}, Nodes: 2, Resource: catalog.GPU, Largest: 8}
	others, may := verdict(explain.Preempting), verdict(explain.Quota)
	others.Verdict.TargetsInQueue, others.Verdict.TargetsInCohort = []explain.AdmittedWorkload{{Name: "own"}}, []explain.AdmittedWorkload{{Name: "theirs"}, {Name: "also"}}
	hidden := others
	hidden.Verdict.TargetsInCohort = []explain.AdmittedWorkload{{Team: "another team"}}
	may.Verdict.MayPreempt = true
	for name, tc := range map[string]struct {
		verdict submit.Verdict
		query   string
		has     []string
	}{
		"grows":          {verdict: submit.Verdict{Outcome: submit.Starts, Hypothesis: verdict(explain.PendingEvaluation), Reach: 6}, query: "?elastic=true&pods=2&max=8&step=2", has: []string{"There is quota for its minimum: 2 pods", "It could grow to 6 of at most 8 pods now, once the compute has been idle for 1 m 00 s."}},
		"grows fully":    {verdict: submit.Verdict{Outcome: submit.Starts, Hypothesis: verdict(explain.PendingEvaluation), Reach: 8}, query: "?elastic=true&pods=2&max=8&step=2&scaling=0", has: []string{"It could grow to its maximum of 8 pods now."}},
		"stays small":    {verdict: submit.Verdict{Outcome: submit.Starts, Hypothesis: verdict(explain.PendingEvaluation), Reach: 2}, query: "?elastic=true&pods=2&max=8&step=2", has: []string{"There is no idle compute for growth now."}},
		"never grows":    {verdict: submit.Verdict{Outcome: submit.Never, Hypothesis: verdict(explain.ExceedsMax), MaxPods: 1}, query: "?elastic=true&pods=2", has: []string{"It could never start", "That is the minimum: growth is not counted."}},
		"stops others":   {verdict: submit.Verdict{Outcome: submit.Preempts, Hypothesis: others}, has: []string{"It would preempt 1 task of its own team and 2 tasks of other teams."}},
		"stops hidden":   {verdict: submit.Verdict{Outcome: submit.Preempts, Hypothesis: hidden}, has: []string{"It would preempt 1 task of its own team and tasks of other teams."}},
		"fewer, by room": {verdict: submit.Verdict{Outcome: submit.Preempts, Hypothesis: others, Partial: true, Pods: 3}, query: "?pods=4&least=2", has: []string{"with 3 of its 4 pods, after preemption"}},
		"may stop":       {verdict: submit.Verdict{Outcome: submit.Waits, Hypothesis: may}, has: []string{"It may have to wait: 2 GPUs short.", "It may preempt tasks of other teams that borrow more than their fair share"}},
		"waits":          {verdict: submit.Verdict{Outcome: submit.Waits, Hypothesis: verdict(explain.Quota)}, has: []string{"It would wait: 2 GPUs short.", "Own quota"}},
		"held":           {verdict: submit.Verdict{Outcome: submit.Waits, Hypothesis: verdict(explain.QueueStopped)}, has: []string{"It would wait: its queue is on hold."}},
		"makes room":     {verdict: submit.Verdict{Outcome: submit.Preempts, Hypothesis: verdict(explain.Preempting)}, has: []string{"It would be admitted after preemption."}},
		"never":          {verdict: submit.Verdict{Outcome: submit.Never, Hypothesis: verdict(explain.ExceedsMax), MaxPods: 4}, has: []string{"It could never start: team vision can never have that much.", "At most 4 such pods fit."}},
		"not even one":   {verdict: submit.Verdict{Outcome: submit.Never, Hypothesis: verdict(explain.ExceedsMax)}, has: []string{"Even one such pod is too much."}},
		"node too small": {verdict: submit.Verdict{Outcome: submit.Never, Hypothesis: large}, query: "?accelerators=16", has: []string{"no node of ml.p5.48xlarge is that large", "One pod requests 16 GPUs, and the largest node of ml.p5.48xlarge has 8.", "2 pods with 8 GPUs each would fit.", "team vision can have at most 4 GPUs there"}},
		"fewer":          {verdict: submit.Verdict{Outcome: submit.Starts, Hypothesis: verdict(explain.PendingEvaluation), Partial: true, Pods: 3}, query: "?pods=4&least=2", has: []string{"with fewer pods", "3 of its 4 pods"}},
		"queued":         {verdict: submit.Verdict{Outcome: submit.Starts, Hypothesis: queries.Hypothesis{Verdict: explain.Verdict{Constraint: explain.PendingEvaluation}, Ahead: 1}}, has: []string{"1 task is ahead of it"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &handlerstest.Backend{}
			d.SubmitBackend.Verdict = tc.verdict
			_, page := handlerstest.Get(t, handlerstest.Serve(t, d)+"/teams/vision/submit"+tc.query)
			htmlcheck.Page(t, page)
			for _, want := range tc.has {
				if text := page.Find("#submit-verdict").Text(); !strings.Contains(text, want) {
					t.Errorf("%q lacks %q", strings.Join(strings.Fields(text), " "), want)
				}
			}
		})
	}
}

// The list of one team's tasks links to its submit form.
func TestTaskListLinksToSubmitForm(t *testing.T) {
	for name, tc := range map[string]struct {
		teams []string
		query string
		to    string // empty for no link
	}{
		"a member of one team":              {teams: []string{"vision"}, to: "/teams/vision/submit"},
		"who sees several teams":            {teams: []string{"language", "vision"}},
		"who sees several and looks at one": {teams: []string{"language", "vision"}, query: "?team=language", to: "/teams/language/submit"},
		"a team that is not for one":        {teams: []string{"language", "vision"}, query: "?team=speech"},
	} {
		t.Run(name, func(t *testing.T) {
			_, page := handlerstest.Get(t, handlerstest.Serve(t, &handlerstest.Backend{Teams: tc.teams})+"/tasks"+tc.query)
			htmlcheck.Page(t, page)
			if to := page.Find(".page-head .btn").AttrOr("href", ""); to != tc.to {
				t.Errorf("it leads to %q", to)
			}
		})
	}
}

// TestVerify asks for a simulation: its outcome replaces the instant one, with the
// tasks that it affects; a failed one leaves the instant one and says so.
func TestVerify(t *testing.T) {
	preempted := []explain.AdmittedWorkload{{Name: "sweep", Kind: "Job", Namespace: "hyperpod-ns-vision", Usage: quota.FlavorResourceQuantities{{Flavor: "p5", Resource: "nvidia.com/gpu"}: 4}}}
	for name, tc := range map[string]struct {
		trial    *queries.Trial
		headline string
		want     []string
	}{
		"preempts": {&queries.Trial{Starts: true, Preempted: preempted}, "It would be admitted after preemption.", []string{"Kueue would preempt", "sweep", "4 GPUs", "Simulated with Kueue's scheduler."}},
		"waits":    {&queries.Trial{}, "It would wait: other tasks start first.", []string{"Simulated with Kueue's scheduler."}},
		"never":    {&queries.Trial{Never: true}, "It could never start: the team can never have that much.", nil},
		"tie":      {&queries.Trial{Starts: true, Tied: true}, "It would be admitted now.", []string{"A tie between tasks of the same second decides."}},
		"hangs":    {&queries.Trial{Failed: worker.ErrTimeout}, "It would be admitted now.", []string{"This could not be verified with Kueue's scheduler: the simulation took too long."}},
		"memory":   {&queries.Trial{Failed: worker.ErrMemory}, "It would be admitted now.", []string{"the simulation needed too much memory."}},
		"crashes":  {&queries.Trial{Failed: worker.ErrCrashed}, "It would be admitted now.", []string{"the simulation failed."}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &handlerstest.Backend{}
			d.SubmitBackend.Trial = tc.trial
			address := handlerstest.Serve(t, d) + "/teams/vision/submit"
			_, page := handlerstest.Get(t, address)
			if !strings.Contains(page.Find("#verdict-checked[data-verify]").Text(), "Checking with Kueue's scheduler") {
				t.Error("the page does not ask for a simulation")
			}
			_, answer := sendForm(t, address, page, map[string]string{"action": "verify"})
			if got := answer.Find("#verdict strong").Text(); got != tc.headline {
				t.Errorf("headline %q, want %q", got, tc.headline)
			}
			for _, text := range tc.want {
				if got := handlerstest.Text(answer.Find("#submit-verdict")); !strings.Contains(got, text) {
					t.Errorf("the verdict lacks %q: %s", text, got)
				}
			}
			if answer.Find("[data-verify]").Length() > 0 {
				t.Error("the answer asks again")
			}
		})
	}
}

// TestShares shows the shares of teams, what starts next, and what is preempted.
func TestShares(t *testing.T) {
	gpu := quota.FlavorResource{Flavor: "p5", Resource: "nvidia.com/gpu"}
	task := func(name string) []explain.AdmittedWorkload {
		return []explain.AdmittedWorkload{{Name: name, Kind: "Job", Namespace: "hyperpod-ns-vision", Usage: quota.FlavorResourceQuantities{gpu: 4}}}
	}
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		shares queries.Shares
		want   []string
		state  string
	}{
		"fair": {queries.Shares{Fair: true, Teams: []queries.TeamShare{{Team: "vision", Weight: 2, Share: 125}, {Team: "idle", Weight: 0, Share: math.Inf(1)}}, Outlook: queries.Outlook{At: now,
			Next: []queries.Next{{FlavorResource: gpu, Amount: 2, Tasks: task("train")}}, Preempted: []queries.Preemption{{Of: task("sweep"), For: task("urgent")}}}},
			[]string{"Fair shares", "vision", "125", "∞", "2 GPUs of p5 would start train 4 GPUs", "sweep 4 GPUs for urgent 4 GPUs"}, "verified"},
		"first come": {queries.Shares{Outlook: queries.Outlook{At: now}}, []string{"first come, first served", "No waiting task would start with more of it."}, "verified"},
		"failed":     {queries.Shares{Fair: true, Outlook: queries.Outlook{At: now, Failed: worker.ErrTimeout}}, []string{"the simulation took too long"}, "failed"},
		"computing":  {queries.Shares{Fair: true, Outlook: queries.Outlook{Computing: true}}, []string{"Asking Kueue's scheduler"}, "computing"},
	} {
		t.Run(name, func(t *testing.T) {
			_, page := handlerstest.Get(t, handlerstest.Serve(t, &handlerstest.Backend{Shares: tc.shares})+"/teams")
			got := strings.Join(strings.Fields(page.Find("#shares").Text()), " ")
			for _, text := range tc.want {
				if !strings.Contains(got, text) {
					t.Errorf("the card lacks %q: %s", text, got)
				}
			}
			if state := page.Find("#outlook").AttrOr("data-state", ""); state != tc.state {
				t.Errorf("state %q, want %q", state, tc.state)
			}
		})
	}
}
