package desired_test

import (
	"bytes"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/desired"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden files")

// Each testdata/*.yaml is an allocation. Its .golden.yaml has the objects that
// follow from it. Its optional .cluster.yaml has nodes and pools.
func TestGolden(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	inputs = slices.DeleteFunc(inputs, func(p string) bool { return strings.Count(p, ".") > 1 })
	if len(inputs) < 14 {
		t.Fatalf("found %d allocations, want at least 14", len(inputs))
	}
	for _, input := range inputs {
		t.Run(strings.TrimSuffix(filepath.Base(input), ".yaml"), func(t *testing.T) {
			text, err := os.ReadFile(input)
			if err != nil {
				t.Fatal(err)
			}
			var allocation v1alpha1.ComputeAllocation
			if err := yaml.UnmarshalStrict(text, &allocation); err != nil {
				t.Fatal(err)
			}
			objects, errs := desired.Build(&allocation, readCluster(t, input), desired.DefaultNaming, desired.ByPriority)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			got := render(t, objects)
			golden := strings.TrimSuffix(input, ".yaml") + ".golden.yaml"
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("(-want +got), -update rewrites it:\n%s", diff)
			}
		})
	}
}

// readCluster returns the catalog of the .cluster.yaml of an allocation.
func readCluster(t *testing.T, allocation string) catalog.Catalog {
	t.Helper()
	text, err := os.ReadFile(strings.TrimSuffix(allocation, ".yaml") + ".cluster.yaml")
	if errors.Is(err, fs.ErrNotExist) {
		return catalog.Catalog{}
	} else if err != nil {
		t.Fatal(err)
	}
	var cluster struct {
		Nodes []corev1.Node   `json:"nodes"`
		Pools []v1alpha1.Pool `json:"pools"`
	}
	if err := yaml.UnmarshalStrict(text, &cluster); err != nil {
		t.Fatal(err)
	}
	return catalog.New(catalog.Input{Nodes: cluster.Nodes, Pools: cluster.Pools, InstanceTypeLabel: desired.DefaultNaming.InstanceTypeLabel})
}

// render returns the objects as YAML documents.
func render(t *testing.T, objects desired.Objects) []byte {
	t.Helper()
	all := []any{objects.Namespace}
	for _, f := range objects.Flavors {
		all = append(all, f)
	}
	for _, o := range objects.ClusterQueues() {
		all = append(all, o)
	}
	for _, o := range objects.LocalQueues() {
		all = append(all, o)
	}
	if objects.Members != nil {
		all = append(all, objects.Members)
	}
	if objects.Ceiling != nil {
		all = append(all, objects.Ceiling)
	}
	if objects.Defaults != nil {
		all = append(all, objects.Defaults)
	}
	var out bytes.Buffer
	for i, object := range all {
		text, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(text)
	}
	return out.Bytes()
}

func TestNamesFitIntoLabels(t *testing.T) {
	naming := desired.DefaultNaming
	long := strings.Repeat("a", 40)
	names := map[string]bool{}
	for _, team := range []string{long, long[:39] + "b", long[:39], "a"} {
		for _, name := range []string{naming.ClusterQueue(team), naming.LocalQueue(team), naming.Namespace(team)} {
			if len(name) > 63 {
				t.Errorf("%s has %d characters, want at most 63", name, len(name))
			}
			if names[name] {
				t.Errorf("two objects have the name %s", name)
			}
			names[name] = true
		}
	}
	if got := naming.ClusterQueue("vision"); got != "hyperpod-ns-vision-clusterqueue" {
		t.Errorf("got ClusterQueue %s of team vision", got)
	}
}
