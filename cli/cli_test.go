package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// A console that answers every request for one path; the test of e2e reads a real one.
func answers(t *testing.T, path string, status int, body string, seen *http.Request) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if seen != nil {
			*seen = *r
		}
		if r.URL.Path != path {
			http.NotFound(w, r)
			return
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func run(t *testing.T, args ...string) (out, messages string, err error) {
	t.Helper()
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	var printed, remarks bytes.Buffer
	root := New(&printed, &remarks)
	root.SetArgs(args)
	err = root.ExecuteContext(t.Context())
	return printed.String(), remarks.String(), err
}

// What users typed into a name or a reason reaches no terminal as a command.
func TestTableIsClean(t *testing.T) {
	var seen http.Request
	server := answers(t, "/api/v1/tasks", 200, `{"page":1,"pages":2,"total":101,"tasks":[{"name":"train\u001b]0;x\u0007","kind":"Job","reason":"line\nbreak \u202e","waitedSeconds":7509.5,"position":3}]}`, &seen)
	out, messages, err := run(t, "tasks", "--server", server, "--token", "secret", "--team", "a", "--team", "b", "--status", "Pending")
	if err != nil || strings.ContainsAny(out, "\x1b\x07\u202e") || !strings.Contains(out, "train]0;x") || !strings.Contains(out, "line break") || !strings.Contains(out, "2h05m") {
		t.Errorf("got %v\n%q", err, out)
	}
	if strings.Count(out, "\n") != 2 || !strings.Contains(messages, "page 1 of 2, 101 in all") {
		t.Errorf("got %q and %q, want a head and one row", out, messages)
	}
	if got := seen.URL.RawQuery; got != "status=Pending&team=a&team=b" || seen.Header.Get("Authorization") != "Bearer secret" {
		t.Errorf("asked for %q with %q", got, seen.Header.Get("Authorization"))
	}
}

func TestProblems(t *testing.T) {
	t.Setenv("KUOTA_SERVER", "")
	refused := answers(t, "/api/v1/tasks", 401, `{"status":401,"error":"The token is not accepted."}`, nil)
	moved := answers(t, "/other", 200, "", nil)
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no server":     {[]string{"tasks"}, "Set --server"},
		"no address":    {[]string{"tasks", "--server", "kuota"}, "no address of a console"},
		"unencrypted":   {[]string{"tasks", "--server", "http://kuota.example.com"}, "use https"},
		"a host's name": {[]string{"tasks", "--server", "http://127.0.0.1.example.com"}, "use https"},
		"no file":       {[]string{"tasks", "--server", refused, "--token-file", "/nonexistent"}, "no such file"},
		"refused":       {[]string{"tasks", "--server", refused, "--token", "x"}, "The token is not accepted. Sign in with kuota login"},
		"not a console": {[]string{"teams", "--server", moved}, "404"},
		"format":        {[]string{"why", "a/b/c", "-o", "csv", "--server", moved}, "use table, json"},
		"no task":       {[]string{"stop", "a/train", "--server", moved}, "NAMESPACE/KIND/NAME"},
		"no selection":  {[]string{"stop", "--server", moved}, "--mine"},
		"unknown flag":  {[]string{"tasks", "--colour", "red"}, "unknown flag"},
	} {
		_, _, err := run(t, tc.args...)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
}

// A redirect is not followed: the token would go with it.
func TestRedirectIsNotFollowed(t *testing.T) {
	reached := false
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer elsewhere.Close()
	server := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	if _, _, err := run(t, "queue", "--server", server.URL, "--token", "secret"); err == nil || reached {
		t.Errorf("got %v, followed %t", err, reached)
	}
}

func TestUsageRows(t *testing.T) {
	server := answers(t, "/api/v1/usage", 200, `[{"from":"2026-11-01T00:00:00Z","lines":[{"pool":"h100","resource":"nvidia.com/gpu","kind":"team","team":"vision","seconds":9007199254740993,"cost":12.50}]}]`, nil)
	out, _, err := run(t, "usage", "--server", server)
	if err != nil || !strings.Contains(out, "vision") || !strings.Contains(out, "12.50") || !strings.Contains(out, "2501999792983.61") {
		t.Errorf("got %v\n%s", err, out)
	}
	exact, _, err := run(t, "usage", "--server", server, "-o", "json")
	var rows []struct {
		Lines []struct{ Seconds json.Number }
	}
	if err != nil || json.Unmarshal([]byte(exact), &rows) != nil || rows[0].Lines[0].Seconds != "9007199254740993" {
		t.Errorf("got %v\n%s", err, exact)
	}
}

// The flags of an elastic task become the values of its request.
func TestElasticFlags(t *testing.T) {
	for line, want := range map[string]string{
		"run --team a --image i --pods 2 --max-pods 8 --step 2 --grace 90 --scale 2:LR=0.1 --scale 8:A=b:c -d": `{"max":8,"step":2,"times":{"gracefulShutdownTimeoutInSeconds":90},"scaleConfig":{"2":{"LR":"0.1"},"8":{"A":"b:c"}}}`,
		"run --team a --image i --sizes 2,4,8 --rest 0 -d":                                                     `{"max":0,"sizes":[2,4,8],"times":{"minStablePeriodSeconds":0}}`,
		"run --team a --image i -d":                     ``,
		"run --team a --image i --grace 90 -d":          `add --max-pods or --sizes`,
		"run --team a --image i --sizes 2 --scale 2 -d": `is no SIZE:NAME=value`,
		"resize ns/elasticjob/train --scale 8:LR=0.1":   `{"min":0,"max":0,"scaleConfig":{"8":{"LR":"0.1"}}}`,
		"resize ns/elasticjob/train --scale none":       `{"min":0,"max":0,"scaleConfig":{}}`,
		"resize ns/elasticjob/train --min 1 --max 2":    `{"min":1,"max":2,"step":1}`,
	} {
		var body struct {
			Task  struct{ Elastic json.RawMessage }
			Sizes json.RawMessage
		}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				t.Error(err)
			}
			_, _ = w.Write([]byte(`{"tasks":[{}]}`))
		}))
		_, _, err := run(t, append(strings.Fields(line), "--server", server.URL, "--token", "t")...)
		server.Close()
		if got := string(body.Task.Elastic) + string(body.Sizes); err != nil && (want == "" || !strings.Contains(err.Error(), want)) || err == nil && got != want {
			t.Errorf("%s:\ngot  %s, %v\nwant %s", line, got, err, want)
		}
	}
}

func TestWhy(t *testing.T) {
	server := answers(t, "/api/v1/tasks/ns/job/train/why", 200, `{"status":"Pending","position":"2nd of 5","why":{"headline":"Waits for 2 GPUs.","text":"The team uses all of its quota.","steps":[{"title":"Own quota","text":"8 of 8, all used by","tasks":[{"name":"c"}]}],"changesTitle":"It would start if","changes":[{"title":"The end of","text":"","tasks":[{"name":"a"},{"name":"b"}],"after":"starts it.","verified":true}]},"estimate":{"text":"Probably in 2 h."}}`, nil)
	out, _, err := run(t, "why", "/tasks/ns/Job/train", "--server", server)
	want := "Pending, 2nd of 5\nWaits for 2 GPUs.\nThe team uses all of its quota.\n  Own quota: 8 of 8, all used by c\nIt would start if\n  The end of a, b starts it. (simulated)\nProbably in 2 h.\n"
	if err != nil || out != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, out, want)
	}
}

// Of a task that has started, why says how far it is.
func TestWhyOfARunningTask(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := `{"status":"Running"}`
		if r.URL.Path == "/api/v1/tasks/ns/job/train" {
			body = `{"progress":{"at":"2026-11-30T12:00:00Z","step":12345,"samplesPerSecond":812.53,"loss":0.123456,"checkpoint":"2026-11-30T11:59:00Z","checkpointSeconds":2.46}}`
		}
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	for name, want := range map[string]string{
		"train": "Running\nThere is nothing to explain.\nProgress at 2026-11-30T12:00:00Z: step 12345, 812.5 samples/s, loss 0.1235, last checkpoint 2026-11-30T11:59:00Z, which took 2.5 s\n",
		"other": "Running\nThere is nothing to explain.\n",
	} {
		if out, _, err := run(t, "why", "/tasks/ns/Job/"+name, "--server", server.URL); err != nil || out != want {
			t.Errorf("%s: got %v\n%s\nwant\n%s", name, err, out, want)
		}
	}
}

// Completion knows commands, and values of flags.
func TestCompletion(t *testing.T) {
	script, _, err := run(t, "completion", "bash")
	if err != nil || !strings.Contains(script, "__complete") {
		t.Errorf("got %v\n%.200s", err, script)
	}
	out, _, err := run(t, "__complete", "")
	if err != nil || !strings.Contains(out, "tasks\t") {
		t.Errorf("got %v\n%s", err, out)
	}
	if out, _, _ = run(t, "__complete", "tasks", "-o", ""); !strings.Contains(out, "csv") {
		t.Errorf("got\n%s", out)
	}
}

// Every command has an example that its flags read; e2e runs them.
func TestExamples(t *testing.T) {
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		for _, below := range c.Commands() {
			visit(below)
		}
		if c.HasSubCommands() || c.Name() == "help" || c.Parent() != nil && c.Parent().Name() == "completion" {
			return
		}
		words := strings.Fields(c.Example)
		if len(words) < 2 || !strings.HasPrefix(c.Example, "  "+c.CommandPath()) {
			t.Errorf("%s has the example %q", c.CommandPath(), c.Example)
			return
		}
		found, rest, err := c.Root().Find(words[1:])
		if err != nil || found != c {
			t.Errorf("%q is for %s: %v", c.Example, found.CommandPath(), err)
			return
		}
		if err := found.ParseFlags(rest); err != nil {
			t.Errorf("%q: %v", c.Example, err)
		}
	}
	visit(New(io.Discard, io.Discard))
}
