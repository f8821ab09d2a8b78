package training_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kuota.dev/kuota/cli"
	"kuota.dev/kuota/e2e/consoles"
	"kuota.dev/kuota/governance/submit/recipes"

	"github.com/PuerkitoBio/goquery"
)

// claim is the shared volume of the recipes, as an admin provides it.
const claim = `
apiVersion: v1
kind: PersistentVolume
metadata: {name: recipes}
spec: {accessModes: [ReadWriteMany], capacity: {storage: 1Gi}, hostPath: {path: /var/lib/checkpoints, type: Directory}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: NAME, namespace: NAMESPACE}
spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}, storageClassName: "", volumeName: recipes}
`

// Each recipe that is not marked runs to its end as it is, but for the image: from the form, and
// by kuota run, as a member of the team.
func TestRecipes(t *testing.T) {
	if reason := skipped(); reason != "" {
		t.Skip(reason)
	}
	l, console := newLab(t)
	folder := filepath.Join(l.Dir, "data", "node", "lib", "checkpoints") // /var/lib/checkpoints of the node
	if err := os.MkdirAll(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	team := namespace("training")
	l.Apply(l, strings.NewReplacer("NAMESPACE", team, "NAME", recipes.Claim).Replace(claim))
	l.Apply(l, strings.ReplaceAll(asMember, "NAMESPACE", team))
	member := consoles.SignIn(l, console)
	for _, r := range recipes.All {
		if r.NotRun != "" {
			continue
		}
		t.Run(r.Name, func(t *testing.T) {
			l := &lab{t, l.Cluster, l.cpu}
			for by, submit := range map[string]func(name string) error{
				"form": func(name string) error { return l.byForm(member, console.Address, r.Name, name) },
				"run": func(name string) error {
					var printed, remarks bytes.Buffer
					root := cli.New(&printed, &remarks)
					root.SetArgs([]string{"run", "--recipe", r.Name, "--team", "training", "--name", name, "--image", image, "--cpu", l.vcpu(), "--memory", "0.5", "-d", "--server", console.Address, "--token", consoles.Token(t, l.Cluster, "admin")}) // it soon expires
					return root.ExecuteContext(t.Context())
				},
			} {
				name := r.Name + "-" + by
				l.wait("submit "+name, func(context.Context) error { return submit(name) }) // the roles take effect meanwhile
				l.waitTask(name)
				if err := os.RemoveAll(filepath.Join(folder, r.Name)); err != nil { // the second begins again
					t.Fatal(err)
				}
			}
		})
	}
}

// vcpu is that of a pod of a recipe.
func (l *lab) vcpu() string { return fmt.Sprintf("%.2f", float64(l.share(20).MilliValue())/1000) }

// byForm submits a recipe as a browser does without JavaScript.
func (l *lab) byForm(member *http.Client, console, recipe, name string) error {
	address := console + "/teams/training/submit"
	response, err := member.Get(address + "?" + url.Values{"recipe": {recipe}, "name": {name}, "image": {image}, "vcpu": {l.vcpu()}, "memory": {"0.5"}}.Encode())
	if err != nil {
		return err
	}
	defer response.Body.Close()
	page, err := goquery.NewDocumentFromReader(response.Body)
	if err != nil {
		return err
	}
	values := url.Values{"action": {"save"}}
	page.Find("#submit-form input[name], #submit-form textarea[name], #submit-form select[name]").Each(func(_ int, input *goquery.Selection) {
		key, value := input.AttrOr("name", ""), input.AttrOr("value", "")
		switch _, checked := input.Attr("checked"); {
		case input.Is("[type=checkbox]") && !checked, input.Is("[type=file]"):
			return
		case input.Is("textarea"):
			value = input.Text()
		case input.Is("select"):
			value = input.Find("option[selected]").AttrOr("value", "")
		}
		values.Add(key, value)
	})
	request, err := http.NewRequest(http.MethodPost, address, strings.NewReader(values.Encode()))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := member.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	page, err = goquery.NewDocumentFromReader(answer.Body)
	if at := answer.Request.URL.Path; err == nil && (answer.StatusCode != http.StatusOK || at == "/teams/training/submit") {
		err = fmt.Errorf("%s at %s: %s", answer.Status, at, strings.Join(strings.Fields(page.Find("#form-errors, h1").Text()), " "))
	}
	return err
}

// waitTask waits until a Job or an ElasticJob has succeeded, and deletes it.
func (l *lab) waitTask(name string) {
	l.Helper()
	team := namespace("training")
	l.wait("the end of "+name, func(context.Context) error {
		got, err := l.TryKubectl("", "get", "jobs,elasticjobs", "-n", team, "-o", `jsonpath={range .items[?(@.metadata.name=="`+name+`")]}{.kind} {.status.state}{.status.conditions[*].type}{end}`)
		switch {
		case err != nil:
			return err
		case strings.Contains(got, "Failed"):
			logs, _ := l.TryKubectl("", "logs", "-n", team, "-l", "kuota.dev/elastic-job="+name, "--tail=80", "--prefix")
			more, _ := l.TryKubectl("", "logs", "-n", team, "-l", "job-name="+name, "--tail=80", "--prefix")
			l.Fatalf("%s: %s\n%s%s", name, got, logs, more)
		case !strings.Contains(got, "Succeeded") && !strings.Contains(got, "Complete"):
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
	l.Kubectl(l, "", "delete", "jobs,elasticjobs", "-n", team, "--field-selector", "metadata.name="+name, "--wait=false")
}
