package teams_test

import (
	"math"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/kueue/simulate/worker"
	"kuota.dev/kuota/governance/quota"
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
		"fewer than none":      {change: map[string]string{"least": "0"}, status: 422, field: "least", says: "at least 1"},
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
		"rest beyond longest":  {change: map[string]string{"elastic": "true", "rest": "600", "longest-rest": "60"}, status: 422, field: "longest-rest", says: "at least minStablePeriodSeconds, 600"},
		"variable of no size":  {change: map[string]string{"elastic": "true", "scale": "BATCH=8"}, status: 422, field: "scale", says: "Line 1 is no SIZE NAME=value"},
		"variable beyond":      {change: map[string]string{"elastic": "true", "pods": "2", "max": "4", "scale": "2 A=1\n8 A=1"}, status: 422, field: "scale", says: "8 is not from the minimum to the maximum"},
		"no variable":          {change: map[string]string{"elastic": "true", "pods": "2", "scale": "2 1A=1"}, status: 422, field: "scale", says: "is no name of a variable"},
		"variable twice":       {change: map[string]string{"elastic": "true", "pods": "2", "scale": "2 A=1\n2 A=2"}, status: 422, field: "scale", says: "Line 2 sets A for 2 pods a second time"},
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

// TestShares shows the shares of teams, what starts next, and what is preempted.
func TestShares(t *testing.T) {
	gpu := quota.FlavorResource{Flavor: "p5", Resource: "nvidia.com/gpu"}
	task := func(name string) []explain.AdmittedWorkload {
		return []explain.AdmittedWorkload{{Name: name, Kind: "Job", Namespace: "hyperpod-ns-vision", Team: "vision", Usage: quota.FlavorResourceQuantities{gpu: 4}}}
	}
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		shares queries.Shares
		want   []string
		state  string
	}{
		"fair": {queries.Shares{Fair: true, Nodes: []queries.NodeShare{{Team: "vision", Weight: 2, Share: 125}, {Team: "idle", Weight: 0, Share: math.Inf(1)}}, Outlook: queries.Outlook{At: now,
			Next: []queries.Next{{FlavorResource: gpu, Amount: 2, Tasks: task("train")}}, Preempted: []queries.Preemption{{Of: task("sweep"), For: task("urgent")}}}},
			[]string{"Fair shares", "vision next in line for p5", "12.5 %", "∞", "2 GPUs of p5 would start train 4 GPUs", "sweep 4 GPUs for urgent 4 GPUs"}, "verified"},
		"departments": {queries.Shares{Fair: true, Nodes: []queries.NodeShare{{Cohort: "department research", Weight: 2, Share: 50, Waiting: 3}, {Team: "vision", Level: 1, Weight: 1, Share: 75, Waiting: 3}}, Outlook: queries.Outlook{At: now}},
			[]string{"Department research25 %3vision17.5 %3", "The lowest share of each level gets idle compute first."}, "verified"},
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
