package kueueconfig_test

import (
	"strings"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/kueue/kueueconfig"

	"github.com/google/go-cmp/cmp"
)

const head2 = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"

func TestAdd(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		args []string
		more kueueconfig.Addition
		want string
		then []string // the arguments
	}{
		"an integration is appended, and comments stay": {
			text: head2 + "integrations: # ours\n  frameworks:\n  - batch/job\n  # - pod\n  - ray.io/rayjob # also\n# end\nmetrics: {}\n",
			more: kueueconfig.Addition{Frameworks: []string{"pod", "batch/job"}},
			want: "  - ray.io/rayjob # also\n  - pod\n# end\nmetrics: {}\n",
		},
		"without a list, batch/job is kept": {
			text: head2, more: kueueconfig.Addition{Frameworks: []string{"pod"}},
			want: "integrations:\n  frameworks:\n  - batch/job\n  - pod\n",
		},
		"with an empty list, batch/job is kept": {
			text: head2 + "integrations:\n  frameworks: []\n", more: kueueconfig.Addition{Frameworks: []string{"pod"}},
			want: "integrations:\n  frameworks: [batch/job, pod]\n",
		},
		"with null for a list, batch/job is kept": {
			text: head2 + "integrations:\n  frameworks: # none\n  externalFrameworks: [A.v1.example.com]\n", more: kueueconfig.Addition{Frameworks: []string{"pod"}},
			want: "integrations:\n  frameworks: # none\n  - batch/job\n  - pod\n  externalFrameworks: [A.v1.example.com]\n",
		},
		"batch/job is enabled without a list": {
			text: head2 + "integrations: {frameworks: []}\n", more: kueueconfig.Addition{Frameworks: []string{"batch/job"}},
			want: head2 + "integrations: {frameworks: []}\n",
		},
		"resources are excluded": {
			text: head2 + "resources:\n  quotaCheckStrategy: BlockUndeclared\n", more: kueueconfig.Addition{Exclude: []string{"ephemeral-storage"}},
			want: "resources:\n  quotaCheckStrategy: BlockUndeclared\n  excludeResourcePrefixes:\n  - ephemeral-storage\n",
		},
		"resources are counted again": {
			text: head2 + "resources:\n  excludeResourcePrefixes:\n  - example.com/ # ours\n  - mem\n  - 'nvidia.com/'\n", more: kueueconfig.Addition{Unexclude: []string{"nvidia.com/", "mem", "x"}},
			want: "resources:\n  excludeResourcePrefixes:\n  - example.com/ # ours\n",
		},
		"all resources are counted again": {
			text: head2 + "resources:\n  excludeResourcePrefixes: [\"\"]\n", more: kueueconfig.Addition{Unexclude: []string{""}},
			want: "resources:\n  excludeResourcePrefixes: []\n",
		},
		"resources that are counted already": {
			text: head2 + "resources: {excludeResourcePrefixes: [x]}\n", more: kueueconfig.Addition{Unexclude: []string{"y"}},
			want: head2 + "resources: {excludeResourcePrefixes: [x]}\n",
		},
		"gates are added to the arguments that have gates": {
			text: head2, args: []string{"--feature-gates=A=true"}, more: kueueconfig.Addition{Gates: map[string]bool{kueueconfig.GateExplicitStatus: true, kueueconfig.GateReasons: true}},
			want: head2, then: []string{"--feature-gates=A=true,UnadmittedWorkloadsObservability=true,UnadmittedWorkloadsExplicitStatus=true"},
		},
		"gates in the configuration": {
			text: head2 + "featureGates: {A: true}\n", more: kueueconfig.Addition{Gates: map[string]bool{kueueconfig.GateHashing: false}},
			want: "featureGates: {A: true, SchedulingEquivalenceHashing: false}\n",
		},
		"existing values": {
			text: head2 + "integrations: {frameworks: [pod]}\nresources: {excludeResourcePrefixes: [x]}\n", more: kueueconfig.Addition{Frameworks: []string{"pod"}, Exclude: []string{"x"}},
			want: head2 + "integrations: {frameworks: [pod]}\nresources: {excludeResourcePrefixes: [x]}\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := kueueconfig.Add(kueueconfig.Current{Text: c.text, Args: c.args, Image: current}, c.more)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(got.Text, c.want) || !strings.HasPrefix(got.Text, head2) {
				t.Errorf("got text\n%s\nwant this end\n%s", got.Text, c.want)
			}
			if c.then != nil && !cmp.Equal(got.Args, c.then) {
				t.Errorf("got arguments %q", got.Args)
			}
			if (got.Patch != "") != (got.ConfigChanged || got.ArgsChanged) {
				t.Errorf("the patch is\n%s", got.Patch)
			}
			again, err := kueueconfig.Add(kueueconfig.Current{Text: got.Text, Args: got.Args, Image: current}, kueueconfig.Addition{Frameworks: c.more.Frameworks, Exclude: c.more.Exclude, Unexclude: c.more.Unexclude})
			if err != nil || again.ConfigChanged || again.ArgsChanged {
				t.Errorf("adding it again changes the text (%v):\n%s", err, again.Text)
			}
		})
	}
}

// Add fails rather than lose entries of a list.
func TestAddRejects(t *testing.T) {
	pod, nic := kueueconfig.Addition{Frameworks: []string{"pod"}}, kueueconfig.Addition{Exclude: []string{"example.com/nic"}}
	for name, c := range map[string]struct {
		text string
		more kueueconfig.Addition
		want string
	}{
		"integrations by reference":   {"managedJobsNamespaceSelector: {matchExpressions: [{key: a, operator: In, values: &x [batch/job, ray.io/rayjob]}]}\nintegrations: {frameworks: *x}\n", pod, "integrations.frameworks"},
		"integrations as a string":    {"integrations: {frameworks: batch/job}\n", pod, "integrations.frameworks"},
		"integrations as a mapping":   {"integrations: {frameworks: {batch/job: true}}\n", pod, "integrations.frameworks"},
		"a section by reference":      {"metrics: &x {frameworks: [ray.io/rayjob]}\nintegrations: *x\n", pod, ", integrations is not a plain mapping"},
		"integrations merged in":      {"metrics: &x {frameworks: [ray.io/rayjob]}\nintegrations: {<<: *x}\n", pod, "by hand"},
		"a section merged in":         {"metrics: &x {integrations: {frameworks: [ray.io/rayjob]}}\n<<: *x\n", pod, "by hand"},
		"resources by reference":      {"multiKueue: {externalFrameworks: &x [a]}\nresources: {excludeResourcePrefixes: *x}\n", nic, "resources.excludeResourcePrefixes"},
		"resources merged in":         {"metrics: &x {excludeResourcePrefixes: [a]}\nresources: {<<: *x}\n", nic, "by hand"},
		"to be counted, by reference": {"multiKueue: {externalFrameworks: &x [a]}\nresources: {excludeResourcePrefixes: *x}\n", kueueconfig.Addition{Unexclude: []string{"a"}}, "resources.excludeResourcePrefixes"},
		"to be counted, merged in":    {"metrics: &x {excludeResourcePrefixes: [a]}\nresources: {<<: *x}\n", kueueconfig.Addition{Unexclude: []string{"a"}}, "by hand"},
	} {
		t.Run(name, func(t *testing.T) {
			seen := kueueconfig.Current{Text: head2 + c.text, Image: current}
			got, err := kueueconfig.Add(seen, c.more)
			if err == nil || !strings.Contains(err.Error(), c.want) || governance.KindOf(err) != governance.Invalid {
				t.Errorf("error %v, want one about %q; the text is\n%s", err, c.want, got.Text)
			}
			if got.Text != seen.Text || got.ConfigChanged || got.Patch != "" {
				t.Errorf("changed although it failed: %+v", got)
			}
		})
	}
}

// Gates are supported only in versions that have them: Kueue does not start with an
// unknown gate.
func TestGatesByVersion(t *testing.T) {
	for image, want := range map[string]string{
		current: "UnadmittedWorkloadsObservability supported, UnadmittedWorkloadsExplicitStatus supported, SchedulingEquivalenceHashing supported on, VisibilityOnDemand supported on, WorkloadPriorityClassDefaulting supported, AdmissionGatedBy supported on, DisableWaitForPodsReady supported set on",
		older:   "UnadmittedWorkloadsObservability, UnadmittedWorkloadsExplicitStatus, SchedulingEquivalenceHashing supported on, VisibilityOnDemand supported on, WorkloadPriorityClassDefaulting supported, AdmissionGatedBy supported, DisableWaitForPodsReady set on",
		branch:  "UnadmittedWorkloadsObservability, UnadmittedWorkloadsExplicitStatus, SchedulingEquivalenceHashing, VisibilityOnDemand, WorkloadPriorityClassDefaulting, AdmissionGatedBy, DisableWaitForPodsReady set on",
	} {
		gates, err := kueueconfig.Gates(kueueconfig.Current{Text: head2 + "featureGates: {DisableWaitForPodsReady: true}\n", Image: image})
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, g := range gates {
			text := g.Name
			if g.Supported {
				text += " supported"
			}
			if g.Explicit {
				text += " set"
			}
			if g.Enabled {
				text += " on"
			}
			lines = append(lines, text)
		}
		if got := strings.Join(lines, ", "); got != want {
			t.Errorf("%s: %s\nwant %s", image, got, want)
		}
	}
}

func TestCountsResource(t *testing.T) {
	text := head2 + "resources:\n  excludeResourcePrefixes: [example.com/]\n  transformations:\n  - {input: nvidia.com/mig-1g.5gb, strategy: Replace}\n  - {input: nvidia.com/mig-2g.10gb, strategy: Retain}\n  - {input: nvidia.com/mig-3g.20gb}\n"
	for resource, want := range map[string]bool{
		"example.com/nic": false, "nvidia.com/mig-1g.5gb": false, "nvidia.com/mig-2g.10gb": true, "nvidia.com/mig-3g.20gb": true, "ephemeral-storage": true,
	} {
		if got := kueueconfig.CountsResource(text, resource); got != want {
			t.Errorf("CountsResource(%s) is %t", resource, got)
		}
	}
	if kueueconfig.CountsResource(head2+"resources: {quotaCheckStrategy: IgnoreUndeclared}\n", "ephemeral-storage") {
		t.Error("ephemeral-storage is counted with IgnoreUndeclared")
	}
}
