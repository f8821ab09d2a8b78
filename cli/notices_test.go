package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// kuota notices sends what its flags say, and keeps the rest; receivers that are lost are not sent
// again.
func TestNotices(t *testing.T) {
	const now = `{"on":["end"],"to":["mail","old"],"lost":["old"],"email":"ada@example.com","until":"2026-06-01T00:00:00Z","receivers":[{"name":"mail","type":"Email"},{"name":"vision","type":"Slack","team":"vision"},{"name":"other","type":"Email","problem":"No address."}]}`
	for name, tc := range map[string]struct {
		args []string
		want map[string][]string // that is sent; nil for nothing
		fail string
	}{
		"nothing": {nil, nil, ""},
		"events":  {[]string{"--on", "fail,preempt"}, map[string][]string{"on": {"fail", "preempt"}, "to": {"mail"}}, ""},
		"to":      {[]string{"--to", "vision"}, map[string][]string{"on": {"end"}, "to": {"vision"}}, ""},
		"both":    {[]string{"--on", "start", "--to", "mail,vision"}, map[string][]string{"on": {"start"}, "to": {"mail", "vision"}}, ""},
		"off":     {[]string{"--off"}, map[string][]string{"on": {}, "to": {}}, ""},
		"off, on": {[]string{"--off", "--on", "end"}, nil, "none of the others"},
		"to none": {[]string{"--to", ""}, nil, "--off"},
	} {
		var sent map[string][]string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPut {
				_ = json.NewDecoder(r.Body).Decode(&sent)
			}
			_, _ = w.Write([]byte(now))
		}))
		out, messages, err := run(t, append([]string{"notices", "--server", server.URL, "--token", "x"}, tc.args...)...)
		server.Close()
		if (err != nil) != (tc.fail != "") || err != nil && !strings.Contains(err.Error(), tc.fail) {
			t.Errorf("%s: got error %v, want %q", name, err, tc.fail)
		}
		if diff := cmp.Diff(tc.want, sent); diff != "" {
			t.Errorf("%s (-want +sent):\n%s", name, diff)
		}
		if err != nil {
			continue
		}
		for _, want := range []string{"on end by mail, old", "Not by old", "mail: e-mail to ada@example.com", "vision: Slack, tasks of team vision", "other: Email: No address."} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: got %q, want %q", name, out, want)
			}
		}
		if !strings.Contains(messages, "until 2026-06-01") {
			t.Errorf("%s: got %q", name, messages)
		}
	}
}
