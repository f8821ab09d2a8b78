package recipes

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/submit"
)

// Each recipe is a valid task in a pool with accelerators and in one without, once it is named.
func TestRecipesArePlanned(t *testing.T) {
	instance, _ := catalog.Known("ml.p5.48xlarge")
	pools := []submit.QueuePool{
		{Pool: catalog.Pool{Name: "gpus", Instance: instance}, Nodes: []quota.Resources{{catalog.GPU: 8, catalog.CPU: 190_000, catalog.Memory: 2000 * catalog.GiB}}},
		{Pool: catalog.Pool{Name: "cpus", Instance: catalog.Instance{Type: "cpus", MilliCPU: 16_000, Memory: 64 * catalog.GiB}}, Nodes: []quota.Resources{{catalog.CPU: 15_000, catalog.Memory: 60 * catalog.GiB}}},
	}
	team := submit.Team{Name: "vision", Namespace: "ns", Queue: "q", MaySubmit: true, MayScript: true, Kinds: []submit.Kind{submit.Job, submit.ElasticJob}, Pools: pools}
	names := map[string]bool{}
	for _, r := range All {
		for _, pool := range pools {
			plan, wrong := team.Complete(r.Request(pool))
			if len(wrong) > 0 {
				t.Errorf("%s in %s: %v", r.Name, pool.Name, wrong)
				continue
			}
			if _, err := plan.Manifest(); err != nil {
				t.Errorf("%s in %s: %v", r.Name, pool.Name, err)
			}
			if got := plan.PodResources[catalog.GPU]; pool.Name == "gpus" && (r.whole && got != 8 || !r.whole && got != 1) {
				t.Errorf("a pod of %s has %d GPUs", r.Name, got)
			}
		}
		if names[r.Name] || r.Title == "" || r.About == "" || strings.HasSuffix(r.NotRun, ".") {
			t.Errorf("recipe %s: %+v", r.Name, r)
		}
		names[r.Name] = true
	}
	if found, ok := Find("vision-model"); !ok || found.script != "vision_model" {
		t.Errorf("found %+v", found)
	}
	if _, ok := Find("none"); ok {
		t.Error("found a recipe without a name")
	}
}

// The script of a training writes the files that it was made from, and Python reads them.
func TestScripts(t *testing.T) {
	for _, r := range All {
		folder := t.TempDir()
		script := strings.NewReplacer("/tmp/run", folder, "exec python3 -m kuota.elastic.run", "python3 -m py_compile kuota/elastic/*.py loop.py").Replace(r.Script())
		if !r.elastic {
			continue // one file of Python, as it is
		}
		if !strings.Contains(script, "import loop\n") {
			script = strings.Replace(script, " loop.py train.py", " train.py", 1)
		}
		command := exec.Command("sh")
		command.Stdin = strings.NewReader(script)
		if out, err := command.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", r.Name, err, out)
		}
		if found, err := filepath.Glob(filepath.Join(folder, "kuota", "elastic", "*.py")); err != nil || len(found) < 6 {
			t.Errorf("%s: the library is %v, %v", r.Name, found, err)
		}
	}
}
