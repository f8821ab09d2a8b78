package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/cli"
	"kuota.dev/kuota/governance/cluster/clustertest"
)

// kuota runs a command of users against a console, and returns what it prints.
func kuota(t *testing.T, console string, args ...string) (out, messages string, err error) {
	t.Helper()
	var printed, remarks bytes.Buffer
	root := cli.New(&printed, &remarks)
	root.SetArgs(append(args, "--server", console))
	err = root.ExecuteContext(t.Context())
	return printed.String(), remarks.String(), err
}

// robotBinding lets a service account read the tasks of a team.
func robotBinding(team, account string) string {
	return strings.NewReplacer("TEAM", team, "ACCOUNT", account).Replace(`
apiVersion: v1
kind: ServiceAccount
metadata: {name: ACCOUNT, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: ACCOUNT, namespace: hyperpod-ns-TEAM}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kuota-team-member}
subjects: [{kind: ServiceAccount, name: ACCOUNT, namespace: default}]
`)
}

// dataPaths are the files for programs.
var dataPaths = []string{
	"/tasks.json", "/tasks.csv", "/teams.json", "/teams.csv", "/queue.json", "/queue.csv", "/activity.json", "/activity.csv", "/usage.json", "/usage.csv",
	"/alerts.json", "/alerts.csv", "/tasks/past.csv", "/classes.csv", "/capacity.csv", "/instances.csv", "/hardware.csv",
}

// TestCommandLine reads as a service account of one team: what its page says in the same
// words, nothing of another team, and nothing with another token.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	c := clustertest.Get(t)
	address := console(t)
	own, other := makeTenant(t, "cli-own", "vision-team"), makeTenant(t, "cli-other", "language-team")
	account := clustertest.Name("robot")
	c.Apply(t, robotBinding(own.team, account))
	t.Cleanup(func() { c.Kubectl(t, "", "delete", "serviceaccount", account, "-n", "default", "--ignore-not-found") })
	token := strings.TrimSpace(c.Kubectl(t, "", "create", "token", account, "-n", "default", "--audience", "kuota"))
	task := "hyperpod-ns-" + own.team + "/job/" + own.job
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error { // until the binding is in the cache
		out, _, err := kuota(t, address, "tasks", "--token", token)
		if err == nil && !strings.Contains(out, own.job) {
			err = fmt.Errorf("the list has no %s:\n%s", own.job, out)
		}
		return err
	})
	for _, command := range [][]string{
		{"tasks", "--team", own.team}, {"tasks", "-o", "csv"}, {"tasks", "-o", "json"}, {"tasks", "--tab", "finished"}, {"queue"}, {"queue", "-o", "csv"}, {"teams"}, {"teams", "-o", "json", "--resource", "cpu"},
		{"usage"}, {"usage", "-o", "csv", "--by", "month"}, {"usage", "--team", other.team}, {"activity"}, {"activity", "--team", other.team}, {"why", task}, {"why", "/tasks/" + task, "-o", "json"},
	} {
		out, messages, err := kuota(t, address, append(command, "--token", token)...)
		if err != nil {
			t.Errorf("kuota %s: %v", strings.Join(command, " "), err)
		}
		if strings.Contains(out+messages, other.job) || strings.Contains(strings.ReplaceAll(out+messages, "team="+other.team, ""), other.team) {
			t.Errorf("kuota %s names another team:\n%s", strings.Join(command, " "), out)
		}
	}
	_, _, hidden := kuota(t, address, "tasks", "--team", other.team, "--token", token)
	_, _, none := kuota(t, address, "tasks", "--team", "none", "--token", token)
	if hidden == nil || none == nil || strings.ReplaceAll(hidden.Error(), other.team, "none") != none.Error() {
		t.Errorf("tasks of another team: %v; of no team: %v", hidden, none)
	}
	teams, _, err := kuota(t, address, "teams", "--token", token, "--resource", "nvidia.com/gpu")
	if err != nil || !regexp.MustCompile(`(?m)^`+own.team+`\s+0\s+1\s`).MatchString(teams) {
		t.Errorf("kuota teams: %v\n%s", err, teams)
	}
	if _, _, err := kuota(t, address, "why", "hyperpod-ns-"+other.team+"/job/"+other.job, "--token", token); err == nil {
		t.Error("kuota why explains a task of another team")
	}

	// The same words as on the page of a member.
	ada := user(t, address, "ada")
	var body string
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error { // until her binding is in the cache
		var status int
		if status, body = fetch(t, ada, address+"/tasks/"+task+"/why.json"); status != http.StatusOK {
			return fmt.Errorf("why.json: got status %d: %s", status, body)
		}
		return nil
	})
	_, page := fetch(t, ada, address+"/tasks/"+task)
	mine, _, err := kuota(t, address, "why", task, "-o", "json", "--token", token)
	if err != nil {
		t.Fatal(err)
	}
	var member, robot struct {
		Status string
		Why    *struct{ Headline, Text string }
	}
	must(t, json.Unmarshal([]byte(body), &member))
	must(t, json.Unmarshal([]byte(mine), &robot))
	if member.Status != robot.Status || !strings.Contains(page, robot.Status) || (member.Why == nil) != (robot.Why == nil) || robot.Why != nil && *robot.Why != *member.Why {
		t.Errorf("kuota why says %+v, the page says %+v", robot, member)
	}

	for name, refused := range map[string]string{
		"no token":         "",
		"nonsense":         "nonsense",
		"another audience": strings.TrimSpace(c.Kubectl(t, "", "create", "token", account, "-n", "default", "--audience", "other")),
		"no audience":      strings.TrimSpace(c.Kubectl(t, "", "create", "token", account, "-n", "default")),
		"too long":         strings.Repeat("x", 30_000),
	} {
		for _, path := range dataPaths {
			if status, body := withToken(t, address+path, refused); status != http.StatusUnauthorized && status != http.StatusRequestHeaderFieldsTooLarge || strings.Contains(body, own.job) {
				t.Errorf("%s, %s: got status %d, want 401: %.200s", name, path, status, body)
			}
		}
	}
	for _, path := range dataPaths {
		status, body := withToken(t, address+path, token)
		if status != http.StatusOK {
			t.Errorf("%s: got status %d: %.200s", path, status, body)
		}
		for _, secret := range other.secrets {
			if strings.Contains(body, secret) {
				t.Errorf("%s names %s of another team", path, secret)
			}
		}
	}
	// A token opens no page, and changes nothing.
	for _, path := range []string{"/", "/tasks", "/policies", "/tasks/" + task, "/teams/" + own.team, "/events"} {
		if status, body := withToken(t, address+path, token); status != http.StatusUnauthorized && status != http.StatusSeeOther && status != http.StatusNotFound || strings.Contains(body, own.job) {
			t.Errorf("%s: a token opens the page with status %d", path, status)
		}
	}
	c.Kubectl(t, "", "delete", "serviceaccount", account, "-n", "default")
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error { // the API server reuses its answer too
		if status, _ := withToken(t, address+"/tasks.json", token); status != http.StatusUnauthorized {
			return fmt.Errorf("the token of a deleted account: got status %d, want 401", status)
		}
		return nil
	})
}

// withToken requests an address with a bearer token, and follows no redirect.
func withToken(t *testing.T, address, token string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	must(t, err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(request)
	must(t, err)
	defer response.Body.Close()
	var body bytes.Buffer
	_, err = body.ReadFrom(response.Body)
	must(t, err)
	return response.StatusCode, body.String()
}

// TestDeviceLogin signs in by the device flow of npm's oidc-provider, reads as that user,
// and refreshes the token when it ends.
func TestDeviceLogin(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("KUOTA_TOKEN", "")
	console(t)
	own, other := makeTenant(t, "device-own", "vision-team"), makeTenant(t, "device-other", "language-team")
	address := replica(t, "device", append(oidcProvider(t, map[string][]string{"ada": {"vision-team"}}), "KUOTA_OIDC_COMMAND_LINE_CLIENT_ID=kuota-cli")...)
	must(t, waitReady(address))
	if _, _, err := kuota(t, address, "tasks"); err == nil || !strings.Contains(err.Error(), "kuota login") {
		t.Errorf("before signing in: got %v, want how to sign in", err)
	}
	messages := &lines{found: make(chan string, 1)}
	done := make(chan error, 1)
	root := cli.New(messages, messages)
	root.SetArgs([]string{"login", "--server", address})
	go func() { done <- root.ExecuteContext(t.Context()) }()
	select {
	case at := <-messages.found:
		confirmDevice(t, at, "ada")
	case err := <-done:
		t.Fatalf("kuota login: %v", err)
	}
	select {
	case err := <-done:
		must(t, err)
	case <-time.After(time.Minute):
		t.Fatal("kuota login does not end after the confirmation")
	}
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
		out, _, err := kuota(t, address, "tasks")
		switch {
		case err == nil && strings.Contains(out, other.job):
			t.Fatalf("the list names another team:\n%s", out)
		case err == nil && !strings.Contains(out, own.job):
			err = fmt.Errorf("the list has no %s:\n%s", own.job, out)
		}
		return err
	})
	path := filepath.Join(configDir(t), "kuota", "credentials.json")
	before := expireCredentials(t, path)
	if _, _, err := kuota(t, address, "teams"); err != nil {
		t.Errorf("after the token ended: %v", err)
	}
	if after := expireCredentials(t, path); after == before {
		t.Error("the token was not refreshed")
	}
	if _, _, err := kuota(t, address, "logout"); err != nil {
		t.Error(err)
	}
	if _, _, err := kuota(t, address, "teams"); err == nil {
		t.Error("after kuota logout the console answers")
	}
}

// lines finds the address in what kuota login prints.
type lines struct {
	mu    sync.Mutex
	text  string
	found chan string
}

var deviceAddress = regexp.MustCompile(`http://\S+`)

func (l *lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text += string(text)
	if at := deviceAddress.FindString(l.text); at != "" && strings.Contains(l.text, "\n") {
		select {
		case l.found <- at:
		default:
		}
	}
	return len(text), nil
}

// confirmDevice opens the address of a device and signs in there.
func confirmDevice(t *testing.T, address, name string) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	must(t, err)
	browser := &http.Client{Jar: jar}
	response, page := load(t, browser, address)
	for range 8 {
		if page.Find("form").Length() == 0 {
			break
		}
		response, page = submitSignIn(t, browser, response, page, name)
	}
	if response.StatusCode != http.StatusOK || page.Find("form").Length() > 0 {
		t.Fatalf("the device is not confirmed: %s: %s", response.Status, page.Text())
	}
}

func configDir(t *testing.T) string {
	t.Helper()
	dir, err := os.UserConfigDir()
	must(t, err)
	return dir
}

// expireCredentials ends the stored tokens, and returns what was stored.
func expireCredentials(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	all := map[string]map[string]any{}
	must(t, json.Unmarshal(text, &all))
	for _, of := range all {
		of["expires"] = time.Now()
	}
	ended, err := json.Marshal(all)
	must(t, err)
	must(t, os.WriteFile(path, ended, 0o600))
	return string(text)
}
