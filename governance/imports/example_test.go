package imports_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/imports"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/desired"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func file(t *testing.T, parts ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func build(t *testing.T, a *v1alpha1.ComputeAllocation) string {
	t.Helper()
	objects, wrong := desired.Build(a, catalog.Catalog{}, desired.DefaultNaming, desired.ByPriority)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	text, err := yaml.Marshal(objects)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The examples of HyperPod's launch posts result in the Kueue objects of desired's
// golden files, including the ClusterQueue that AWS published.
func TestExamplesBuildGoldenObjects(t *testing.T) {
	for _, name := range []string{"example-1", "example-2", "example-3"} {
		t.Run(name, func(t *testing.T) {
			got := imports.Read(file(t, "testdata", name+".json"))
			if len(got.Objects) != 1 || len(got.Problems) > 0 {
				t.Fatalf("read %+v", got)
			}
			var want v1alpha1.ComputeAllocation
			if err := yaml.UnmarshalStrict(file(t, "..", "quota", "desired", "testdata", name+".yaml"), &want); err != nil {
				t.Fatal(err)
			}
			a := got.Objects[0].Allocation
			if diff := cmp.Diff(want.Spec, a.Spec); diff != "" || a.Name != want.Name {
				t.Errorf("%s (-want +got):\n%s", a.Name, diff)
			}
			if diff := cmp.Diff(build(t, &want), build(t, a)); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
		})
	}
}

// command returns the AWS CLI command of an example.
func command(example string) string {
	return map[string]string{
		"1": `--name only-gpu-quota --description "test description" --activation-state Enabled
--compute-quota-config "ComputeQuotaResources=[{InstanceType=ml.g6.12xlarge,Accelerators=2}],ResourceSharingConfig={Strategy=LendAndBorrow,BorrowLimit=10}"
--compute-quota-target "TeamName=onlygputeam2,FairShareWeight=10"`,
		"2": `aws sagemaker create-compute-quota --name mix-quota-type \
  --description 'Mixed quota allocation' --activation-state Enabled \
  --compute-quota-config "ComputeQuotaResources=[{InstanceType=ml.g6.12xlarge,Accelerators=2},{InstanceType=ml.p5.48xlarge,Count=3},{InstanceType=ml.c5.2xlarge,VCpu=2}],\
ResourceSharingConfig={Strategy=LendAndBorrow,BorrowLimit=10}" \
  --compute-quota-target '{"TeamName": "mixquotatype", "FairShareWeight": 10}'`,
		"4": `--scheduler-config "PriorityClasses=[{Name=inference,Weight=90},{Name=experimentation,Weight=80},{Name=fine-tuning,Weight=50},{Name=training,Weight=70}],FairShare=Enabled"`,
	}[example]
}

// An AWS CLI command and its JSON import the same object, also as browsers send lines, and
// in the notation of PowerShell and of Windows' command prompt.
func TestCommandEqualsJSON(t *testing.T) {
	for _, n := range []string{"1", "2", "4"} {
		read := imports.Read(file(t, "testdata", "example-"+n+".json"))
		for name, lines := range map[string]*strings.Replacer{
			"as it is": strings.NewReplacer(), "by a browser": strings.NewReplacer("\n", "\r\n"),
			"in PowerShell": strings.NewReplacer(" \\\n", " `\r\n"), "in the command prompt": strings.NewReplacer(" \\\n", " ^\r\n"),
		} {
			called := imports.Read([]byte(lines.Replace(command(n))))
			if len(called.Objects) != 1 || all(called) != "" {
				t.Fatalf("example %s %s is read with %q", n, name, all(called))
			}
			if diff := cmp.Diff(read.Objects[0].YAML(), called.Objects[0].YAML()); diff != "" {
				t.Errorf("example %s %s (-JSON +call):\n%s", n, name, diff)
			}
		}
	}
}

func TestPolicyExample(t *testing.T) {
	got := imports.Read(file(t, "testdata", "example-4.json"))
	if len(got.Objects) != 1 || got.Objects[0].Policy == nil {
		t.Fatalf("read %+v", got)
	}
	weight := func(n int32) *int32 { return &n }
	want := v1alpha1.ClusterPolicySpec{
		TaskPrioritization: v1alpha1.TaskRanking,
		PriorityClasses: []v1alpha1.PriorityClass{
			{Name: "inference", Weight: weight(90)}, {Name: "experimentation", Weight: weight(80)},
			{Name: "fine-tuning", Weight: weight(50)}, {Name: "training", Weight: weight(70)},
		},
		IdleCompute: v1alpha1.IdleCompute{Strategy: v1alpha1.IdleFairShare},
	}
	if diff := cmp.Diff(want, got.Objects[0].Policy.Spec); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
