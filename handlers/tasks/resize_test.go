package tasks_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/actions"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"
)

// grown is a review of an ElasticJob of 4 to 16 pods by 4, which has 12.
func grown() actions.Review {
	r := working(tasks.Running)
	r.Task.Kind = v1alpha1.ElasticJobKind
	r.Resizing = &actions.Resizing{
		Sizes: actions.Sizes{Min: 4, Max: 16, Step: 4, Times: times(), Growth: v1alpha1.GrowthExistingNodes, MaxUnscheduled: new(int32(0))}, Generation: 3, State: v1alpha1.ElasticRunning, Pods: 12, Minimum: 4, Base: 4, Growth: []int32{4, 4},
	}
	return r
}

func times() actions.Times {
	return actions.Times{actions.GraceField: 60, actions.IdleField: 30, actions.FaultyField: 30, actions.StableField: 60, actions.MostField: 3600, actions.NodesField: 600}
}

// The form shows what typed sizes do before it sets them, and keeps what is typed with
// each error.
func TestResize(t *testing.T) {
	discrete := grown()
	discrete.Resizing.Sizes = actions.Sizes{Min: 4, Max: 16, Values: []int32{4, 12, 16}, Times: times(), Scale: []v1alpha1.ScaleConfig{{Replicas: 16, Env: []v1alpha1.ScaleVariable{{Name: "BATCH", Value: "8"}}}}}
	pending := grown()
	pending.Resizing.State, pending.Resizing.Pods, pending.Resizing.Minimum, pending.Resizing.Growth = v1alpha1.ElasticPending, 0, 0, nil
	asking := grown()
	asking.Resizing.Sizes.Growth, asking.Resizing.Blocked = v1alpha1.GrowthProvision, "one pod blocks all"
	several := grown()
	several.Resizing.Sizes.Scale = []v1alpha1.ScaleConfig{{Replicas: 8, Env: []v1alpha1.ScaleVariable{{Name: "RECIPE", Value: "a: 1\nb: 2 "}}}}
	type fields map[string]string
	for name, tc := range map[string]struct {
		review  actions.Review
		typed   fields
		refusal error
		status  int    // of the review
		says    string // on the page with the effects, or with the errors
		done    string // after the second press; empty if there is none
	}{
		"a smaller maximum":      {grown(), fields{"max": "8"}, nil, 200, "It shrinks from 12 to 8 pods: its newest growth ends at once. These pods have 60 seconds to write a checkpoint. Its other pods are not restarted.", "resize to 4-8 by 4 or [] of generation 3 train u1"},
		"a larger maximum":       {grown(), fields{"max": "32"}, nil, 200, "It grows up to 32 pods when compute was idle for 30 seconds. torchrun in its running pods was started for at most 16 pods, and uses no more.", "resize to 4-32 by 4"},
		"a larger minimum":       {grown(), fields{"min": "8"}, nil, 200, "4 more pods wait for quota in its priority class, and its growth makes room.", "resize to 8-16 by 4"},
		"a minimum above it":     {grown(), fields{"min": "16"}, nil, 200, "It shrinks from 12 to 4 pods: its newest growth ends at once. These pods have 60 seconds to write a checkpoint. 12 more pods wait for quota", "resize to 16-16 by 4"},
		"a smaller minimum":      {grown(), fields{"min": "2", "step": "2"}, nil, 200, "The 4 pods that it started with stay until it loses its quota.", "resize to 2-16 by 2"},
		"another step":           {grown(), fields{"min": "2", "step": "7"}, nil, 200, "It shrinks from 12 to 4 pods", "resize to 2-16 by 7"},
		"what waits":             {pending, fields{"min": "8"}, nil, 200, "It waits for quota for 8 pods instead of 4.", "resize to 8-16 by 4"},
		"nothing":                {grown(), fields{}, nil, 200, "Nothing changes", ""},
		"other values":           {discrete, fields{"values": "4 8,16"}, nil, 200, "It shrinks from 12 to 8 pods", "resize to 4-16 by 0 or [4 8 16]"},
		"more time to save":      {grown(), fields{"gracefulShutdownTimeoutInSeconds": "90"}, nil, 200, "Time to save: 90 seconds instead of 60, in pods that start from now on. Its other pods", "resize to 4-16 by 4"},
		"other times":            {grown(), fields{"scalingTimeoutInSeconds": "5", "backoffMaxSeconds": "60"}, nil, 200, "It grows up to 16 pods when compute was idle for 5 seconds. Idle before growth: 5 seconds instead of 30. Longest rest: 60 seconds instead of 3600.", "resize to 4-16 by 4"},
		"no time":                {grown(), fields{"gracefulShutdownTimeoutInSeconds": "1m"}, nil, 422, "It is a whole number, such as 8.", ""},
		"too long":               {grown(), fields{"scalingTimeoutInSeconds": "90000"}, nil, 422, "This is a number of seconds from 0 to 86400.", ""},
		"a rest that shrinks":    {grown(), fields{"backoffMaxSeconds": "59"}, nil, 422, "This is less than the 60 seconds that it does not grow at first.", ""},
		"more that wait":         {asking, fields{"wait": "8"}, nil, 200, "Its growth asks for nodes where its quota has room: at most 8 pods wait for them at once.", "resize to 4-16 by 4"},
		"fewer than a step":      {asking, fields{"wait": "3"}, nil, 422, "This is less than a step of 4 pods, which wait together.", ""},
		"no time for nodes":      {asking, fields{"timeout": "0"}, nil, 422, "This is a number of seconds from 1 to 86400.", ""},
		"no numbers":             {grown(), fields{"min": "four", "max": ""}, nil, 422, "The minimum is a whole number, such as 8.", ""},
		"above the maximum":      {grown(), fields{"min": "20"}, nil, 422, "The maximum is smaller than the minimum 20.", ""},
		"not in steps":           {grown(), fields{"max": "14"}, nil, 422, "The maximum 14 cannot be reached from the minimum 4 in steps of 4.", ""},
		"a value outside":        {discrete, fields{"max": "12"}, nil, 422, "The size 16 is larger than the maximum 12: remove it.", ""},
		"a size with variables":  {discrete, fields{"max": "12", "values": "4, 12"}, nil, 422, "16 is not from the minimum to the maximum.", ""},
		"its variables, too":     {discrete, fields{"max": "12", "values": "4, 12", "scale": "12 BATCH=16"}, nil, 200, "The variables by size change when it starts again: until then all of its pods read those that it started with.", "resize to 4-12 by 0 or [4 12]"},
		"no variables":           {discrete, fields{"scale": " "}, nil, 200, "The variables by size change when it starts again", "resize to 4-16 by 0 or [4 12 16]"},
		"a value of two lines":   {several, fields{"max": "32"}, nil, 200, "It grows up to 32 pods when compute was idle for 30 seconds. torchrun in its running pods was started for at most 16 pods, and uses no more. Its other pods", "resize to 4-32 by 4"},
		"no variable":            {grown(), fields{"scale": "16 BATCH"}, nil, 422, "Line 1 is no SIZE NAME=value, such as 8 BATCH_SIZE=32.", ""},
		"no values":              {discrete, fields{"values": " , "}, nil, 422, "List the allowed sizes", ""},
		"changed meanwhile":      {grown(), fields{"max": "8"}, &governance.Error{Kind: governance.Conflict, Message: "train was changed meanwhile."}, 200, "It shrinks", "train was changed meanwhile."},
		"rejected by the server": {grown(), fields{"max": "8"}, &governance.Error{Kind: governance.Invalid, Message: "It was refused: no."}, 200, "It shrinks", "It was refused: no."},
	} {
		t.Run(name, func(t *testing.T) {
			d := &handlerstest.Backend{ActionsBackend: handlerstest.ActionsBackend{ReviewResult: tc.review, Refusal: tc.refusal}}
			address := handlerstest.Serve(t, d) + "/tasks/ns/elasticjob/train/resize"
			_, page := handlerstest.Get(t, address)
			htmlcheck.Page(t, page)
			values := handlerstest.ValuesIn(page, "#action-form")
			for field, value := range tc.typed {
				if !values.Has(field) {
					t.Fatalf("the form has no field %s", field)
				}
				values.Set(field, value)
			}
			response, page := handlerstest.Post(t, address, values)
			htmlcheck.Page(t, page)
			if text := handlerstest.Text(page.Find("main")); response.StatusCode != tc.status || !strings.Contains(text, tc.says) {
				t.Fatalf("answers %s without %q: %s", response.Status, tc.says, text)
			}
			if len(d.ActionsBackend.Done) > 0 {
				t.Fatalf("did %v before its effects were seen", d.ActionsBackend.Done)
			}
			kept := handlerstest.ValuesIn(page, "#action-form")
			for field, value := range tc.typed {
				if kept.Get(field) != value {
					t.Errorf("%s is %q, and %q was typed", field, kept.Get(field), value)
				}
			}
			if strings.ContainsAny(kept.Get("reviewed"), "\r\n") {
				t.Errorf("a browser would send other ends of lines than those of %q", kept.Get("reviewed"))
			}
			if tc.done == "" {
				return
			}
			response, page = handlerstest.Post(t, address, kept)
			want := 303
			if tc.refusal != nil {
				want = map[governance.Kind]int{governance.Conflict: 409, governance.Invalid: 422}[governance.KindOf(tc.refusal)]
			}
			if done := strings.Join(d.ActionsBackend.Done, " ") + handlerstest.Text(page.Find("main")); response.StatusCode != want || !strings.Contains(done, tc.done) {
				t.Errorf("answers %s with %q, want %d with %q", response.Status, done, want, tc.done)
			}
		})
	}
}

// A user who saw the sizes of an older spec cannot set others without having seen the
// newer ones.
func TestResizeAfterAnotherChange(t *testing.T) {
	d := &handlerstest.Backend{ActionsBackend: handlerstest.ActionsBackend{ReviewResult: grown()}}
	address := handlerstest.Serve(t, d) + "/tasks/ns/elasticjob/train/resize"
	_, page := handlerstest.Get(t, address)
	values := handlerstest.ValuesIn(page, "#action-form")
	values.Set("max", "8")
	d.ActionsBackend.ReviewResult.Resizing.Generation = 4
	d.ActionsBackend.Refusal = &governance.Error{Kind: governance.Conflict, Message: "train was changed meanwhile."}
	response, page := handlerstest.Post(t, address, values)
	kept := handlerstest.ValuesIn(page, "#action-form")
	if response.StatusCode != 409 || kept.Get("max") != "8" || kept.Get("generation") != "4" {
		t.Errorf("answers %s, and the form has %v", response.Status, kept)
	}
}

// A task can be made to ask for nodes, unless that would keep all tasks waiting.
func TestResizeAsks(t *testing.T) {
	for blocked, want := range map[string]string{"": "Its growth asks for nodes", "one pod blocks all": "It cannot ask for nodes: one pod blocks all."} {
		d := &handlerstest.Backend{ActionsBackend: handlerstest.ActionsBackend{ReviewResult: grown()}}
		d.ActionsBackend.ReviewResult.Resizing.Blocked = blocked
		address := handlerstest.Serve(t, d) + "/tasks/ns/elasticjob/train/resize"
		_, page := handlerstest.Get(t, address)
		values := handlerstest.ValuesIn(page, "#action-form")
		values.Set("growth", "Provision")
		_, page = handlerstest.Post(t, address, values)
		htmlcheck.Page(t, page)
		if text := handlerstest.Text(page.Find("main")); !strings.Contains(text, want) || page.Find("#growth[checked]").Length() != 1 {
			t.Errorf("blocked by %q: says %s", blocked, text)
		}
	}
}

// The API changes one time alone, and names a time that does not exist.
func TestResizeTimesByAPI(t *testing.T) {
	for body, want := range map[string]struct {
		status int
		says   string
	}{
		`{"uid": "u1", "sizes": {"times": {"gracefulShutdownTimeoutInSeconds": 90}}}`: {200, "resize to 0-0 by 0 or [] of generation 3"},
		`{"uid": "u1", "sizes": {"times": {"grace": 90}}}`:                            {422, "which is none of [gracefulShutdownTimeoutInSeconds"},
	} {
		d := &handlerstest.Backend{ActionsBackend: handlerstest.ActionsBackend{ReviewResult: grown()}}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, handlerstest.Serve(t, d)+"/api/v1/tasks/ns/elasticjob/train/resize", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Authorization", "Bearer token")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(response.Body)
		response.Body.Close()
		if got := strings.Join(d.ActionsBackend.Done, " ") + string(answer); err != nil || response.StatusCode != want.status || !strings.Contains(got, want.says) {
			t.Errorf("%s: answers %s with %q, want %d with %q", body, response.Status, got, want.status, want.says)
		}
	}
}
