package teams_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/submit"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/go-cmp/cmp"
)

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

// A number takes the place of the class, where the policy allows numbers.
func TestSubmitNumber(t *testing.T) {
	d := &handlerstest.Backend{}
	address := handlerstest.Serve(t, d) + "/teams/vision/submit"
	if _, page := handlerstest.Get(t, address); page.Find("#priority").Length() != 0 {
		t.Error("the form has a number that the policy does not allow")
	}
	d.SubmitBackend.Numbered = true
	_, page := handlerstest.Get(t, address+"?class=inference-priority&priority=42")
	htmlcheck.Page(t, page)
	if manifest := page.Find("#manifest-job").Text(); !strings.Contains(manifest, "kueue.x-k8s.io/priority-class: kuota-priority-42") || strings.Contains(manifest, "max-exec-time-seconds") {
		t.Errorf("the manifest is %s", manifest)
	}
	typed := map[string]string{"action": "save", "name": "train", "image": "train:1", "priority": "100"}
	response, refused := sendForm(t, address, page, typed)
	if got := handlerstest.Text(refused.Find("#priority-error")); response.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(got, "0 to 99") {
		t.Errorf("100: got %s and %q", response.Status, got)
	}
	typed["priority"] = "42"
	if response, _ = sendForm(t, address, page, typed); response.StatusCode != http.StatusSeeOther || d.SubmitBackend.Submitted[0].Class != "kuota-priority-42" {
		t.Errorf("42: got %s, submitted %+v", response.Status, d.SubmitBackend.Submitted)
	}
	d.SubmitBackend.Numbered = false
	if response, refused = sendForm(t, address, page, typed); response.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(handlerstest.Text(refused.Find("#class-error")), "allows no priorities by number") {
		t.Errorf("not allowed: got %s and %q", response.Status, handlerstest.Text(refused.Find(".error")))
	}
}

// An elastic task is submitted with the typed sizes, and the page of the ElasticJob is
// opened.
func TestSubmitElastic(t *testing.T) {
	d := &handlerstest.Backend{}
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+"/teams/vision/submit?elastic=true&pods=4&accelerators=8&max=16")
	htmlcheck.Page(t, page)
	for selector, want := range map[string]string{"#max": "8", "#step": "4", "#scaling": "60", "#graceful": "30", "#faulty": "30", "#rest": "60", "#longest-rest": "3600"} {
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

	typed := map[string]string{"action": "save", "name": "train", "image": "train:1", "elastic": "true", "pods": "2", "least": "1", "max": "", "step": "", "sizes": "2, 4 8", "scaling": "0", "graceful": "600", "faulty": "90", "rest": "7200", "longest-rest": "", "scale": "2 BATCH=64\n8 NOTE=a, b = c\n2 LR=0.1"}
	response, _ := sendForm(t, address+"/teams/vision/submit", page, typed)
	if to := response.Header.Get("Location"); response.StatusCode != http.StatusSeeOther || to != "/tasks/hyperpod-ns-vision/elasticjob/train" {
		t.Fatalf("%s to %q", response.Status, to)
	}
	r := d.SubmitBackend.Submitted[0]
	if e := r.Elastic; r.Pods != 2 || r.MinPods != 0 || e == nil || e.MaxReplicas != 0 || e.ReplicaIncrementStep != nil || !slices.Equal(e.ReplicaDiscreteValues, []int32{2, 4, 8}) || e.ScalingTimeoutInSeconds != 0 || e.GracefulShutdownTimeoutInSeconds != 600 || e.FaultyScaleDownTimeoutInSeconds != 90 || e.MinStablePeriodSeconds != 7200 || e.BackoffMaxSeconds != 7200 {
		t.Errorf("got the request %+v with %+v", r, e)
	}
	want := []v1alpha1.ScaleConfig{{Replicas: 2, Env: []v1alpha1.ScaleVariable{{Name: "BATCH", Value: "64"}, {Name: "LR", Value: "0.1"}}}, {Replicas: 8, Env: []v1alpha1.ScaleVariable{{Name: "NOTE", Value: "a, b = c"}}}}
	if diff := cmp.Diff(want, r.ScaleConfig); diff != "" {
		t.Errorf("the variables by size (-want +got):\n%s", diff)
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
