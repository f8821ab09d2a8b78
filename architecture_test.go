// Package kuota has no code of its own; its test holds the folders to the
// directions that imports may point in.
package kuota_test

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const module = "kuota.dev/kuota/"

// rules say what the code of a folder must not import, and why. All may import
// governance/quota/resources.
var rules = []struct {
	folder    string   // the package; with "/...", and all below it
	except    []string // packages below that the rule is not for
	only      []string // of this module, it may import these folders; "/..." means all below
	forbidden []string // import paths, with all below them, that it must not use
	because   string
}{
	{folder: "static", only: []string{}, because: "files know nothing"},
	{folder: "views/...", only: []string{"views/...", "static/..."}, forbidden: []string{"k8s.io", "sigs.k8s.io", "github.com/labstack"}, because: "a view shows strings, numbers and finished addresses"},
	{folder: "views/ui", only: []string{"views/ui/...", "static/..."}, because: "components serve every page and know none"},
	{folder: "views", only: []string{"views/ui", "static/..."}, because: "what areas share knows no area"},
	{folder: "views/...", except: []string{"views", "views/htmlcheck", "views/ui"}, only: []string{"views", "views/ui", "static/..."}, because: "an area of pages knows no other area: what two areas show lies in views"},
	{folder: "cli", only: []string{}, forbidden: []string{"k8s.io", "sigs.k8s.io", "github.com/labstack"}, because: "the command line reads what the console answers, and knows nothing else of it"},
	{folder: "web/...", only: []string{"web/...", "views/...", "static/..."}, forbidden: []string{"k8s.io", "sigs.k8s.io"}, because: "the HTTP platform knows no Kubernetes and no Kueue"},
	{folder: "handlers/...", only: []string{"handlers/...", "web/...", "views/...", "governance/..."}, because: "handlers stand above the web and the domain"},
	{folder: "handlers/format", only: []string{"governance/..."}, because: "text for people depends on no page"},
	{folder: "handlers/urls", only: []string{"governance/..."}, because: "addresses depend on no page"},
	{folder: "handlers/console", only: []string{"handlers/format", "handlers/urls", "web/...", "views/...", "governance/..."}, because: "pages import what they share, not the other way around"},
	{folder: "handlers/forms", only: []string{"handlers/console", "handlers/format", "web/...", "views/...", "governance/..."}, because: "pages import what they share, not the other way around"},
	{folder: "handlers/listing", only: []string{"handlers/format", "handlers/urls", "views/..."}, because: "pages import what they share, not the other way around"},
	{folder: "governance/...", except: []string{"governance/alerts/delivery", "governance/cluster", "governance/cluster/clustertest", "governance/cluster/leader", "governance/spec/schema", "governance/submit/recipes", "governance/observe/utilization"}, only: []string{"governance/..."}, forbidden: []string{"net/http", "html/template", "github.com/labstack", "github.com/a-h/templ"}, because: "the domain knows no HTTP and no HTML; talking to Kubernetes is the cluster package's, and to Prometheus the utilization package's"},
	{folder: "governance/alerts/delivery", only: []string{"governance/alerts", "governance/api/..."}, forbidden: []string{"k8s.io/client-go", "html/template", "github.com/labstack", "github.com/a-h/templ"}, because: "it talks to receivers and to nobody else"},
	{folder: "governance/cluster", only: []string{"governance/..."}, forbidden: []string{"html/template", "github.com/labstack", "github.com/a-h/templ"}, because: "it talks to Kubernetes and to nobody else"},
	{folder: "governance/api/...", only: []string{"governance/api/..."}, because: "others import the resources without importing Kuota"},
	{folder: "governance/quota/catalog", only: []string{"governance/api/..."}, forbidden: []string{"context", "time", "k8s.io/client-go", "sigs.k8s.io/controller-runtime"}, because: "the catalog is computed from nodes that are handed to it"},
	{folder: "governance/quota", only: []string{"governance", "governance/api/...", "governance/quota/catalog", "governance/quota/effective"}, forbidden: []string{"context", "time", "k8s.io/client-go", "sigs.k8s.io/controller-runtime"}, because: "quota is arithmetic: no client, no context, no clock"},
	{folder: "governance/quota/effective", only: []string{"governance", "governance/api/..."}, forbidden: []string{"context", "k8s.io/client-go", "sigs.k8s.io/controller-runtime"}, because: "what is active is computed from a spec and a time: no client, no clock"},
	{folder: "governance/report/budgets", only: []string{"governance", "governance/report/accounting", "governance/api/...", "governance/quota/catalog", "governance/quota/effective"}, forbidden: []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime"}, because: "budgets are counted from history, and the controller acts on them"},
	{folder: "governance/report/usage", only: []string{"governance/report/usage/..."}, forbidden: []string{"context", "time", "k8s.io", "sigs.k8s.io"}, because: "what teams hold, borrow and lend is arithmetic: no client, no context, no clock"},
	{folder: "governance/tasks", only: []string{"governance/kueue/admitted", "governance/api/...", "governance/controllers/loopguard", "governance/quota", "governance/tasks/explain"}, forbidden: []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime"}, because: "a task is read from Workloads: no client, no clock"},
	{folder: "governance/tasks/explain", only: []string{"governance/quota"}, forbidden: []string{"context", "k8s.io/client-go", "sigs.k8s.io/controller-runtime"}, because: "verdicts are computed from numbers"},
	{folder: "governance/tasks/advice", only: []string{"governance/quota", "governance/kueue/simulate", "governance/tasks/explain"}, forbidden: []string{"time", "k8s.io/client-go", "sigs.k8s.io/controller-runtime"}, because: "it asks a simulation about a snapshot: no client, no clock"},
	{folder: "governance/tasks/timeline", only: []string{"governance/controllers/loopguard", "governance/tasks"}, forbidden: []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime"}, because: "a timeline is derived from Workloads: no client, no clock"},
	{folder: "governance/tasks/index", only: []string{"governance/kueue/admitted", "governance/api/...", "governance/quota/catalog", "governance/cluster", "governance/quota/desired", "governance/kueue/enforcement", "governance/controllers/loopguard", "governance/quota", "governance/tasks", "governance/tasks/explain", "governance/tasks/timeline"}, because: "the index does not know its readers"},
	{folder: "governance/kueue/simulate", only: []string{"governance/kueue/admitted", "governance/quota"}, forbidden: []string{"context", "k8s.io/client-go", "sigs.k8s.io/controller-runtime", "sigs.k8s.io/kueue/pkg"}, because: "a snapshot in, a report out: no client, and no scheduler in the console's process"},
	{folder: "governance/tasks/estimate", only: []string{}, forbidden: []string{"context", "k8s.io", "sigs.k8s.io"}, because: "run times, starts and past estimates in, ranges out: no client, no clock, no scheduler"},
	{folder: "governance/kueue/simulate/engine", only: []string{"governance/kueue/admitted", "governance/quota", "governance/kueue/simulate"}, because: "it sets feature gates of its whole process, which is the worker's child"},
	{folder: "governance/kueue/simulate/worker", only: []string{"governance/kueue/simulate"}, forbidden: []string{"sigs.k8s.io/kueue/pkg"}, because: "the console starts the scheduler in a child process and never runs it"},
	{folder: "governance/observe/progress", only: []string{}, forbidden: []string{"context", "k8s.io", "sigs.k8s.io", "github.com/prometheus"}, because: "lines of a log and times in, progress and lost work out: no client, no clock"},
	{folder: "governance/observe/utilization", only: []string{"governance", "governance/observe/progress", "governance/quota/catalog"}, forbidden: []string{"k8s.io", "sigs.k8s.io", "html/template", "github.com/labstack", "github.com/a-h/templ"}, because: "it talks to Prometheus and to nobody else: nodes and pods are placed by maps that are handed to it"},
	{folder: "governance/record/history", only: []string{"governance/record/history/..."}, forbidden: []string{"k8s.io", "sigs.k8s.io"}, because: "history is a database; its callers say what a Workload means"},
	{folder: "governance/report/accounting", only: []string{"governance", "governance/api/...", "governance/quota/catalog", "governance/record/history", "governance/quota"}, forbidden: []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime"}, because: "what was used and what it cost is read from history, not from the cluster"},
	{folder: "governance/kueue/kueueconfig", only: []string{"governance", "governance/api/...", "governance/quota/catalog", "governance/kueue/kueueconfig/...", "governance/spec/textdiff"}, forbidden: []string{"context", "time", "k8s.io/client-go", "sigs.k8s.io/controller-runtime"}, because: "Kueue's configuration is text and a policy in, text out: no client, no context, no clock"},
	{folder: "governance/spec/textdiff", only: []string{"governance/spec/textdiff"}, forbidden: []string{"context", "time", "k8s.io", "sigs.k8s.io"}, because: "lines in, lines out"},
	{folder: "governance/spec/document", only: []string{"governance"}, forbidden: []string{"context", "time", "k8s.io/client-go", "sigs.k8s.io/controller-runtime"}, because: "text becomes trees and values; it knows none of these values, and no cluster"},
	{folder: "governance/spec/schema", only: []string{"deploy/crds", "governance", "governance/api/...", "governance/quota"}, forbidden: []string{"net/http", "time", "k8s.io/client-go", "html/template", "github.com/labstack", "github.com/a-h/templ"}, because: "an object and its CRD in, errors out: no client, no clock"},
	{folder: "governance/submit/recipes", only: []string{"governance", "governance/api/...", "governance/submit", "python"}, forbidden: []string{"context", "time", "k8s.io/client-go", "sigs.k8s.io/controller-runtime"}, because: "a recipe is a request with a script: no client, no clock"},
	{folder: "governance/spec/manifest", only: []string{"governance", "governance/api/...", "governance/quota/catalog", "governance/spec/document", "governance/quota", "governance/spec/schema"}, forbidden: []string{"context", "k8s.io/client-go", "sigs.k8s.io/controller-runtime"}, because: "Kuota's resources as text, within the bounds of their schemas: no client, no context, no clock"},
	{folder: "governance/imports/hyperpod", only: []string{"governance", "governance/api/...", "governance/quota/catalog", "governance/spec/document", "governance/spec/manifest", "governance/quota"}, forbidden: []string{"context", "time", "k8s.io/client-go", "sigs.k8s.io/controller-runtime"}, because: "HyperPod's notation in, Kuota's resources out: no client, no context, no clock"},
	{folder: "governance/imports/trainingjobs", only: []string{"governance", "governance/api/...", "governance/spec/document", "governance/spec/manifest"}, forbidden: []string{"context", "time", "k8s.io/client-go", "sigs.k8s.io/controller-runtime"}, because: "other operators' jobs in, ElasticJobs out: no client, no context, no clock"},
	{folder: "governance/imports", only: []string{"governance", "governance/api/...", "governance/spec/document", "governance/imports/...", "governance/spec/manifest"}, forbidden: []string{"context", "time", "k8s.io/client-go", "sigs.k8s.io/controller-runtime"}, because: "it asks those who know a notation: no client, no context, no clock"},
	{folder: "governance/cluster/gitops", only: []string{"governance"}, forbidden: []string{"context", "time", "k8s.io/client-go", "sigs.k8s.io/controller-runtime"}, because: "who manages an object is read off its metadata"},
	{folder: "governance/spec/change", only: []string{}, forbidden: []string{"context", "time", "k8s.io/client-go"}, because: "it compares objects that its callers pass"},
	{folder: "governance/spec/describe", only: []string{"governance/api/...", "governance/quota/catalog", "governance/spec/change", "governance/quota/effective", "governance/quota"}, forbidden: []string{"context", "k8s.io/client-go", "sigs.k8s.io/controller-runtime"}, because: "specs in, words out: no client and no context"},
	{folder: "governance/imports/adoption", only: []string{"governance/api/...", "governance/quota/catalog", "governance/spec/change", "governance/quota/desired", "governance/cluster/gitops", "governance/kueue/kueueconfig", "governance/spec/manifest", "governance/quota"}, forbidden: []string{"context", "time", "k8s.io/client-go", "sigs.k8s.io/controller-runtime"}, because: "a plan is computed from the objects that its callers pass: no client, no context, no clock"},
	{folder: "governance/cluster/clusterstate", only: []string{"governance/imports/adoption", "governance/api/...", "governance/quota/catalog", "governance/cluster", "governance/quota/desired", "governance/tasks"}, because: "every service imports it, so it imports no service"},
	{folder: "governance/quota/desired", only: []string{"governance", "governance/api/...", "governance/quota/..."}, forbidden: []string{"context", "time", "k8s.io/client-go/rest", "k8s.io/client-go/kubernetes", "sigs.k8s.io/controller-runtime"}, because: "the wanted state is a pure function; it uses apply configurations and no client"},
}

// testsOnly are folders that no code of the product imports.
var testsOnly = []string{"governance/cluster/clustertest", "governance/record/history/historytest", "governance/tasks/taskstest", "handlers/handlerstest", "views/htmlcheck", "web/session/sessiontest", "web/signin/signintest", "web/webtest"}

// echoOnlyIn are the folders that may know the web framework.
var echoOnlyIn = []string{"web/...", "handlers/..."}

func TestImports(t *testing.T) {
	packages := list(t)
	if len(packages) < 10 {
		t.Fatalf("found only %d packages", len(packages))
	}
	for _, p := range packages {
		folder := strings.TrimPrefix(p.ImportPath, module)
		for _, rule := range rules {
			if !allowed(folder, []string{rule.folder}) || allowed(folder, rule.except) {
				continue
			}
			for _, imported := range p.Imports {
				for _, path := range rule.forbidden {
					if within(imported, path) {
						t.Errorf("%s imports %s: %s", folder, imported, rule.because)
					}
				}
				own, ok := strings.CutPrefix(imported, module)
				if ok && !allowed(own, rule.only) && own != "governance/quota/resources" {
					t.Errorf("%s imports %s: %s", folder, own, rule.because)
				}
			}
		}
		for _, imported := range p.Imports {
			if allowed(strings.TrimPrefix(imported, module), testsOnly) && !allowed(folder, testsOnly) && !within(folder, "e2e") {
				t.Errorf("%s imports %s: what is for tests is not in the product", folder, imported)
			}
			if within(imported, "github.com/labstack/echo") && !allowed(folder, echoOnlyIn) {
				t.Errorf("%s imports %s: Echo's types stay in %s", folder, imported, strings.Join(echoOnlyIn, " and "))
			}
		}
	}
}

// A rule that matches no package checks nothing.
func TestRulesMatch(t *testing.T) {
	packages := list(t)
	for _, rule := range rules {
		matched := false
		for _, p := range packages {
			matched = matched || allowed(strings.TrimPrefix(p.ImportPath, module), []string{rule.folder})
		}
		if !matched {
			t.Errorf("no package lies in %s", rule.folder)
		}
	}
}

// attributes finds the attributes with addresses in a template.
var attributes = regexp.MustCompile(`\s(?:href|src|action|formaction|data-stream|data-preview)=(?:"/|\{)`)

// rawAddresses finds addresses that the console's base path is not before: an attribute of a
// template that ui.At does not compute, and a string of a script that begins with a slash.
var rawAddresses = map[string]*regexp.Regexp{
	"views/*.templ":    attributes,
	"views/*/*.templ":  attributes,
	"static/js/*.js":   regexp.MustCompile("[\"'`]/[a-z]"),
	"static/css/*.css": regexp.MustCompile(`url\(["']?/`),
}

func TestAddressesHaveTheBasePath(t *testing.T) {
	for pattern, raw := range rawAddresses {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: got no files, %v", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for number, line := range strings.Split(string(text), "\n") {
				if raw.MatchString(strings.NewReplacer("={ ui.At(ctx, ", "", "={ At(ctx, ", "").Replace(line)) {
					t.Errorf("%s:%d: the address lies at the root of the host; write it with ui.At(ctx, address), in scripts after data-root of the body: %s", file, number+1, strings.TrimSpace(line))
				}
			}
		}
	}
}

// allowed reports whether a folder is one of these.
func allowed(folder string, folders []string) bool {
	for _, f := range folders {
		tree, below := strings.CutSuffix(f, "/...")
		if folder == tree || below && within(folder, tree) {
			return true
		}
	}
	return false
}

func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+"/")
}

type goPackage struct {
	ImportPath string
	Doc        string // its first sentence
	Imports    []string
}

func list(t *testing.T) []goPackage {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Doc,Imports", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var packages []goPackage
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p goPackage
		if err := decoder.Decode(&p); err == io.EOF {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}
