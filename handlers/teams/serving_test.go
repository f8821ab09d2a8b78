package teams_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/submit"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/go-cmp/cmp"
)

var services = []submit.Kind{submit.Deployment, submit.StatefulSet, submit.LeaderWorkerSet}

// texts returns the texts of the elements that match.
func texts(page *goquery.Document, selector string) (list []string) {
	page.Find(selector).Each(func(_ int, s *goquery.Selection) { list = append(list, handlerstest.Text(s)) })
	return list
}

// The pages of a service, a notebook and a job link to each other where each can be
// created, and to no other.
func TestServingPages(t *testing.T) {
	for name, tc := range map[string]struct {
		kinds    []submit.Kind
		path     string
		wantNav  []string
		wantForm bool
		has      []string // on the page
		hasNot   []string // selectors
	}{
		"job, without services": {path: "submit", wantForm: true},
		"job":                   {kinds: services, path: "submit", wantNav: []string{"Task", "Inference service", "Notebook"}, wantForm: true},
		"service":               {kinds: services, path: "submit/service", wantNav: []string{"Task", "Inference service", "Notebook"}, wantForm: true, has: []string{"Submit an inference service", "as a Deployment, in your name", "kind: Deployment", "containerPort: 8000", "replicas: 1"}, hasNot: []string{"#elastic", "#least", "#tries", "#limit", "#home"}},
		"service of one pod":    {kinds: services[:1], path: "submit/service", wantNav: []string{"Task", "Inference service"}, wantForm: true, hasNot: []string{"#pods"}},
		"service of groups":     {kinds: services, path: "submit/service?pods=2&replicas=3", wantNav: []string{"Task", "Inference service", "Notebook"}, wantForm: true, has: []string{"as a LeaderWorkerSet", "size: 2", "replicas: 3"}},
		"notebook":              {kinds: services, path: "submit/notebook", wantNav: []string{"Task", "Inference service", "Notebook"}, wantForm: true, has: []string{"Submit a notebook", "as a StatefulSet", "kind: StatefulSet", "jupyter lab --ip=127.0.0.1 --port=8888"}, hasNot: []string{"#replicas", "#pods", "#manifest-service"}},
		"no service":            {kinds: services[1:2], path: "submit/service", wantNav: []string{"Task", "Notebook"}, has: []string{"Kueue does not manage a Deployment in this cluster"}, hasNot: []string{"#manifest-deployment"}},
		"no notebook":           {path: "submit/notebook", has: []string{"Kueue does not manage a StatefulSet in this cluster"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &handlerstest.Backend{}
			d.SubmitBackend.Services = tc.kinds
			_, page := handlerstest.Get(t, handlerstest.Serve(t, d)+"/teams/vision/"+tc.path)
			htmlcheck.Page(t, page)
			if diff := cmp.Diff(tc.wantNav, texts(page, ".submit-kinds a")); diff != "" {
				t.Errorf("links (-want +got):\n%s", diff)
			}
			if form := page.Find("#submit-form").Length() == 1; form != tc.wantForm {
				t.Errorf("it has a form: %t, want %t", form, tc.wantForm)
			}
			for _, want := range tc.has {
				if text := handlerstest.Text(page.Find("main")); !strings.Contains(text, want) {
					t.Errorf("the page lacks %q: %s", want, text)
				}
			}
			for _, selector := range tc.hasNot {
				if page.Find(selector).Length() > 0 {
					t.Errorf("the page has %s", selector)
				}
			}
		})
	}
}

// A service is submitted with what was typed, and its own page opens.
func TestSubmitServices(t *testing.T) {
	d := &handlerstest.Backend{}
	d.SubmitBackend.Services = services
	address := handlerstest.Serve(t, d) + "/teams/vision/submit"
	submitted := func(path, leadsTo string, typed map[string]string) submit.Request {
		t.Helper()
		_, page := handlerstest.Get(t, address+path)
		typed["action"] = "save"
		response, answer := sendForm(t, address+path, page, typed)
		if to := response.Header.Get("Location"); response.StatusCode != http.StatusSeeOther || to != leadsTo {
			t.Fatalf("%s to %q, want %q: %s", response.Status, to, leadsTo, handlerstest.Text(answer.Find("#form-errors")))
		}
		return d.SubmitBackend.Submitted[len(d.SubmitBackend.Submitted)-1]
	}
	r := submitted("/service", "/tasks/hyperpod-ns-vision/deployment/llama", map[string]string{"name": "llama", "image": "vllm:1", "replicas": "3", "command": "vllm serve", "accelerators": "2", "secrets": "hugging-face", "shm": "8", "class": "training-priority"})
	if s := r.Serving; r.Pods != 1 || s == nil || s.Replicas != 3 || s.Port != 8000 || s.Notebook != nil || len(r.EnvFrom) != 1 || r.SharedMemory == nil || *r.PerPod.Accelerators != 2 {
		t.Errorf("got the request %+v with %+v", r, s)
	}
	r = submitted("/service", "/tasks/hyperpod-ns-vision/leaderworkerset/llama", map[string]string{"name": "llama", "image": "vllm:1", "replicas": "2", "pods": "4", "port": ""})
	if s := r.Serving; r.Pods != 4 || s == nil || s.Replicas != 2 || s.Port != 0 {
		t.Errorf("got the request %+v with %+v", r, s)
	}
	r = submitted("/notebook", "/tasks/hyperpod-ns-vision/statefulset/ada", map[string]string{"name": "ada", "image": "jupyter:1", "home-size": "20", "home-path": "/home/ada"})
	if s := r.Serving; r.Pods != 1 || s == nil || s.Replicas != 1 || s.Port != 8888 || s.Notebook == nil || s.Notebook.Size.String() != "20Gi" || s.Notebook.Home != "/home/ada" || !strings.HasPrefix(r.Command, "jupyter lab") {
		t.Errorf("got the request %+v with %+v", r, s)
	}
	d.SubmitBackend.Services, d.SubmitBackend.Unlisted = services[:1], true // without a field for pods
	submitted("/service", "/teams/vision?kind=Deployment&submitted=llama", map[string]string{"name": "llama", "image": "vllm:1"})
	_, page := handlerstest.Get(t, strings.TrimSuffix(address, "/submit")+"?kind=Deployment&submitted=llama")
	if page.Find(`.notice a[href="/tasks/hyperpod-ns-vision/deployment/llama"]`).Length() != 1 {
		t.Error("nothing leads to the service")
	}
	if slices.Contains(d.SubmitBackend.Forms, "") {
		t.Errorf("the forms have the ids %q", d.SubmitBackend.Forms)
	}
	d.SubmitBackend.Services = nil
	if response, _ := sendForm(t, address+"/service", page, map[string]string{"action": "save", "name": "llama", "image": "vllm:1"}); response.StatusCode != http.StatusForbidden {
		t.Errorf("a service that cannot be created is answered %s", response.Status)
	}
}

// The summary lists errors in the order of their fields.
func TestOrderOfErrors(t *testing.T) {
	wrong := map[string]string{
		"action": "save", "name": "", "image": "", "accelerators": "x", "vcpu": "x", "memory": "x", "replicas": "x", "pods": "x", "port": "x", "least": "x", "limit": "x", "script": "#!python",
		"env": "x", "secrets": "A=b", "volumes": "x", "shm": "x", "account": "A b", "processes": "x", "tries": "x", "home-size": "x", "home-path": "x", "max": "x", "step": "x", "sizes": "x", "graceful": "x", "scaling": "x", "faulty": "x", "rest": "x", "longest-rest": "x", "scale": "x",
	}
	for path, want := range map[string]int{"": 16, "?elastic=true": 23, "/service": 14, "/notebook": 15} {
		d := &handlerstest.Backend{}
		d.SubmitBackend.Services = services
		address := handlerstest.Serve(t, d) + "/teams/vision/submit" + path
		_, page := handlerstest.Get(t, address)
		typed := maps.Clone(wrong)
		maps.DeleteFunc(typed, func(name, _ string) bool { return name != "action" && page.Find("[name="+name+"]").Length() == 0 })
		if strings.Contains(path, "elastic") {
			typed["elastic"] = "true"
		}
		_, page = sendForm(t, address, page, typed)
		var errors, fields []string
		page.Find("#form-errors a").Each(func(_ int, a *goquery.Selection) { errors = append(errors, a.AttrOr("href", "")) })
		page.Find("#submit-section [id]").Each(func(_ int, input *goquery.Selection) {
			if id := "#" + input.AttrOr("id", ""); slices.Contains(errors, id) {
				fields = append(fields, id)
			}
		})
		if diff := cmp.Diff(fields, errors); diff != "" || len(errors) != want {
			t.Errorf("%s: got %d errors, want %d (-fields +errors):\n%s", path, len(errors), want, diff)
		}
	}
}

// Each wrong input of a service is marked, with what is wrong and what to do.
func TestWrongServices(t *testing.T) {
	for name, tc := range map[string]struct {
		path, input, typed, want string
		failure                  error
	}{
		"no replicas":        {path: "service", input: "replicas", typed: "0", want: "Must be at least 1; give a whole number from 1 to 1,000."},
		"half a replica":     {path: "service", input: "replicas", typed: "1.5", want: "whole number from 1 to 1,000"},
		"empty replicas":     {path: "service", input: "replicas", typed: "", want: "whole number from 1 to 1,000"},
		"too large a port":   {path: "service", input: "port", typed: "70000", want: "whole number from 1 to 65,535"},
		"a word as a port":   {path: "notebook", input: "port", typed: "http", want: "whole number from 1 to 65,535"},
		"no pods":            {path: "service", input: "pods", typed: "0", want: "whole number from 1 to 10,000"},
		"a limited class":    {path: "service", input: "class", typed: "inference-priority", want: "Kueue cannot limit a Deployment"},
		"a long limit":       {path: "notebook", input: "limit", typed: "30h", want: "at most 2h"},
		"a digit first":      {path: "service", input: "name", typed: "7b", want: "Start with a letter"},
		"a negative size":    {path: "notebook", input: "home-size", typed: "-1", want: "home-size"},
		"a relative path":    {path: "notebook", input: "home-path", typed: "home", want: "no path to mount at"},
		"no claim":           {path: "notebook", input: "home", typed: "My Home", want: "no name of a PersistentVolumeClaim"},
		"refused by a field": {path: "service", input: "port", typed: "8000", want: "Is privileged.", failure: &governance.Error{Kind: governance.Invalid, Fields: []governance.FieldError{{Path: "port", Message: "is privileged"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &handlerstest.Backend{}
			d.SubmitBackend.Services, d.SubmitBackend.Failure = services, tc.failure
			address := handlerstest.Serve(t, d) + "/teams/vision/submit/" + tc.path
			_, page := handlerstest.Get(t, address)
			typed := map[string]string{"action": "save", "name": "serve", "image": "vllm:1"}
			if tc.path == "notebook" && tc.input == "limit" {
				typed["class"] = "inference-priority"
			}
			typed[tc.input] = tc.typed
			response, answer := sendForm(t, address, page, typed)
			htmlcheck.Page(t, answer)
			if response.StatusCode != http.StatusUnprocessableEntity {
				t.Errorf("answered %s", response.Status)
			}
			want := tc.want
			if want == "home-size" { // any reason
				want = ""
			}
			if got := answer.Find("#" + tc.input + "-error"); got.Length() != 1 || !strings.Contains(got.Text(), want) {
				t.Errorf("#%s has the error %q, want %q", tc.input, got.Text(), want)
			}
			if answer.Find(`#form-errors a[href="#`+tc.input+`"]`).Length() == 0 {
				t.Errorf("the summary is %s", handlerstest.Text(answer.Find("#form-errors")))
			}
			if value := answer.Find("#"+tc.input).AttrOr("value", tc.typed); value != tc.typed {
				t.Errorf("#%s is %q, want %q as typed", tc.input, value, tc.typed)
			}
		})
	}
}

// The verdict is on the first replica, and says how many would be admitted.
func TestVerdictOnReplicas(t *testing.T) {
	short := queries.Hypothesis{Verdict: explain.Verdict{Constraint: explain.PendingEvaluation}}
	for name, tc := range map[string]struct {
		verdict submit.Verdict
		query   string
		want    []string
	}{
		"one":          {submit.Verdict{Outcome: submit.Starts, Hypothesis: short, Replicas: 1}, "", []string{"It would be admitted now.", "There is quota for it: 1 pod with 1 GPU"}},
		"all":          {submit.Verdict{Outcome: submit.Starts, Hypothesis: short, Replicas: 5}, "?replicas=5", []string{"It would be admitted now.", "There is quota for all 5 replicas: each is 1 pod"}},
		"some":         {submit.Verdict{Outcome: submit.Starts, Hypothesis: short, Replicas: 3}, "?replicas=5", []string{"3 of its 5 replicas would be admitted now.", "The others wait for quota, and start one by one."}},
		"never all":    {submit.Verdict{Outcome: submit.Starts, Hypothesis: short, Replicas: 3, MaxReplicas: 4}, "?replicas=5", []string{"The team can never have more than 4 replicas of it at once."}},
		"none for now": {submit.Verdict{Outcome: submit.Waits, Hypothesis: short}, "?replicas=5&pods=2", []string{"That is its first replica: 2 pods with"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &handlerstest.Backend{}
			d.SubmitBackend.Services, d.SubmitBackend.Verdict = services, tc.verdict
			_, page := handlerstest.Get(t, handlerstest.Serve(t, d)+"/teams/vision/submit/service"+tc.query)
			for _, want := range tc.want {
				if got := handlerstest.Text(page.Find("#verdict")); !strings.Contains(got, want) {
					t.Errorf("got %q, want %q", got, want)
				}
			}
		})
	}
}

// A page shows how a service is reached, by what its reader may do.
func TestReach(t *testing.T) {
	for name, tc := range map[string]struct {
		path      string
		reachable bool
		want      []string
		hasNot    []string
	}{
		"service":                    {path: "service", reachable: true, want: []string{"kubectl port-forward -n hyperpod-ns-vision deployment/my-task 8000:8000", "kind: Service"}},
		"notebook":                   {path: "notebook", reachable: true, want: []string{"kubectl port-forward -n hyperpod-ns-vision statefulset/my-task 8888:8888", "http://localhost:8888"}, hasNot: []string{"kind: Service"}},
		"notebook, not permitted":    {path: "notebook", want: []string{"for which you have no permission: create pods/portforward"}, hasNot: []string{"kubectl port-forward -n"}},
		"service, not permitted":     {path: "service", want: []string{"by a Service, which you cannot create here"}, hasNot: []string{"kubectl port-forward -n", "kind: Service"}},
		"service that has no port":   {path: "service?port=", reachable: true, want: []string{"Give a port to see how it is reached."}, hasNot: []string{"kind: Service"}},
		"notebook on a typed port":   {path: "notebook?port=9999", reachable: true, want: []string{"9999:9999"}},
		"service of several pods of": {path: "service?pods=2&name=llama", reachable: true, want: []string{"pod/llama-0 8000:8000", "name: llama-leaders"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &handlerstest.Backend{}
			d.SubmitBackend.Services, d.SubmitBackend.Reachable = services, tc.reachable
			_, page := handlerstest.Get(t, handlerstest.Serve(t, d)+"/teams/vision/submit/"+tc.path)
			text := handlerstest.Text(page.Find("#manifests"))
			for _, want := range tc.want {
				if !strings.Contains(text, want) {
					t.Errorf("it lacks %q: %s", want, text)
				}
			}
			for _, not := range tc.hasNot {
				if strings.Contains(text, not) {
					t.Errorf("it has %q", not)
				}
			}
		})
	}
}
