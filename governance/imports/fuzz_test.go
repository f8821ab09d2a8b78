package imports_test

import (
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"kuota.dev/kuota/governance/imports"
	"kuota.dev/kuota/governance/spec/manifest"

	"sigs.k8s.io/yaml"
)

// For every text: each part is imported or reported, each object is within the
// bounds of its CRD, and its YAML imports as the same object.
func FuzzRead(f *testing.F) {
	seeds, _ := filepath.Glob("testdata/example-*.json")
	jobs, _ := filepath.Glob("trainingjobs/testdata/*.yaml")
	seeds = append(seeds, jobs...)
	for _, seed := range seeds {
		if text, err := os.ReadFile(seed); err == nil {
			f.Add(text)
		}
	}
	for _, text := range []string{
		command("1"), command("2"), command("4"), "aws sagemaker create-compute-quota --compute-quota-config 'A=[{B=1},[2]]' --name", "--name=\"a", "", "[", "{}", "null", "- a", "a: &a [*a]", "{\"a\": 1e999999999}", quotaOf(`"ResourceSharingConfig": {"BorrowLimit": 1e2}`),
		rows(`{"InstanceType": "a", "VCpu": 1e-5, "MemoryInGiB": 9999999.99}, null, {"InstanceType": "ml.p4d.24xlarge", "AcceleratorPartition": {"Type": "mig-1g.5gb", "Count": 7}}`),
		policyOf(`"PriorityClasses": [{"Name": "a", "Weight": 100.0}, null], "IdleResourceSharing": "Enabled"`),
		`{"ComputeQuotaSummaries": [{}], "NextToken": null}`, own("quota: [{instanceType: a, vCPU: 0.5, memory: 1.5Gi}], sharing: {strategy: Lend, unlimited: true}"),
		"apiVersion: kuota.dev/v1alpha1\nkind: ClusterPolicy\nmetadata: {name: default}\nspec: {pools: [{name: a, match: {nodeLabels: {a: b}}}], gangScheduling: {timeout: 1ns}}\n---\n[1, {kind: List, items: []}]",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got := imports.Read(text)
		if len(got.Objects) == 0 && len(got.Problems) == 0 {
			t.Error("no object and no problem")
		}
		problems := got.Problems
		for _, o := range got.Objects {
			problems = append(problems, o.Problems...)
			checkObject(t, o)
		}
		for _, w := range problems {
			if w.Message == "" || !utf8.ValidString(w.Path+w.Message) || len(w.Path)+len(w.Message) > 5000 {
				t.Errorf("problem %q at %q", w.Message, w.Path)
			}
		}
	})
}

func checkObject(t *testing.T, o imports.Object) {
	t.Helper()
	if a := o.Allocation; a != nil {
		name := a.Name
		if a.Name == "" {
			a.Name = "unnamed"
		}
		if wrong := append(manifest.SanitizeName(&a.Name, "name"), manifest.SanitizeSpec(a.Spec.DeepCopy(), "spec")...); len(wrong) > 0 {
			t.Errorf("%s is beyond bounds: %v", name, wrong)
		}
	}
	if p := o.Policy; p != nil {
		if wrong := manifest.SanitizePolicy(p.Spec.DeepCopy(), "spec"); len(wrong) > 0 {
			t.Errorf("the policy is beyond bounds: %v", wrong)
		}
	}
	text := o.YAML()
	if o.ElasticJob != nil { // what its CRD rejects is kept
		again := imports.Read([]byte(text))
		if len(again.Objects) != 1 || again.Objects[0].YAML() != text {
			t.Errorf("%s is read again with %q", text, all(again))
		}
		return
	}
	var any map[string]any
	if err := yaml.UnmarshalStrict([]byte(text), &any); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	again := imports.Read([]byte(text))
	if len(again.Objects) != 1 || all(again) != "" || again.Objects[0].YAML() != text {
		t.Errorf("%s is read again with %q", text, all(again))
	}
}
