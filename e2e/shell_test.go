package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kuota.dev/kuota/cli"
	"kuota.dev/kuota/e2e/consoles"
	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/spf13/cobra"
)

// personToken signs a person in as kuota login does, and returns the ID token.
func personToken(t *testing.T, name string) string {
	t.Helper()
	return consoles.Token(t, clustertest.Get(t), name)
}

// ask sends a request to the API.
func ask(t *testing.T, method, address, token string, body any, headers ...string) (int, string) {
	t.Helper()
	text, err := json.Marshal(body)
	must(t, err)
	request, err := http.NewRequestWithContext(t.Context(), method, address, bytes.NewReader(text))
	must(t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	must(t, err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	must(t, err)
	return response.StatusCode, string(answer)
}

// launchJob is a Job as the launch post of HyperPod task governance has it: the labels of Kueue are
// on the pod template.
const launchJob = `apiVersion: batch/v1
kind: Job
metadata: {generateName: NAME-, labels: {sweep: NAME}}
spec:
  suspend: true
  template:
    metadata: {annotations: {pod-complete.stage.kwok.x-k8s.io/delay: 1h}, labels: {kueue.x-k8s.io/queue-name: elsewhere}}
    spec:
      restartPolicy: Never
      containers: [{name: train, image: "example.com/train:1", resources: {requests: {cpu: 100m, memory: 64Mi}}}]
`

// TestShell works as a member of a team in a shell: submits, finds, stops, resumes, submits again and
// deletes, each once in activity, and reaches nothing of another team.
func TestShell(t *testing.T) {
	t.Parallel()
	address := console(t)
	own, other := makeTenant(t, "shell-own", "vision-team"), makeTenant(t, "shell-other", "language-team")
	token := personToken(t, "ada")
	run := func(args ...string) (string, string) {
		t.Helper()
		out, messages, err := kuota(t, address, append(args, "--token", token)...)
		if err != nil {
			t.Fatalf("kuota %s: %v\n%s%s", strings.Join(args, " "), err, out, messages)
		}
		return out, messages
	}
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error { // until her binding is in the cache
		out, _, err := kuota(t, address, "tasks", "--team", own.team, "--token", token)
		if err == nil && !strings.Contains(out, own.job) {
			err = fmt.Errorf("the list has no %s:\n%s", own.job, out)
		}
		return err
	})
	file := filepath.Join(t.TempDir(), "two.yaml")
	sweep := clustertest.Name("lr")
	must(t, os.WriteFile(file, []byte(strings.ReplaceAll(launchJob, "NAME", sweep)+"---\n"+strings.ReplaceAll(strings.Replace(launchJob, "generateName: NAME-", "name: NAME-last", 1), "NAME", sweep)), 0o600))
	out, messages := run("submit", "-f", file, "--team", own.team)
	names := strings.Fields(out)
	if len(names) != 2 || !strings.HasSuffix(names[1], "/job/"+sweep+"-last") || !strings.Contains(messages, "becomes the name "+sweep) || !strings.Contains(messages, "is moved to metadata.labels") {
		t.Errorf("submitted %q:\n%s", names, messages)
	}
	inList := func(want int, flags ...string) {
		t.Helper()
		clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
			out, _ := run(append([]string{"tasks", "-o", "name", "--team", own.team, "-l", "sweep=" + sweep}, flags...)...)
			if n := len(strings.Fields(out)); n != want {
				return fmt.Errorf("%d tasks with %q, want %d:\n%s", n, flags, want, out)
			}
			return nil
		})
	}
	inList(2, "--mine", "--status", "Running")
	run("stop", sweep+"-*", "--team", own.team, "--yes")
	inList(2, "--status", "Stopped")
	run("resume", "--yes", "--team", own.team, "--selector", "sweep="+sweep)
	inList(0, "--status", "Stopped")
	if again, _ := run("again", names[1]); !strings.Contains(again, "/job/"+sweep+"-last") || strings.TrimSpace(again) == names[1] {
		t.Errorf("again submits %q", again)
	}
	inList(3)
	if _, _, err := kuota(t, address, "delete", sweep+"-*", "--token", token, "--dry-run"); err != nil {
		t.Error(err)
	}
	if _, _, err := kuota(t, address, "delete", sweep, "--token", token, "--yes"); err == nil || !strings.Contains(err.Error(), "no such task") {
		t.Errorf("deleting what does not exist: %v", err)
	}
	run("delete", sweep+"-*", "--team", own.team, "--yes")
	inList(0)
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
		entries, _ := run("activity", "--team", own.team, "--actor", "ada@example.com")
		for action, want := range map[string]int{"submit": 3, "stop": 2, "resume": 2, "delete": 3} {
			if n := len(regexp.MustCompile(`(?m)console\s+`+action+`\s+Job\s.*`+sweep).FindAllString(entries, -1)); n != want {
				return fmt.Errorf("activity has %d times %s, want %d:\n%s", n, action, want, entries)
			}
		}
		return nil
	})

	// A folder comes with its task, in the ConfigMap that members may create.
	folder := t.TempDir()
	must(t, os.WriteFile(filepath.Join(folder, "train.py"), []byte("print('hello')\n"), 0o600))
	if _, _, err := kuotaBefore(t, address, "run", "--token", token, "--team", own.team, "--name", sweep+"-source", "--source", folder, "--image", "example.com/train:1", "--cpu", "0.1", "--memory", "0.1", "-d", "--", "python", "train.py"); err != nil {
		t.Error(err)
	}
	if script := clustertest.Get(t).Kubectl(t, "", "get", "configmap", sweep+"-source-script", "-n", "hyperpod-ns-"+own.team, "-o", "jsonpath={.data.script}"); !strings.HasSuffix(strings.TrimSpace(script), "exec python train.py") {
		t.Errorf("the script ends with %.200q", script)
	}
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error { // Kueue may take longer than the command waits
		_, messages, err := kuota(t, address, "delete", sweep+"-source", "--team", own.team, "--yes", "--token", token)
		if err != nil {
			return fmt.Errorf("%w: %s", err, messages)
		}
		return nil
	})

	// One idempotency key is one task.
	tasks := address + "/api/v1/teams/" + own.team + "/tasks"
	body := map[string]string{"manifest": strings.ReplaceAll(launchJob, "NAME", sweep)}
	key := []string{"Idempotency-Key", sweep}
	first, one := ask(t, "POST", tasks, token, body, key...)
	second, two := ask(t, "POST", tasks, token, body, key...)
	body["manifest"] = strings.ReplaceAll(launchJob, "NAME", sweep+"-x")
	if third, three := ask(t, "POST", tasks, token, body, key...); first != http.StatusCreated || second != http.StatusCreated || one != two || third != http.StatusUnprocessableEntity || !strings.Contains(three, "Idempotency-Key") {
		t.Errorf("one key: %d, %d, %d %s", first, second, third, three)
	}
	inList(1)

	mine := "/api/v1/tasks/hyperpod-ns-" + own.team + "/job/" + own.job
	if status, answer := ask(t, "GET", address+mine, token, nil); status != http.StatusOK || !strings.Contains(answer, `"name":"`+own.job+`"`) || !strings.Contains(answer, `"status":`) {
		t.Errorf("one task: %d %s", status, answer)
	}

	// Nothing of another team is reached, or revealed.
	theirs := "/api/v1/tasks/hyperpod-ns-" + other.team + "/job/" + other.job
	for name, tc := range map[string]struct {
		method, path string
		body         any
	}{
		"get":       {"GET", theirs, nil},
		"why":       {"GET", theirs + "/why", nil},
		"pods":      {"GET", theirs + "/pods", nil},
		"logs":      {"GET", theirs + "/logs", nil},
		"manifest":  {"GET", theirs + "/manifest", nil},
		"stop":      {"POST", theirs + "/stop", map[string]string{}},
		"class":     {"POST", theirs + "/class", map[string]string{"class": "training"}},
		"again":     {"POST", theirs + "/again", map[string]string{}},
		"delete":    {"DELETE", theirs, nil},
		"submit":    {"POST", "/api/v1/teams/" + other.team + "/tasks", body},
		"read":      {"GET", "/api/v1/allocations/" + other.team, nil},
		"hold":      {"POST", "/api/v1/allocations/" + other.team + "/hold", nil},
		"remove":    {"DELETE", "/api/v1/allocations/" + other.team, nil},
		"own quota": {"DELETE", "/api/v1/allocations/" + own.team, nil},
		"policy":    {"PUT", "/api/v1/policy", map[string]any{"spec": map[string]any{}}},
	} {
		status, answer := ask(t, tc.method, address+tc.path, token, tc.body)
		if status != http.StatusNotFound && status != http.StatusForbidden {
			t.Errorf("%s: got status %d, want 403 or 404: %.300s", name, status, answer)
		}
		none, same := ask(t, tc.method, address+strings.NewReplacer(other.team, "none", other.job, "none").Replace(tc.path), token, tc.body)
		if name != "own quota" && (none != status || strings.NewReplacer(other.team, "none", other.job, "none").Replace(answer) != same) {
			t.Errorf("%s: what exists answers %d %s, and what does not %d %s", name, status, answer, none, same)
		}
	}
	for _, selector := range []map[string]any{{"teams": []string{other.team}}, {"names": []string{other.job}}, {"text": other.job}, {"by": "kubernetes-admin", "names": []string{"*"}}} {
		status, answer := ask(t, "POST", address+"/api/v1/tasks/many?dryRun=true", token, map[string]any{"action": "delete", "selector": selector})
		if status != http.StatusOK || strings.Contains(answer, other.job) || strings.Contains(answer, other.team) {
			t.Errorf("a selector %v: %d %.300s", selector, status, answer)
		}
	}
	for _, secret := range other.secrets {
		for _, path := range []string{"tasks", "queue", "past-tasks", "teams", "allocations", "usage", "activity", "alerts", "notices"} {
			if status, answer := ask(t, "GET", address+"/api/v1/"+path, token, nil); status != http.StatusOK || strings.Contains(answer, secret) {
				t.Errorf("/api/v1/%s: %d, names another team: %t", path, status, strings.Contains(answer, secret))
			}
		}
	}
}

// TestExamples runs the example of each command of users, for a team of its own.
func TestExamples(t *testing.T) {
	t.Parallel()
	address := console(t)
	c := clustertest.Get(t)
	own := makeTenant(t, "examples", "vision-team")
	ada, admin := personToken(t, "ada"), personToken(t, "admin")
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
		out, _, err := kuota(t, address, "tasks", "--team", own.team, "--token", ada)
		if err == nil && !strings.Contains(out, own.job) {
			err = fmt.Errorf("the list has no %s:\n%s", own.job, out)
		}
		return err
	})
	dir := t.TempDir()
	manifest := filepath.Join(dir, "train.yaml")
	must(t, os.WriteFile(manifest, []byte(strings.ReplaceAll(launchJob, "generateName: NAME-", "name: file")), 0o600))
	c.Apply(t, strings.Replace(jobManifest(own.team, "lr-1", 0), `, nvidia.com/gpu: "0"`, "", 1))
	created := clustertest.Name("new")
	deleteTeamAtEnd(t, created)
	var examples []string
	var visit func(*cobra.Command)
	visit = func(of *cobra.Command) {
		for _, below := range of.Commands() {
			visit(below)
		}
		if !of.HasSubCommands() && of.Example != "" {
			examples = append(examples, strings.TrimSpace(of.Example))
		}
	}
	visit(cli.New(io.Discard, io.Discard))
	for _, example := range examples {
		words := strings.Fields(strings.ReplaceAll(example, "'", ""))[1:]
		token, team := ada, own.team
		switch words[0] {
		case "login", "logout", "resume", "resize", "front", "class", "again", "logs": // need a sign-in, a state or a kubelet of their own: TestDeviceLogin, TestShell
			continue
		case "allocation", "policy":
			if words[0] == "policy" || words[1] == "move" { // this cluster has no policy and no department: TestEditPolicy, TestDepartment
				continue
			}
			if token = admin; words[1] == "create" || words[1] == "edit" || words[1] == "delete" || words[1] == "hold" || words[1] == "weight" || words[1] == "drain" || words[1] == "resume" {
				team = created
			}
			if words[1] != "describe" && words[1] != "list" {
				words = append(words, "--dry-run") // in any order
			}
			if team == created && words[1] != "create" && words[0] == "allocation" {
				clustertest.Eventually(t, clustertest.Patience, func(context.Context) error { // examples have no order
					_, _, err := kuota(t, address, "allocation", "describe", created, "--token", admin)
					if err != nil {
						_, _, _ = kuota(t, address, "allocation", "create", created, "--pool", "ml.p5.48xlarge", "--gpus", "1", "--token", admin)
					}
					return err
				})
			}
		case "department":
			if token = admin; words[1] != "create" { // while there is one, the forms of all tests have it: TestDepartment
				continue
			}
			words = append(words, "--dry-run")
		case "alerts":
			if token = admin; words[1] == "test" { // this cluster has no receiver: TestAPISilences
				continue
			}
		case "run", "submit":
			if words[0] == "run" {
				words = append([]string{"run", "--dry-run"}, words[1:]...)
			}
		case "stop", "delete":
			words = append(words, "--dry-run")
		}
		for i, word := range words {
			switch word {
			case "vision":
				words[i] = team
			case "train":
				words[i] = "hyperpod-ns-" + own.team + "/job/" + own.job
			case "train.yaml":
				words[i] = manifest
			case "training":
				words[i] = ""
			}
		}
		if i := indexOf(words, "--class"); i >= 0 && words[i+1] == "" { // there is no such class in this cluster
			words = append(words[:i], words[i+2:]...)
		}
		if words[0] == "delete" { // there is no such task
			words = []string{"delete", "hyperpod-ns-" + own.team + "/job/" + own.job, "--dry-run"}
		}
		var command []string // flags come before --
		command = append(command, words[0], "--token", token)
		command = append(command, words[1:]...)
		if words[0] == "allocation" || words[0] == "department" || words[0] == "policy" || words[0] == "alerts" || words[0] == "template" {
			command = append([]string{words[0], words[1], "--token", token}, words[2:]...)
		}
		out, messages, err := kuotaBefore(t, address, command...)
		if err != nil {
			t.Errorf("%s: %q: %v\n%s%s", example, command, err, out, messages)
		}
	}

	// Several teams at once; what cannot be done to one is said.
	out, messages, err := kuota(t, address, "allocation", "weight", "7", own.team, created, "none", "--yes", "--token", admin)
	if err == nil || !strings.Contains(messages, "none  left out: There is no such team") || !strings.Contains(messages, "Done: 2 teams.") {
		t.Errorf("a weight of several teams: %v\n%s%s", err, out, messages)
	}
	for _, team := range []string{own.team, created} {
		if weight := c.Kubectl(t, "", "get", "computeallocation", team, "-o", "jsonpath={.spec.fairShareWeight}"); weight != "7" {
			t.Errorf("team %s has the weight %s", team, weight)
		}
	}
}

func indexOf(words []string, word string) int {
	for i, w := range words {
		if w == word {
			return i
		}
	}
	return -1
}

// kuotaBefore is kuota with the flag of the console first, for commands with arguments after --.
func kuotaBefore(t *testing.T, console string, args ...string) (out, messages string, err error) {
	t.Helper()
	var printed, remarks bytes.Buffer
	root := cli.New(&printed, &remarks)
	root.SetArgs(append([]string{"--server", console}, args...))
	err = root.ExecuteContext(t.Context())
	return printed.String(), remarks.String(), err
}
