package handlers_test

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/web"
	"kuota.dev/kuota/web/webtest"
)

// FuzzAPI sends bodies to all endpoints that take one: each answer is no server error, and each
// error is a problem.
func FuzzAPI(f *testing.F) {
	for i, body := range []string{
		`{"manifest": "apiVersion: batch/v1\nkind: Job\nmetadata: {generateName: a-}\n"}`, `{"task": {"name": "a", "pods": -1, "env": {"A": "b\nc"}, "elastic": {"max": 0}}}`,
		`{"action": "class", "class": "training", "selector": {"names": ["[", "*"], "teams": [""], "statuses": ["x"]}}`, `{"action": "delete", "uids": ["x"]}`,
		`{"class": "x", "replicas": 2147483647, "sizes": {"min": 1, "max": 0, "values": [1, 1]}}`,
		`{"metadata": {"name": "vision", "resourceVersion": "7", "creationTimestamp": "x"}, "spec": {"quota": [{"instanceType": "a", "vCPU": "1e99", "memory": -1}]}}`,
		`{"spec": {"priorityClasses": [{"name": "a", "weight": 99999999999}], "gangScheduling": {"timeout": "x"}}}`, `null`, `[]`, `"`, `{"manifest": 3}`, `{"spec": {"quota": null, "shares": [{}], "windows": [{"from": "x"}]}}`,
	} {
		f.Add(uint8(i), body)
	}
	var takes []web.Endpoint
	h := (&handlerstest.Backend{}).Handlers()
	webtest.Start(f, webtest.Setup{Chrome: h.Chrome, Register: func(s *web.Server) {
		h.Register(s)
		takes = slices.DeleteFunc(s.Endpoints(), func(e web.Endpoint) bool { return e.Body == nil })
	}})
	f.Fuzz(func(t *testing.T, which uint8, body string) {
		d := handlerstest.WithAllocations(handlerstest.FullAllocation())
		d.PolicyBackend.Policy, d.Alerts = handlerstest.RankedPolicy(), &handlerstest.AlertsBackend{Admin: true}
		e := takes[int(which)%len(takes)]
		path := parameterOf.ReplaceAllString(e.Path, "vision")
		address := handlerstest.Serve(t, d)
		request, err := http.NewRequestWithContext(t.Context(), e.Method, address+web.APIPrefix+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		response, err := handlerstest.Client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		var problem web.Problem
		switch {
		case response.StatusCode >= http.StatusInternalServerError:
			t.Errorf("%s %s with %q answers %d: %s", e.Method, path, body, response.StatusCode, text)
		case response.StatusCode >= http.StatusBadRequest && (json.Unmarshal(text, &problem) != nil || problem.Detail == ""):
			t.Errorf("%s %s with %q answers no problem: %s", e.Method, path, body, text)
		}
	})
}
