package e2e_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/playwright-community/playwright-go"
)

// TestSubmit fills in the form on a team's page, checks the predicted verdict, submits
// the task and reaches its page, with and without JavaScript.
func TestSubmit(t *testing.T) {
	t.Parallel()
	c := clustertest.Get(t)
	team := clustertest.Name("submit")
	deleteTeamAtEnd(t, team)
	scientist := user(t, console(t), "ada")
	c.Apply(t, `
apiVersion: kuota.dev/v1alpha1
kind: ComputeAllocation
metadata: {name: `+team+`}
spec:
  quota: [{instanceType: ml.p5.48xlarge, accelerators: 4}]
  sharing: {strategy: DontLend}
  members: [{kind: Group, name: vision-team}]
`)
	waitForQueues(t, c, team)
	waitForSubmitForm(t, scientist, team, "ml.p5.48xlarge")

	for name, script := range map[string]bool{"with-script": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			page := visitSignedOut(t, playwright.BrowserNewContextOptions{JavaScriptEnabled: playwright.Bool(script)}, "status of 422")
			must(t, page.Context().AddCookies(cookiesOf(t, scientist, console(t))))
			open(t, page, "/teams/"+team+"/submit")
			verdictIs := func(verdict string) {
				t.Helper()
				if !script {
					must(t, page.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Check"}).Click())
				}
				must(t, expect.Locator(page.Locator("#verdict")).ToContainText(verdict))
			}
			submit := func() {
				t.Helper()
				must(t, page.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Submit"}).Click())
			}
			must(t, page.Locator("#name").Fill(name))
			must(t, page.Locator("#accelerators").Fill("9"))
			verdictIs("no node of ml.p5.48xlarge is that large")
			must(t, page.Locator("#accelerators").Fill("5"))
			verdictIs("can never have that much")
			must(t, page.Locator("#accelerators").Fill("1"))
			verdictIs("It would be admitted now.")
			placeholder(t, page, "memory", "256")
			must(t, expect.Locator(page.Locator("#manifest-job")).ToContainText("name: "+name))

			submit() // without an image
			must(t, expect.Locator(page.Locator("#image-error")).ToContainText("image"))
			must(t, expect.Locator(page.Locator("#name")).ToHaveValue(name))
			if script {
				fits(t, page, "team-wrong")
				accessible(t, page, "team-wrong")
				must(t, page.EmulateMedia(playwright.PageEmulateMediaOptions{ColorScheme: playwright.ColorSchemeDark}))
				must(t, page.SetViewportSize(390, 844))
				fits(t, page, "team-wrong-390")
				accessible(t, page, "team-wrong-390")
			}
			must(t, page.Locator("#image").Fill("example.com/train:1"))
			must(t, page.Locator("#runtime > summary").Click())
			must(t, page.Locator("#env").Fill("EPOCHS=10"))
			must(t, page.Locator("#secrets").Fill("HF_TOKEN=hugging-face/token"))
			must(t, page.Locator("#volumes").Fill("/data=datasets:ro"))
			must(t, page.Locator("#shm").Fill("8"))
			must(t, page.Locator("#tries").Fill("2"))
			verdictIs("It would be admitted now.")
			for _, line := range []string{"claimName: datasets", "name: hugging-face", "medium: Memory", "backoffLimit: 1"} {
				must(t, expect.Locator(page.Locator("#manifest-job")).ToContainText(line))
			}
			if script {
				must(t, page.SetViewportSize(1280, 900))
				checkAppearance(t, page, "submit")
			}
			submit()
			must(t, expect.Page(page).ToHaveURL(regexp.MustCompile("/tasks/hyperpod-ns-"+team+"/job/"+name+"$")))
			must(t, expect.Locator(page.Locator("h1")).ToHaveText(name))
			must(t, expect.Locator(page.Locator("#task")).ToContainText("1 GPU"))
			if script {
				must(t, expect.Locator(page.Locator(".task-lead")).ToContainText("Starting")) // for want of its volume; its buttons stay where they are
			}
			must(t, page.GetByRole("link", playwright.PageGetByRoleOptions{Name: "Submit again"}).Click())
			must(t, expect.Locator(page.Locator("#name")).ToHaveValue(name+"-2"))
			must(t, expect.Locator(page.Locator("#volumes")).ToHaveValue("/data=datasets:ro"))
			must(t, expect.Locator(page.Locator("#verdict")).ToContainText("It would be admitted now."))
			must(t, page.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Save as template"}).Click())
			if script {
				checkAppearance(t, page, "template")
			}
			must(t, page.Locator("#template").Fill(name))
			must(t, page.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Save template"}).Click())
			must(t, expect.Locator(page.Locator("main")).ToContainText("Template "+name+" was saved."))
			if script {
				checkAppearance(t, page, "templates")
			}
			must(t, page.Locator("#template-"+name+" a").Click())
			must(t, expect.Locator(page.Locator("#name")).ToHaveValue(name+"-2"))
			must(t, expect.Locator(page.Locator("#env")).ToHaveValue("EPOCHS=10"))
			open(t, page, "/teams/"+team+"/templates")
			must(t, page.Locator("#template-"+name+" summary").Click())
			must(t, page.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Delete " + name, Exact: playwright.Bool(true)}).Click())
			must(t, expect.Locator(page.Locator("main")).ToContainText("Template "+name+" was deleted."))
			open(t, page, "/tasks/hyperpod-ns-"+team+"/job/"+name)
			must(t, page.GetByRole("link", playwright.PageGetByRoleOptions{Name: team}).Click())
			must(t, page.GetByRole("link", playwright.PageGetByRoleOptions{Name: "Submit a task"}).Click())
			must(t, expect.Locator(page.Locator("#submit-form")).ToBeVisible())
		})
	}
	if got := strings.Fields(c.Kubectl(t, "", "get", "jobs", "-n", "hyperpod-ns-"+team, "-o", "name")); len(got) != 2 {
		t.Errorf("got jobs %v, want 2", got)
	}

	admin := visit(t, playwright.BrowserNewContextOptions{})
	open(t, admin, "/teams/"+team+"/submit") // an admin may read the page but not create jobs
	must(t, expect.Locator(admin.Locator("#manifests")).ToContainText("You cannot create tasks of any kind here"))
	must(t, expect.Locator(admin.Locator("#submit-form")).ToHaveCount(0))
	accessible(t, admin, "team")
}

// TestSubmitElastic submits an elastic task as a member, with and without JavaScript, and
// sees it admitted and grown on its page.
func TestSubmitElastic(t *testing.T) {
	t.Parallel() // on nodes that no other test uses
	c := clustertest.Get(t)
	team := clustertest.Name("elastic")
	deleteTeamAtEnd(t, team)
	scientist := user(t, console(t), "ada")
	c.Apply(t, `
apiVersion: kuota.dev/v1alpha1
kind: ComputeAllocation
metadata: {name: `+team+`}
spec:
  quota: [{instanceType: ml.c5.2xlarge, vCPU: 8}]
  sharing: {strategy: DontLend}
  members: [{kind: Group, name: vision-team}]
`)
	waitForQueues(t, c, team)
	waitForSubmitForm(t, scientist, team, "ml.c5.2xlarge")
	for name, script := range map[string]bool{"with-script": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			page := visitSignedOut(t, playwright.BrowserNewContextOptions{JavaScriptEnabled: playwright.Bool(script)}, "status of 422")
			must(t, page.Context().AddCookies(cookiesOf(t, scientist, console(t))))
			open(t, page, "/teams/"+team+"/submit")
			fill := func(field, value string) {
				t.Helper()
				must(t, page.Locator("#"+field).Fill(value))
			}
			check := func() {
				t.Helper()
				if !script {
					must(t, page.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Check"}).Click())
				}
			}
			must(t, expect.Locator(page.Locator("#max")).ToBeHidden())
			must(t, page.Locator("#elastic").Check())
			must(t, expect.Locator(page.Locator("#max")).ToBeVisible())
			must(t, expect.Locator(page.Locator("#least")).ToBeHidden())
			fill("name", name)
			fill("image", "example.com/train:1")
			fill("vcpu", "1")
			fill("memory", "1")
			fill("max", "4")
			fill("step", "2")
			check()
			must(t, expect.Locator(page.Locator("#step-error")).ToContainText("do not reach 4; use 1 or 3"))
			if script {
				checkAppearance(t, page, "elastic-wrong")
			}
			fill("step", "")
			fill("scaling", "0")
			check()
			must(t, expect.Locator(page.Locator("[data-effect=growth]")).ToContainText("It could grow to its maximum of 4 pods now."))
			must(t, expect.Locator(page.Locator("#manifest-elasticjob")).ToContainText("maxReplicas: 4"))
			must(t, expect.Locator(page.Locator("#manifests")).ToContainText("whole instances with accelerators only"))
			if script {
				must(t, expect.Locator(page.Locator("#verdict-checked")).ToHaveAttribute("data-verified", "true"))
				checkAppearance(t, page, "elastic")
			}
			must(t, page.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Submit"}).Click())
			must(t, expect.Page(page).ToHaveURL(regexp.MustCompile("/tasks/hyperpod-ns-"+team+"/elasticjob/"+name+"$")))
			must(t, expect.Locator(page.Locator("h1")).ToHaveText(name))
			clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
				out, err := c.TryKubectl("", "get", "elasticjob", name, "-n", "hyperpod-ns-"+team, "-o", "jsonpath={.status.replicas}")
				if err != nil || out != "4" {
					return fmt.Errorf("got size %q (%v), want 4", out, err)
				}
				return nil
			})
			open(t, page, "/tasks/hyperpod-ns-"+team+"/elasticjob/"+name)
			must(t, expect.Locator(page.Locator("#task")).ToContainText("4 vCPU"))
			status, text := fetch(t, scientist, console(t)+"/tasks/hyperpod-ns-"+team+"/elasticjob/"+name+"/yaml")
			if out, err := c.TryKubectl(text, "apply", "--dry-run=server", "-f", "-", "-o", "jsonpath={.metadata.generation}"); status != http.StatusOK || err != nil || !strings.HasSuffix(out, "1") { // after kubectl's warning
				t.Errorf("its YAML applied again: got generation %s (%v, status %d), want 1\n%s", out, err, status, text)
			}
		})
	}
}

// TestSubmitManifest pastes a HyperPodPyTorchJob on the page of a team and submits the
// ElasticJob that it becomes, with and without JavaScript.
func TestSubmitManifest(t *testing.T) {
	t.Parallel()
	c := clustertest.Get(t)
	team := clustertest.Name("manifest")
	deleteTeamAtEnd(t, team)
	scientist := user(t, console(t), "ada")
	c.Apply(t, `
apiVersion: kuota.dev/v1alpha1
kind: ComputeAllocation
metadata: {name: `+team+`}
spec:
  quota: [{instanceType: ml.p5.48xlarge, accelerators: 4}]
  sharing: {strategy: DontLend}
  members: [{kind: Group, name: vision-team}]
`)
	waitForQueues(t, c, team)
	waitForSubmitForm(t, scientist, team, "ml.p5.48xlarge")
	for name, script := range map[string]bool{"with-script": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			page := visitSignedOut(t, playwright.BrowserNewContextOptions{JavaScriptEnabled: playwright.Bool(script)}, "status of 422")
			must(t, page.Context().AddCookies(cookiesOf(t, scientist, console(t))))
			open(t, page, "/teams/"+team+"/submit")
			must(t, page.GetByRole("link", playwright.PageGetByRoleOptions{Name: "Submit from a manifest"}).Click())
			read := func(text string) {
				t.Helper()
				must(t, page.Locator("#text").Fill(text))
				must(t, page.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Read"}).Click())
			}
			job := `
apiVersion: sagemaker.amazonaws.com/v1
kind: HyperPodPyTorchJob
metadata: {name: ` + name + `}
spec:
  elasticPolicy: {minReplicas: 1, maxReplicas: 2, replicaIncrementStep: STEP, scalingTimeoutInSeconds: 0}
  runPolicy: {cleanPodPolicy: None}
  replicaSpecs:
  - name: worker
    template: {spec: {containers: [{name: train, image: "example.com/train:1", resources: {requests: {nvidia.com/gpu: 1, cpu: 24, memory: 256Gi}, limits: {nvidia.com/gpu: 1}}}]}}
`
			if script {
				must(t, expect.Locator(page.Locator("h1")).ToHaveText("Submit from a manifest"))
			}
			read(strings.Replace(job, "STEP", "3", 1))
			must(t, expect.Locator(page.Locator("#manifest-wrong")).ToContainText("steps of 3 from 1 do not reach 2; use 1"))
			read(strings.Replace(job, "STEP", "1", 1))
			must(t, expect.Locator(page.Locator("#verdict")).ToContainText("It would be admitted now."))
			clustertest.Eventually(t, clustertest.Patience, func(context.Context) error { // growth waits for tasks that just arrive
				if got, err := page.Locator("[data-effect=growth]").TextContent(); err != nil || !strings.Contains(got, "its maximum of 2 pods now") {
					read(strings.Replace(job, "STEP", "1", 1))
					return fmt.Errorf("growth: got %q, %v, want the maximum of 2 pods", got, err)
				}
				return nil
			})
			must(t, expect.Locator(page.Locator("#manifest-not-imported")).ToContainText("spec.runPolicy.cleanPodPolicy"))
			must(t, expect.Locator(page.Locator("#manifest-elasticjob")).ToContainText("kind: ElasticJob"))
			if script {
				checkAppearance(t, page, "manifest")
			}
			must(t, page.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Submit"}).Click())
			must(t, expect.Page(page).ToHaveURL(regexp.MustCompile("/tasks/hyperpod-ns-"+team+"/elasticjob/"+name+"$")))
			must(t, expect.Locator(page.Locator("h1")).ToHaveText(name))
		})
	}
}

// TestSubmitAsYAML edits the task of the form as YAML, with and without JavaScript: what the
// form can express goes back into it, an error of the API server has its path, and what the
// form cannot express is submitted.
func TestSubmitAsYAML(t *testing.T) {
	t.Parallel()
	c := clustertest.Get(t)
	team := clustertest.Name("yaml")
	deleteTeamAtEnd(t, team)
	scientist := user(t, console(t), "ada")
	c.Apply(t, `
apiVersion: kuota.dev/v1alpha1
kind: ComputeAllocation
metadata: {name: `+team+`}
spec:
  quota: [{instanceType: ml.p5.48xlarge, accelerators: 4}]
  sharing: {strategy: DontLend}
  members: [{kind: Group, name: vision-team}]
  shares: [{name: nightly, weight: 1, members: [{kind: Group, name: vision-team}]}, {name: others, weight: 1, members: [{kind: Group, name: others}]}]
`)
	waitForQueues(t, c, team)
	waitForSubmitForm(t, scientist, team, "ml.p5.48xlarge")
	for name, script := range map[string]bool{"with-script": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			page := visitSignedOut(t, playwright.BrowserNewContextOptions{JavaScriptEnabled: playwright.Bool(script)}, "status of 422")
			must(t, page.Context().AddCookies(cookiesOf(t, scientist, console(t))))
			press := func(button string) {
				t.Helper()
				must(t, page.GetByRole("button", playwright.PageGetByRoleOptions{Name: button, Exact: playwright.Bool(true)}).Click())
			}
			text := page.Locator("#text")
			change := func(old, new string) {
				t.Helper()
				before, err := text.InputValue()
				must(t, err)
				after := strings.Replace(before, old, new, 1)
				if after == before {
					t.Fatalf("no %q in\n%s", old, before)
				}
				must(t, text.Fill(after))
			}
			open(t, page, "/teams/"+team+"/submit")
			must(t, expect.Locator(page.Locator("#share option")).ToHaveCount(2)) // the team's, and one share
			must(t, page.Locator("#name").Fill(name))
			must(t, page.Locator("#image").Fill("example.com/train:1"))
			_, err := page.Locator("#share").SelectOption(playwright.SelectOptionValues{Values: playwright.StringSlice("nightly")})
			must(t, err)
			press("Edit as YAML")
			must(t, expect.Page(page).ToHaveURL(regexp.MustCompile("/teams/"+team+"/manifest$")))
			must(t, expect.Locator(page.Locator("#verdict")).ToContainText("It would be admitted now."))
			if script {
				checkAppearance(t, page, "yaml")
			}
			change("completions: 1", "completions: 2")
			press("Edit in the form")
			must(t, expect.Locator(page.Locator("#manifest-missed")).ToContainText("spec.completions"))
			change("completions: 2", "completions: 1")
			change("image: example.com/train:1", "image: example.com/train:2")
			press("Read again")
			press("Edit in the form")
			must(t, expect.Locator(page.Locator("#image")).ToHaveValue("example.com/train:2"))
			must(t, expect.Locator(page.Locator("#name")).ToHaveValue(name))
			must(t, expect.Locator(page.Locator("#share")).ToHaveValue("nightly"))
			press("Edit as YAML")
			change("restartPolicy: Never", "restartPolicy: Never\n      activeDeadlineSecond: 60")
			press("Read again")
			must(t, expect.Locator(page.Locator("#manifest-wrong")).ToContainText("spec.template.spec.activeDeadlineSecond: is no field"))
			if script {
				checkAppearance(t, page, "yaml-wrong")
			}
			change("activeDeadlineSecond: 60", "activeDeadlineSeconds: 600")
			press("Read")
			must(t, expect.Locator(page.Locator("#manifest-missed")).ToContainText("spec.template.spec.activeDeadlineSeconds"))
			if script {
				checkAppearance(t, page, "yaml-missed")
			}
			press("Submit")
			must(t, expect.Page(page).ToHaveURL(regexp.MustCompile("/tasks/hyperpod-ns-"+team+"/job/"+name+"$")))
			if got := c.Kubectl(t, "", "get", "job", name, "-n", "hyperpod-ns-"+team, "-o", `jsonpath={.spec.template.spec.activeDeadlineSeconds} {.metadata.labels.kueue\.x-k8s\.io/queue-name}`); got != "600 hyperpod-ns-"+team+"-share-nightly" {
				t.Errorf("got %q, want 600 and the queue of the share", got)
			}
		})
	}
}

// TestSubmitScript submits scripts of 256 KiB as a member: a file that the page's script
// reads into the text, and without JavaScript a text that outlives the end of a session.
func TestSubmitScript(t *testing.T) {
	t.Parallel()
	c := clustertest.Get(t)
	team := clustertest.Name("script")
	deleteTeamAtEnd(t, team)
	scientist := user(t, console(t), "ada")
	c.Apply(t, `
apiVersion: kuota.dev/v1alpha1
kind: ComputeAllocation
metadata: {name: `+team+`}
spec:
  quota: [{instanceType: ml.p5.48xlarge, accelerators: 4}]
  sharing: {strategy: DontLend}
  members: [{kind: Group, name: vision-team}]
`)
	waitForQueues(t, c, team)
	waitForSubmitForm(t, scientist, team, "ml.p5.48xlarge")
	script := "#!/usr/bin/env python3\nprint('a < b & ü')\n"
	for len(script) < 256<<10-80 {
		script += "# " + rand.Text() + rand.Text() + "\n" // hardly compresses
	}
	for name, javaScript := range map[string]bool{"with-script": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			page := visitSignedOut(t, playwright.BrowserNewContextOptions{JavaScriptEnabled: playwright.Bool(javaScript)}, "status of 401", "status of 422")
			must(t, page.Context().AddCookies(cookiesOf(t, scientist, console(t))))
			open(t, page, "/teams/"+team+"/submit")
			must(t, page.Locator("#name").Fill(name))
			must(t, page.Locator("#image").Fill("example.com/train:1"))
			must(t, page.Locator("#accelerators").Fill("1"))
			must(t, page.Locator("#script-fields > summary").Click())
			choose := func(text string) {
				t.Helper()
				must(t, page.Locator("#script-file").SetInputFiles([]playwright.InputFile{{Name: "train.py", MimeType: "text/x-python", Buffer: []byte(text)}}))
				if !javaScript {
					must(t, page.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Check"}).Click())
				}
			}
			choose(strings.Repeat("# "+strings.Repeat("too long ", 20)+"\n", 1_500))
			must(t, expect.Locator(page.Locator("#script-error")).ToContainText("at most 256 KiB"))
			must(t, expect.Locator(page.Locator("#name")).ToHaveValue(name))
			if javaScript {
				checkAppearance(t, page, "script-wrong")
			}
			must(t, page.Locator("#script").Fill(""))
			choose(strings.ReplaceAll(script, "\n", "\r\n"))
			must(t, expect.Locator(page.Locator("#script-error")).ToHaveCount(0))
			must(t, expect.Locator(page.Locator("#script")).ToHaveValue(script))
			must(t, expect.Locator(page.Locator("#manifest-job")).ToContainText("kind: ConfigMap"))
			if javaScript {
				checkAppearance(t, page, "script")
			} else {
				must(t, page.Context().ClearCookies())
			}
			must(t, page.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Submit"}).Click())
			if !javaScript {
				must(t, expect.Locator(page.Locator("h1")).ToHaveText("Sign in again"))
				must(t, page.Context().AddCookies(cookiesOf(t, scientist, console(t))))
				must(t, page.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Send the form again"}).Click())
			}
			must(t, expect.Page(page).ToHaveURL(regexp.MustCompile("/tasks/hyperpod-ns-"+team+"/job/"+name+"$")))
			if got := c.Kubectl(t, "", "get", "configmap", name+"-script", "-n", "hyperpod-ns-"+team, "-o", "jsonpath={.data.script}"); got != script {
				t.Errorf("the script has %d bytes, want the %d that were submitted", len(got), len(script))
			}
		})
	}
}

// waitForSubmitForm waits until RBAC lets a member see the form of a team, with a pool.
func waitForSubmitForm(t *testing.T, member *http.Client, team, pool string) {
	t.Helper()
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
		status, body := fetch(t, member, console(t)+"/teams/"+team+"/submit")
		if status != http.StatusOK || !strings.Contains(body, `id="submit-form"`) || !strings.Contains(body, pool) {
			return fmt.Errorf("page of the team: got status %d, want 200 with the form", status)
		}
		return nil
	})
}
