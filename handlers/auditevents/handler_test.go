package auditevents

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/record/history"
)

const deleted = `{"stage": "ResponseComplete", "verb": "delete", "user": {"username": "ada"}, "responseStatus": {"code": 200}, "objectRef": {"resource": "jobs"}, "responseObject": {"details": {"uid": "u1"}}}`

// What cannot be recorded now is answered so that API servers send it again.
func TestHandler(t *testing.T) {
	var added int
	token, failure := "right", error(nil)
	h := &Handler{Token: func() (string, error) { return token, failure }, Add: func(history.Activity) { added++ }, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	body := `{"kind": "EventList", "items": [` + deleted + "," + deleted + "]}"
	send := func(method, path, authorization, body string) int {
		t.Helper()
		request := httptest.NewRequest(method, path, strings.NewReader(body))
		request.Header.Set("Authorization", authorization)
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, request)
		return answer.Code
	}
	for _, c := range []struct {
		method, path, authorization, body string
		want, added                       int
	}{
		{http.MethodPost, Path, "Bearer right", body, 200, 2},
		{http.MethodPost, Path, "Bearer wrong", body, 401, 0},
		{http.MethodPost, Path, "", body, 401, 0},
		{http.MethodGet, Path, "Bearer right", "", 405, 0},
		{http.MethodPost, "/", "Bearer right", body, 404, 0},
		{http.MethodPost, Path, "Bearer right", "{", 400, 0},
		{http.MethodPost, Path, "Bearer right", `{"items": [` + deleted + `, {"stage": 1}, "x", null, ` + deleted + "]}", 200, 2},
		{http.MethodPost, Path, "Bearer right", `{"items": [` + strings.Repeat(" ", maxBody) + "]}", 413, 0},
	} {
		added = 0
		if got := send(c.method, c.path, c.authorization, c.body); got != c.want || added != c.added {
			t.Errorf("%s %s with %q: got %d and %d entries, want %d and %d", c.method, c.path, c.authorization, got, added, c.want, c.added)
		}
	}
	if token = ""; send(http.MethodPost, Path, "Bearer ", body) != 500 {
		t.Error("an empty token is accepted, or its sender not asked to send again")
	}
	if failure = io.ErrUnexpectedEOF; send(http.MethodPost, Path, "Bearer right", body) != 500 {
		t.Error("a token that cannot be read is accepted, or its sender not asked to send again")
	}
}
